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
  /** The run that made it: agents may use an id again. */
  readonly madeIn?: number;
  /** Tabs of another device run its handler; here somebody may answer. */
  readonly elsewhere?: true;
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

/** All answers that the head holds: those that wait for the end of the live run, too. */
export const answersIn = ({ pending }: Head): readonly PendingToolCall[] =>
  isPending(pending) ? pending.calls.filter(isAnswered) : [];

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
 * The answers that the run `runIndex` was not given, for a later one: nobody goes on because of them alone.
 *
 * @param before the run before it, or itself
 */
export const untaken = (pending: unknown, before: number | null, runIndex: number): Kept =>
  keeping(pendingOf(pending, before), runIndex, isAnswered, late);

/** What is pending after the run `runIndex` of another device, which continues run `before`, has come as a whole. */
export function pendingAfter(
  pending: unknown,
  before: number | null,
  runIndex: number,
  { input, left }: { readonly input: { readonly messages: readonly Message[] }; readonly left?: LeftByRun | undefined },
): Kept {
  const isTaken = hasResult(input.messages);
  const isKept = (call: PendingToolCall): boolean =>
    isAnswered(call) ? !isTaken(call) : left?.unanswered.has(call.toolCallId) === true;
  const its = keeping(pendingOf(pending, before), runIndex, isKept);
  return { ...keeping(its.pending, runIndex, isAnswered, late), ...leftBy(its.pending, runIndex, left) };
}

const pendingOf = (pending: unknown, runIndex: number | null): PendingToolCalls | undefined =>
  isPending(pending) && pending.runIndex === runIndex ? pending : undefined;

/** Whether these messages have the result of a call. */
export const hasResult =
  (messages: readonly Message[]) =>
  ({ toolCallId }: PendingToolCall): boolean =>
    messages.some((message) => message.role === "tool" && message.toolCallId === toolCallId);

interface Kept {
  readonly pending?: PendingToolCalls;
}

const isAnswered = ({ status }: PendingToolCall): boolean => status === "answered";

/** The thread has gone on without this answer. */
const late = (call: PendingToolCall): PendingToolCall => ({ ...call, followUp: false });

function keeping(
  pending: PendingToolCalls | undefined,
  runIndex: number,
  isKept: (call: PendingToolCall) => boolean,
  as: (call: PendingToolCall) => PendingToolCall = (call) => call,
): Kept {
  const calls = pending?.calls.filter(isKept).map(as) ?? [];
  return pending === undefined || calls.length === 0 ? {} : { pending: { ...pending, runIndex, calls } };
}

/** What a finished run leaves, who made it, and the id of the run that is to go on with the results. */
export interface LeftByRun extends LeftCalls {
  readonly nextRunId: string;
  readonly agentId?: string;
  /** Another device has made them. */
  readonly elsewhere?: true;
}

/**
 * The pending calls after run `runIndex`. One that was pending before it, and has no result yet, stays as it is, and so does
 * an answer that the run was not given.
 */
export function leftBy(before: unknown, runIndex: number, left: LeftByRun | undefined): Kept {
  if (left === undefined) return {};
  const waits = ({ toolCallId }: PendingToolCall): boolean => left.unanswered.has(toolCallId);
  const kept = (pendingOf(before, runIndex)?.calls ?? [])
    .filter((call) => isAnswered(call) || waits(call))
    .map((call) => (waits(call) ? call : late(call)));
  const known = new Set(kept.map(({ toolCallId }) => toolCallId));
  const made = left.made.filter(({ toolCallId }) => !known.has(toolCallId));
  const { nextRunId, agentId, elsewhere } = left;
  const of = { madeIn: runIndex, ...(elsewhere && { elsewhere }) };
  const calls = [
    ...kept,
    ...made.map(({ toolCallId, name }): PendingToolCall => ({ toolCallId, name, status: "open", ...of })),
  ];
  if (calls.length === 0) return {};
  return { pending: { runIndex, nextRunId, ...(agentId !== undefined && { agentId }), calls } };
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

/** A call without what was done with it. */
const bare = ({ toolCallId, name, madeIn, elsewhere }: PendingToolCall) => ({
  toolCallId,
  name,
  ...(madeIn !== undefined && { madeIn }),
  ...(elsewhere && { elsewhere }),
});

const isForTabs = ({ status, elsewhere }: PendingToolCall): boolean => status === "open" && elsewhere !== true;

export const claimCall =
  ({ token, tabId, once, again }: ToolCallClaim) =>
  (call: PendingToolCall): CallChange => {
    if (call.status === "claimed" && call.token === token) return { is: "none" };
    const isFree = again ? call.status === "interrupted" || call.status === "open" : isForTabs(call);
    if (!isFree) return { is: "refused" };
    return { is: "changed", call: { ...bare(call), status: "claimed", token, tabId, ...(once && { once }) } };
  };

/** @param by `handler`: only of the claim with this token; `user`: in place of whatever works on it */
export const answerCall =
  (token: string, by: "handler" | "user", followUp: boolean, result: unknown) =>
  (call: PendingToolCall): CallChange => {
    if (call.status === "answered") return { is: call.token === token ? "none" : "refused" };
    if (by === "handler" && !(call.status === "claimed" && call.token === token)) return { is: "refused" };
    const answered = { ...bare(call), status: "answered", token, result } as const;
    return { is: "changed", call: { ...answered, ...(!followUp && { followUp }) } };
  };

/** What the space has as the call's answer: it counts on all devices, whatever was answered here meanwhile. */
export const answerOfSpace =
  (token: string, followUp: boolean, result: unknown) =>
  (call: PendingToolCall): CallChange => {
    const isOther = call.status === "answered" && call.token !== token;
    return answerCall(token, "user", followUp, result)(isOther ? { ...bare(call), status: "open" } : call);
  };

/** The tab of a claim is gone. */
export const abandonCall =
  (token: string) =>
  (call: PendingToolCall): CallChange => {
    if (call.status !== "claimed" || call.token !== token) return { is: "none" };
    return { is: "changed", call: { ...bare(call), status: call.once === true ? "interrupted" : "open" } };
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
