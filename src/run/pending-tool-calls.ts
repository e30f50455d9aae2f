import type { Message } from "@ag-ui/client";
import type { RunFinishedOutcome } from "@ag-ui/core";

/** A call of a front-end tool that a run left without a result. */
export interface UnansweredCall {
  readonly toolCallId: string;
  readonly name: string;
}

/** A tool message: a call's result. */
export type ToolResult = Extract<Message, { readonly role: "tool" }>;

/** Beyond this many, none of a run's calls is kept as pending: the head of a thread stays small. */
const MAX_PENDING = 1_000;

/** Roles of messages behind which earlier calls are left behind: somebody went on without their results. */
const WRITTEN: ReadonlySet<string> = new Set(["user", "system", "developer"]);

/**
 * The front-end calls that a finished run left without a result, oldest first: those of the messages since somebody last
 * wrote, on the whole path, so that a run that goes on without a result still leaves the call pending.
 *
 * @param messages of the thread, after the run
 * @param tools names of the tools of the run's input
 * @param outcome of the run, as its agent gave it. Calls that an interrupt asks about wait for its answer; if it names
 *   `pendingToolCallIds`, no other call is pending
 */
export function unansweredCalls(
  messages: readonly Message[],
  tools: ReadonlySet<string>,
  outcome: RunFinishedOutcome | undefined,
): readonly UnansweredCall[] {
  if (tools.size === 0) return [];
  const answered = new Set<string>(
    outcome?.type === "interrupt" ? outcome.interrupts.flatMap(({ toolCallId }) => toolCallId ?? []) : [],
  );
  // Absent or empty: the agent names none, and the messages tell (AG-UI 1.0).
  const named = outcome?.type === "success" ? (outcome.pendingToolCallIds ?? []) : [];
  const only = named.length === 0 ? undefined : new Set(named);
  const found: UnansweredCall[] = [];
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]!;
    if (WRITTEN.has(message.role)) break;
    if (message.role === "tool") answered.add(message.toolCallId);
    if (message.role !== "assistant") continue;
    for (const { id, function: called } of (message.toolCalls ?? []).toReversed()) {
      const isPending = tools.has(called.name) && !answered.has(id) && (only === undefined || only.has(id));
      // An id that comes twice is one call.
      answered.add(id);
      if (isPending) found.push({ toolCallId: id, name: called.name });
    }
  }
  return found.length > MAX_PENDING ? [] : found.toReversed();
}
