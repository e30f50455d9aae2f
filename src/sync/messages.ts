import { EventType } from "@ag-ui/core";
import { EventSchemas } from "@ag-ui/core/schemas";
import { isRecord } from "../run/json.js";
import { weigh } from "../run/size.js";
import type { Attempt } from "../run/hosted.js";
import { MAX_PENDING, type ToolResult, type UnansweredCall } from "../run/pending-tool-calls.js";
import type { Chunk, PackedEntry, SettledStatus } from "../run/types.js";
import type { AbsentThread, DeviceName } from "../storage/devices.js";
import type { Asker } from "../storage/rows.js";
import type { PersistedInput } from "../storage/run-store.js";
import type { RunnerErrorData } from "../wire/shapes.js";
import type { SpaceEntry } from "./space.js";
import { isAskedRun, isAsker, isErrorData, type AskedRun } from "./asked-run.js";

/**
 * History of the messages: 1, the first. 2: {@link WholeMessage}, and only that one. 3: what names a run by its answer, see
 * `runName`. 4: {@link ResultMessage}. An entry of a later version is not understood, and a device that meets one says that it
 * is outdated.
 */
const SYNC_VERSION = 4;

interface Message {
  /** Whose thread it is about is told apart by the key of its entry; the id is for devices that do not know it yet. */
  readonly threadId: string;
  /** Who sent it. */
  readonly device: DeviceName;
}

/** How its device lists the thread: for those that have only its last entry. */
export type Brief = Omit<AbsentThread, "threadId">;

/** What may be the last entry of a thread at rest. */
interface LastMessage extends Message {
  readonly brief?: Brief;
}

/** A device is about to start a run: nobody else does. The run, or `release`, follows. */
export interface ClaimMessage extends Message {
  readonly type: "claim";
  readonly runId: string;
  readonly answerId?: string;
  /** A server is to execute it: the first one that claims the same run does. */
  readonly asks?: AskedRun;
}

/** The run of a claim was not started after all. */
export interface ReleaseMessage extends LastMessage {
  readonly type: "release";
  readonly runId: string;
  /** Why a server that was asked for it cannot start it. */
  readonly error?: RunnerErrorData;
}

/*
 * In what follows, `runId`, `prev` and `knew` are names of runs (see `runName`), but for the `runId` of claims, releases and
 * beginnings.
 */

/** A run stands in the log of its device. */
export interface RunMessage extends LastMessage {
  readonly type: "run";
  /** Its id; with `answerId` it makes its name. */
  readonly runId: string;
  readonly answerId?: string;
  /** The run that it continues; null for the first of a path. */
  readonly prev: string | null;
  /** The end of the active path as its device knew it; null for none. */
  readonly knew: string | null;
  readonly parentRunId?: string;
  readonly agentId?: string;
  readonly startedAt: number;
  readonly fingerprint: string;
  readonly attempt?: Attempt;
  readonly input: PersistedInput;
  /** The thread's title, where it has none. */
  readonly title: string;
  /** A device asked a server for it: that device's tabs execute the front-end tools that it calls. */
  readonly asker?: Asker;
}

/** The log of its device does not have the run any more: nothing of it comes. */
export interface AbandonMessage extends LastMessage {
  readonly type: "abandon";
  readonly runId: string;
}

/** A chunk without what each device gives it itself. */
export type SentChunk = Omit<Chunk, "threadId" | "runIndex" | "epoch">;

export const sentOf = ({ threadId: _threadId, runIndex: _runIndex, epoch: _epoch, ...sent }: Chunk): SentChunk => sent;

/** Events of a run, in order, after those that were sent before. */
export interface EventsMessage extends Message {
  readonly type: "events";
  readonly runId: string;
  readonly chunks: readonly SentChunk[];
}

/** The end of a run, with its last events. */
export interface EndMessage extends LastMessage {
  readonly type: "end";
  readonly runId: string;
  readonly status: SettledStatus;
  readonly endedAt: number;
  readonly closedFrom?: number;
  readonly chunk: SentChunk;
  /** The calls of front-end tools that wait since then, also those of runs before. */
  readonly left?: readonly UnansweredCall[];
}

/** A call that its run has left has its result: the first one counts, as long as the run is the end of the active path. */
export interface ResultMessage extends LastMessage {
  readonly type: "result";
  readonly runId: string;
  /** Its id is that of the message which the agent is given. */
  readonly result: ToolResult;
  /** The agent does not go on because of it. */
  readonly followUp?: false;
}

/** Somebody changed the thread's entry in the list. Absent fields stay. */
export interface ThreadMessage extends LastMessage {
  readonly type: "thread";
  readonly title?: string;
  readonly archived?: boolean;
  readonly pinned?: boolean;
}

/** Somebody took up another branch. `knew`: see {@link RunMessage}. */
export interface ActiveMessage extends LastMessage {
  readonly type: "active";
  readonly runId: string;
  readonly knew: string | null;
}

/** Somebody deleted the thread. `knew`: the seq of the last entry of a run that its device had. */
export interface DeletedMessage extends Message {
  readonly type: "deleted";
  readonly knew: number;
  /** Nobody had added a run unseen: the thread is gone. */
  readonly counts?: true;
  /** In a {@link WholeMessage}: all runs that the thread had before, see `runKey`. */
  readonly runs?: readonly string[];
}

/** An entry that stands for all entries of its thread up to one of them: see `compact`. */
export interface WholeMessage extends LastMessage {
  readonly type: "whole";
  /** The seq of the last entry that it stands for. */
  readonly upTo: number;
  /** In order. */
  readonly entries: readonly WholeEntry[];
  /** The thread is gone. */
  readonly counts?: true;
}

export interface WholeEntry {
  readonly seq: number;
  readonly message: Exclude<SpaceMessage, WholeMessage>;
}

/** What the entries of a thread hold. */
export type SpaceMessage =
  | WholeMessage
  | ClaimMessage
  | ReleaseMessage
  | RunMessage
  | EventsMessage
  | EndMessage
  | ResultMessage
  | AbandonMessage
  | ThreadMessage
  | ActiveMessage
  | DeletedMessage;

/** Of any length, as ids are for runners: what a device cannot read of its own it would send for ever. */
const isText = (value: unknown): value is string => typeof value === "string";
const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
/** In ms since the Unix epoch, up to the year 33658: what is listed by it is named by 15 digits. */
const isTime = (value: unknown): value is number => isIndex(value) && value < 1e15;
const isSpan = (value: unknown): boolean => Number.isSafeInteger(value) && Math.abs(value as number) < 1e15;
const isFlag = (value: unknown): value is boolean => typeof value === "boolean";
const isNullOr = (is: (value: unknown) => boolean) => (value: unknown) => value === null || is(value);
const isMaybe = (is: (value: unknown) => boolean) => (value: unknown) => value === undefined || is(value);
const isListOf = (is: (value: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(is);

type Fields = Readonly<Record<string, (value: unknown) => boolean>>;
const has = (fields: Fields) => (value: unknown) =>
  isRecord(value) && Object.entries(fields).every(([name, is]) => is(value[name]));

const isDevice = has({ id: isText, name: isText });
const STATUSES: ReadonlySet<unknown> = new Set(["finished", "errored", "stopped", "superseded", "broken"]);

const isCall = has({ toolCallId: isText });
const isOpen = has({
  textMessages: isListOf(isText),
  reasoningSpans: isListOf(isText),
  reasoningMessages: isListOf(isText),
  toolCalls: isListOf(isCall),
  unanswered: isListOf(isCall),
  steps: isListOf(has({ stepName: isText, subagentRunId: isMaybe(isText) })),
  subagents: isListOf(isText),
});

/** How many events an entry stands for; undefined for one that is none. */
function countOf({ event, cuts }: PackedEntry): number | undefined {
  if (!EventSchemas.safeParse(event).success) return undefined;
  if (cuts === undefined) return 1;
  const { delta } = event as { delta?: unknown };
  const whole = cuts.reduce((sum, cut) => sum + cut, 0);
  return typeof delta === "string" && whole === delta.length ? cuts.length : undefined;
}

function isChunk(value: unknown): boolean {
  const isWhole = has({
    firstSeq: isIndex,
    count: isIndex,
    at: isTime,
    // Pairs of a count and the ms after `at`: less than none where a clock was set back, or the end is another device's.
    times: isListOf(isSpan),
    open: isMaybe(isOpen),
    entries: isListOf(has({ event: isRecord, cuts: isMaybe(isListOf(isIndex)) })),
  })(value);
  if (!isWhole) return false;
  const { count, entries, times } = value as SentChunk; // its fields were checked
  const counts = entries.map(countOf);
  if (counts.includes(undefined)) return false;
  const parts = times.filter((_, at) => at % 2 === 0);
  const timed = parts.every(isIndex) ? parts.reduce((sum, part) => sum + part, 0) : -1;
  const all = counts.reduce<number>((sum, one) => sum + (one ?? 0), 0);
  return isFirst(value as SentChunk) && count > 0 && all === count && timed === count && times.length % 2 === 0;
}

/** A run begins with its RUN_STARTED. */
const isFirst = ({ firstSeq, entries }: SentChunk): boolean =>
  firstSeq > 0 || entries[0]?.event.type === EventType.RUN_STARTED;

/** And ends with its terminal event. */
export const endsRun = ({ entries }: SentChunk): boolean => {
  const type = entries.at(-1)?.event.type;
  return type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;
};

const isMessage = has({ id: isText, role: isText });
const areUnanswered = isListOf(has({ toolCallId: isText, name: isText }));
const areLeft = (value: unknown): boolean => {
  if (!areUnanswered(value)) return false;
  const left = value as readonly UnansweredCall[]; // its items were checked
  return left.length <= MAX_PENDING && new Set(left.map(({ toolCallId }) => toolCallId)).size === left.length;
};
const isResult = has({
  id: isText,
  role: (value) => value === "tool",
  toolCallId: isText,
  content: isText,
  error: isMaybe(isText),
});
const isInput = has({ messages: isListOf(isMessage) });

const isBrief = isMaybe(
  has({
    title: isText,
    agentId: isMaybe(isText),
    archived: isFlag,
    pinned: isFlag,
    createdAt: isTime,
    updatedAt: isTime,
    lastStatus: isMaybe((value) => STATUSES.has(value)),
  }),
);

const SHAPES: Readonly<Record<SpaceMessage["type"], (value: unknown) => boolean>> = {
  claim: has({ runId: isText, answerId: isMaybe(isText), asks: isMaybe(isAskedRun) }),
  release: has({ runId: isText, error: isMaybe(isErrorData), brief: isBrief }),
  run: has({
    runId: isText,
    answerId: isMaybe(isText),
    prev: isNullOr(isText),
    knew: isNullOr(isText),
    parentRunId: isMaybe(isText),
    agentId: isMaybe(isText),
    startedAt: isTime,
    fingerprint: isText,
    attempt: isMaybe(has({ of: isText, number: isIndex })),
    input: isInput,
    title: isText,
    asker: isMaybe(isAsker),
    brief: isBrief,
  }),
  events: has({ runId: isText, chunks: isListOf(isChunk) }),
  end: has({
    runId: isText,
    status: (value) => STATUSES.has(value),
    endedAt: isTime,
    closedFrom: isMaybe(isIndex),
    chunk: (value) => isChunk(value) && endsRun(value as SentChunk),
    left: isMaybe(areLeft),
    brief: isBrief,
  }),
  result: has({ runId: isText, result: isResult, followUp: isMaybe((value) => value === false), brief: isBrief }),
  abandon: has({ runId: isText, brief: isBrief }),
  thread: has({ title: isMaybe(isText), archived: isMaybe(isFlag), pinned: isMaybe(isFlag), brief: isBrief }),
  active: has({ runId: isText, knew: isNullOr(isText), brief: isBrief }),
  deleted: has({ knew: isIndex, counts: isMaybe((value) => value === true), runs: isMaybe(isListOf(isText)) }),
  whole: has({ upTo: isIndex, entries: Array.isArray, counts: isMaybe((value) => value === true), brief: isBrief }),
};

/** The entries of a whole one: of its thread, in order. */
function areEntries({ threadId, upTo, entries }: WholeMessage): boolean {
  let last = 0;
  return entries.every((entry: unknown) => {
    if (!isRecord(entry) || !isIndex(entry["seq"]) || entry["seq"] <= last || entry["seq"] > upTo) return false;
    last = entry["seq"];
    const message = messageOf(entry["message"]);
    return message !== undefined && message.type !== "whole" && message.threadId === threadId;
  });
}

/** The largest entry, in bytes: more than a run's limits let into one. */
const LARGEST = 256 * 1_024 * 1_024;

/** Levels of lists and objects in a message: those of an event, and the ones around it. */
const DEEPEST = 512;

/** What the space says cannot be understood here, and nothing can be sent behind it. The message says what to do. */
export class NotUnderstood extends Error {}

const NEWER = "Another device has a newer version of this app: reload the page";

const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

export const encodeMessage = (message: SpaceMessage): Uint8Array =>
  encoder.encode(JSON.stringify({ v: versionOf(message), ...message }));

/** The first version that understands it. */
function versionOf(message: SpaceMessage): number {
  if (message.type === "whole") {
    return message.entries.reduce((version, entry) => Math.max(version, versionOf(entry.message)), 2);
  }
  const { runId, answerId, prev, knew }: Readonly<Record<string, unknown>> = { ...message };
  const isNamed = [runId, prev, knew].some((name) => typeof name === "string" && name.startsWith("["));
  if (message.type === "result") return 4;
  return answerId !== undefined || isNamed ? 3 : 1;
}

/** What an entry says; `newer`: of a version that is not known here. Undefined: it is no message. */
export function decodeMessage(body: Uint8Array): SpaceMessage | "newer" | undefined {
  if (body.length > LARGEST) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(body));
  } catch {
    return undefined;
  }
  if (!isRecord(value) || !isIndex(value["v"])) return undefined;
  if (value["v"] > SYNC_VERSION) return "newer";
  return readable(value);
}

/** Whether other devices understand it: what they do not would be sent for ever. */
export const isReadable = (message: SpaceMessage): boolean => readable(message) !== undefined;

const readable = (value: unknown): SpaceMessage | undefined =>
  weigh(value, { depth: DEEPEST }).depth > DEEPEST ? undefined : messageOf(value);

/** What an entry says; undefined: nothing. Errors: {@link NotUnderstood} */
export function understood({ seq, body }: Pick<SpaceEntry, "seq" | "body">): SpaceMessage | undefined {
  const message = decodeMessage(body);
  if (message === "newer") throw new NotUnderstood(NEWER);
  // A whole entry stands for those before it.
  const isPossible = message?.type !== "whole" || message.upTo < seq;
  return isPossible ? message : undefined;
}

/** What an entry of this thread says; undefined: nothing. Errors: {@link NotUnderstood} */
export function messageIn(entry: Pick<SpaceEntry, "seq" | "body">, threadId: string): SpaceMessage | undefined {
  const message = understood(entry);
  return message?.threadId === threadId ? message : undefined;
}

function messageOf(value: unknown): SpaceMessage | undefined {
  if (!isRecord(value)) return undefined;
  const { type, threadId, device } = value;
  if (!isText(type) || !Object.hasOwn(SHAPES, type) || !isText(threadId) || !isDevice(device)) return undefined;
  if (!SHAPES[type as SpaceMessage["type"]](value)) return undefined; // an own key of it
  const message = value as unknown as SpaceMessage; // its fields were checked
  return message.type !== "whole" || areEntries(message) ? message : undefined;
}
