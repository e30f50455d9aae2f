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
export const MAX_PENDING = 1_000;

const WRITTEN: ReadonlySet<string> = new Set(["user", "system", "developer"]);
/** A message of a person or an app. Calls before it are left behind: somebody went on without their results. */
export const isWritten = ({ role }: Pick<Message, "role">): boolean => WRITTEN.has(role);

/** What a finished run leaves of tool calls. */
export interface LeftCalls {
  /** Calls of front-end tools that it made and left without a result, oldest first. */
  readonly made: readonly UnansweredCall[];
  /** Ids of all calls without a result since somebody last wrote. A call of an earlier run that is none of them is over. */
  readonly unanswered: ReadonlySet<string>;
}

/**
 * @param before messages of the thread before the run
 * @param after and after it
 * @param tools names of the tools of the run's input: others are not the front end's
 * @param outcome of the run, as its agent gave it. Calls that an interrupt asks about wait for its answer; if it names
 *   `pendingToolCallIds`, it has left no other call
 */
export function leftCalls(
  before: readonly Message[],
  after: readonly Message[],
  tools: ReadonlySet<string>,
  outcome: RunFinishedOutcome | undefined,
): LeftCalls {
  const calls = unansweredIn(after);
  const unanswered = new Set(calls.map(({ toolCallId }) => toolCallId));
  if (calls.length === 0) return { made: [], unanswered };
  const known = new Set(unansweredIn(before).map(({ toolCallId }) => toolCallId));
  const asked = new Set(outcome?.type === "interrupt" ? outcome.interrupts.map(({ toolCallId }) => toolCallId) : []);
  // Absent or empty: the agent names none, and the messages tell (AG-UI 1.0).
  const named = outcome?.type === "success" ? (outcome.pendingToolCallIds ?? []) : [];
  const only = named.length === 0 ? undefined : new Set(named);
  const made = calls.filter(
    ({ toolCallId, name }) =>
      tools.has(name) &&
      !known.has(toolCallId) &&
      !asked.has(toolCallId) &&
      (only === undefined || only.has(toolCallId)),
  );
  return { made: made.length > MAX_PENDING ? [] : made, unanswered };
}

/** Calls without a result in the messages since somebody last wrote, oldest first. */
export function unansweredIn(messages: readonly Message[]): readonly UnansweredCall[] {
  const answered = new Set<string>();
  const found: UnansweredCall[] = [];
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]!;
    if (isWritten(message)) break;
    if (message.role === "tool") answered.add(message.toolCallId);
    if (message.role !== "assistant") continue;
    for (const { id, function: called } of (message.toolCalls ?? []).toReversed()) {
      if (!answered.has(id)) found.push({ toolCallId: id, name: called.name });
      // An id that comes twice is one call.
      answered.add(id);
    }
  }
  return found.toReversed();
}
