import type { Message } from "@ag-ui/core";
import { RunnerError } from "../run/errors.js";
import type { LeftCalls, ToolResult, UnansweredCall } from "../run/pending-tool-calls.js";

/*
 * The calls of front-end tools that a thread's last run left without a result: in the thread's head, so that a claim, an
 * answer and the run that goes on with the answers exclude one another.
 */

/** What of a thread's head matters here. */
interface Head {
  readonly activeRunIndex: number;
  readonly live?: unknown;
  readonly deleted?: true;
  readonly pending?: PendingToolCalls;
}

/** Valid as long as the run is the end of the path. An older build carries it along unread. */
export interface PendingToolCalls {
  /** The run that left them. */
  readonly runIndex: number;
  /** The id of the run that goes on with their results: whoever starts it, starts the same one. */
  readonly nextRunId: string;
  /** The agent that made them. */
  readonly agentId?: string;
  /** Tabs of another device run their handlers; here somebody may answer. */
  readonly elsewhere?: true;
  readonly calls: readonly PendingToolCall[];
}

/**
 * - `open`: nobody works on it.
 * - `claimed`: the handler of a tab runs.
 * - `interrupted`: the tab of a handler that must not run twice has died in the middle of it.
 * - `answered`: its result is here, and goes into the thread with the next run.
 */
export interface PendingToolCall extends UnansweredCall {
  readonly status: "open" | "claimed" | "interrupted" | "answered";
  /** Of the claim or answer that gave it its status: a repeated request is recognized. */
  readonly token?: string;
  /** The tab whose handler runs. */
  readonly tabId?: string;
  /** The handler that runs must not run again. */
  readonly once?: true;
  /** Of an answer that the agent does not go on because of. */
  readonly followUp?: false;
  /** Payload: ToolResult. */
  readonly result?: unknown;
}

/** A change of one call. `none`: as it is already. */
export type CallChange =
  { readonly is: "none" } | { readonly is: "refused" } | { readonly is: "changed"; readonly call: PendingToolCall };

const STATUSES: ReadonlySet<unknown> = new Set(["open", "claimed", "interrupted", "answered"]);

/** Records may have been written by anybody: what is not valid is not pending. */
const isCall = (call: unknown): call is PendingToolCall => {
  const { toolCallId, name, status } = (call ?? {}) as Partial<PendingToolCall>;
  return typeof toolCallId === "string" && typeof name === "string" && STATUSES.has(status);
};

const isPending = (pending: unknown): pending is PendingToolCalls => {
  const { runIndex, nextRunId, calls } = (pending ?? {}) as Partial<PendingToolCalls>;
  return typeof runIndex === "number" && typeof nextRunId === "string" && Array.isArray(calls) && calls.every(isCall);
};

/** The pending calls of an idle thread; undefined for none. */
export function pendingIn(head: Head | undefined): PendingToolCalls | undefined {
  const pending = head?.pending;
  if (head?.live !== undefined || head?.deleted === true || !isPending(pending)) return undefined;
  return pending.runIndex === head?.activeRunIndex ? pending : undefined;
}

/** The answers that the next run on the path goes on with. */
export const answeredIn = (head: Head | undefined): readonly PendingToolCall[] =>
  pendingIn(head)?.calls.filter(isAnswered) ?? [];

/** Whether the run of this id is the one that goes on now: every call is answered. */
export function isNextAfterCalls(head: Head | undefined, runId: string): boolean {
  const pending = pendingIn(head);
  return pending?.nextRunId === runId && pending.calls.every(isAnswered);
}

/**
 * What of the pending calls goes along with a run that continues the path.
 *
 * @param toolCallIds the calls whose answers are in its input
 */
export const carried = (
  head: Head | undefined,
  prevRunIndex: number | null,
  runIndex: number,
  toolCallIds: readonly string[],
): Kept =>
  prevRunIndex === head?.activeRunIndex
    ? keeping(pendingIn(head), runIndex, (call) => !isAnswered(call) || !toolCallIds.includes(call.toolCallId))
    : {};

/**
 * The answers that the run `runIndex` of another device was not given, for a later one.
 *
 * @param before the run before it, or itself
 * @param isTaken whether it was given this one
 */
export const untaken = (
  pending: unknown,
  before: number | null,
  runIndex: number,
  isTaken: (call: PendingToolCall) => boolean = () => false,
): Kept => {
  const its = isPending(pending) && pending.runIndex === before ? pending : undefined;
  return keeping(its, runIndex, (call) => isAnswered(call) && !isTaken(call));
};

/** Whether these messages have the result of a call. */
export const hasResult =
  (messages: readonly Message[]) =>
  ({ toolCallId }: PendingToolCall): boolean =>
    messages.some((message) => message.role === "tool" && message.toolCallId === toolCallId);

interface Kept {
  readonly pending?: PendingToolCalls;
}

const isAnswered = ({ status }: PendingToolCall): boolean => status === "answered";

function keeping(
  pending: PendingToolCalls | undefined,
  runIndex: number,
  isKept: (call: PendingToolCall) => boolean,
): Kept {
  const calls = pending?.calls.filter(isKept) ?? [];
  return pending === undefined || calls.length === 0 ? {} : { pending: { ...pending, runIndex, calls } };
}

/** What a finished run leaves, who made it, and the id of the run that is to go on with the results. */
export interface LeftByRun extends LeftCalls {
  readonly nextRunId: string;
  readonly agentId?: string;
  readonly elsewhere?: true;
}

/**
 * The pending calls after run `runIndex`. One that was pending before it, and has no result yet, stays as it is, and so does
 * an answer that the run was not given.
 */
export function leftBy(head: Head, runIndex: number, left: LeftByRun | undefined): Kept {
  if (left === undefined) return {};
  const before = isPending(head.pending) && head.pending.runIndex === runIndex ? head.pending.calls : [];
  const kept = before.filter((call) => isAnswered(call) || left.unanswered.has(call.toolCallId));
  const known = new Set(kept.map(({ toolCallId }) => toolCallId));
  const made = left.made.filter(({ toolCallId }) => !known.has(toolCallId));
  const calls = [
    ...kept,
    ...made.map(({ toolCallId, name }): PendingToolCall => ({ toolCallId, name, status: "open" })),
  ];
  const { nextRunId, agentId, elsewhere } = left;
  if (calls.length === 0) return {};
  const ofRun = { runIndex, nextRunId, ...(agentId !== undefined && { agentId }), ...(elsewhere && { elsewhere }) };
  return { pending: { ...ofRun, calls } };
}

/** The head with a call changed; undefined if it stays. @throws RunnerError `call-over` where there is no such call */
export function changedCall<H extends Head>(
  head: H | undefined,
  threadId: string,
  toolCallId: string,
  change: (call: PendingToolCall) => CallChange,
): { readonly change: CallChange; readonly head: H | undefined } {
  const pending = pendingIn(head);
  const call = pending?.calls.find((one) => one.toolCallId === toolCallId);
  if (head === undefined || pending === undefined || call === undefined) {
    throw new RunnerError("call-over", { threadId, toolCallId });
  }
  const changed = change(call);
  if (changed.is !== "changed") return { change: changed, head: undefined };
  const calls = pending.calls.map((one) => (one === call ? changed.call : one));
  return { change: changed, head: { ...head, pending: { ...pending, calls } } };
}

/** Who wants to run a handler. */
export interface ToolCallClaim {
  readonly token: string;
  readonly tabId: string;
  /** The handler must not run twice. */
  readonly once: boolean;
  /** Somebody has decided that an interrupted call is to run again. */
  readonly again: boolean;
}

export const claimCall =
  ({ token, tabId, once, again }: ToolCallClaim) =>
  (call: PendingToolCall): CallChange => {
    if (call.status === "claimed" && call.token === token) return { is: "none" };
    const isFree = call.status === "open" || (call.status === "interrupted" && again);
    if (!isFree) return { is: "refused" };
    const { toolCallId, name } = call;
    return { is: "changed", call: { toolCallId, name, status: "claimed", token, tabId, ...(once && { once }) } };
  };

/** @param by `handler`: only of the claim with this token; `user`: in place of whatever works on it */
export const answerCall =
  (token: string, by: "handler" | "user", followUp: boolean, result: unknown) =>
  (call: PendingToolCall): CallChange => {
    if (call.status === "answered") return { is: call.token === token ? "none" : "refused" };
    if (by === "handler" && !(call.status === "claimed" && call.token === token)) return { is: "refused" };
    const { toolCallId, name } = call;
    const answered = { toolCallId, name, status: "answered", token, result } as const;
    return { is: "changed", call: { ...answered, ...(!followUp && { followUp }) } };
  };

/** What the space has as the call's answer: it counts on all devices, whatever was answered here meanwhile. */
export const answerOfSpace =
  (token: string, followUp: boolean, result: unknown) =>
  (call: PendingToolCall): CallChange => {
    const { toolCallId, name } = call;
    const isOther = call.status === "answered" && call.token !== token;
    return answerCall(token, "user", followUp, result)(isOther ? { toolCallId, name, status: "open" } : call);
  };

/** The tab of a claim is gone. */
export const abandonCall =
  (token: string) =>
  (call: PendingToolCall): CallChange => {
    if (call.status !== "claimed" || call.token !== token) return { is: "none" };
    const { toolCallId, name, once } = call;
    return { is: "changed", call: { toolCallId, name, status: once === true ? "interrupted" : "open" } };
  };

/** The result of an answered call; if it cannot be read, the agent is told so. */
export const resultOf = ({ toolCallId }: PendingToolCall, stored: unknown): ToolResult => {
  if (isToolResult(stored)) return stored;
  const error = "The result cannot be read";
  return { id: `${toolCallId}-result`, role: "tool", toolCallId, content: `Error: ${error}`, error };
};

const isToolResult = (value: unknown): value is ToolResult => {
  const { id, role, toolCallId, content } = (value ?? {}) as Partial<ToolResult>;
  return (
    typeof id === "string" &&
    role === "tool" &&
    typeof toolCallId === "string" &&
    (typeof content === "string" || Array.isArray(content))
  );
};
