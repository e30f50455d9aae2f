import type { DeviceName, NamedRun } from "../storage/devices.js";
import type { RunnerErrorData } from "../wire/shapes.js";
import type { AskedRun } from "./asked-run.js";
import type { SpaceMessage, SentChunk } from "./messages.js";
import { runName } from "./run-name.js";

/*
 * What the entries of one thread come to. A pure function of them, so every device comes to the same: which runs there
 * are, which is the end of the active path, who may start the next one.
 */

/** A run whose end has not come. */
export interface OpenRun {
  readonly device: DeviceName;
  /** The name of the run that it continues. */
  readonly prev: string | null;
  /** The seq of the next event. */
  readonly nextSeq: number;
}

/** A run that is about to start, or live: no other device starts one while this one's device is online. */
export interface SpaceLock extends NamedRun {
  readonly device: DeviceName;
  /** Made by a claim: no other device begins the run. */
  readonly isClaimed?: true;
  /** It is for the first server that claims it. */
  readonly asks?: AskedRun;
  /** What a server has claimed it for. */
  readonly asked?: Pick<AskedRun, "at" | "fingerprint">;
}

export interface ThreadState {
  /** The seq of the thread's last entry; 0: there is none. */
  readonly last: number;
  /** That of the last entry of a run. */
  readonly lastRun: number;
  /** The name of the run at the end of the active path. */
  readonly active: string | null;
  /** By name. */
  readonly open: Readonly<Record<string, OpenRun>>;
  readonly lock?: SpaceLock;
  /** A run that was asked for, and that no server can start. */
  readonly refused?: { readonly runId: string; readonly error: RunnerErrorData };
  /** Ids of the tool calls of a run that have their results. */
  readonly results?: { readonly of: string; readonly toolCallIds: readonly string[] };
  readonly deleted?: true;
  readonly title?: string;
  readonly archived?: boolean;
  readonly pinned?: boolean;
}

export const NO_ENTRIES: ThreadState = { last: 0, lastRun: 0, active: null, open: {} };

/** What an entry means for the log of a device. `nothing`: it came too late, or from whom it could not come. */
export type Outcome =
  | "nothing"
  /** A run begins: at the end of the active path, or beside it. */
  | "active-run"
  | "run-beside"
  | "events"
  | "end"
  | "result"
  | "abandon"
  | "thread"
  | "active"
  | "deleted";

export interface Folded {
  readonly state: ThreadState;
  readonly outcome: Outcome;
}

/** The chunks that have events after those known. What is sent again, because servers have changed it, may begin earlier. */
export const newChunks = (chunks: readonly SentChunk[], nextSeq: number): readonly SentChunk[] =>
  chunks.filter(({ firstSeq, count }) => firstSeq + count > nextSeq);

const continues = (chunks: readonly SentChunk[], nextSeq: number): boolean => {
  let next = Math.min(nextSeq, chunks[0]?.firstSeq ?? nextSeq);
  for (const { firstSeq, count } of chunks) {
    if (firstSeq !== next) return false;
    next += count;
  }
  return true;
};

const idsOf = ({ runId, answerId }: NamedRun): NamedRun => ({ runId, ...(answerId !== undefined && { answerId }) });

/** What a device has asked for, of a run that another one claims. */
function askedFor({ lock }: ThreadState, name: string): Pick<SpaceLock, "asked"> {
  const what = lock !== undefined && runName(lock) === name ? (lock.asks ?? lock.asked) : undefined;
  return what === undefined ? {} : { asked: { at: what.at, fingerprint: what.fingerprint } };
}

const without = <T>(record: Readonly<Record<string, T>>, key: string): Readonly<Record<string, T>> => {
  const { [key]: _gone, ...rest } = record;
  return rest;
};

const unlocked = (state: ThreadState, name: string): ThreadState => {
  if (state.lock === undefined || runName(state.lock) !== name) return state;
  const { lock: _lock, ...rest } = state;
  return rest;
};

/**
 * The thread after one more entry.
 *
 * - A run continues the active path where its device knew that path's end. Else somebody else was first: it stays beside,
 *   and whoever sees it may take it up.
 * - A deletion counts where its device knew every run. What was added unseen keeps the thread.
 */
export function fold(before: ThreadState, seq: number, message: SpaceMessage): Folded {
  const state: ThreadState = { ...before, last: seq };
  const nothing: Folded = { state, outcome: "nothing" };
  switch (message.type) {
    case "claim": {
      const { device, asks } = message;
      const { refused: _refused, ...rest } = state;
      const what = asks === undefined ? askedFor(state, runName(message)) : { asks };
      // It was added behind everything that its device knew: that device has decided that it may.
      return {
        state: { ...rest, lock: { ...idsOf(message), device, isClaimed: true, ...what } },
        outcome: "nothing",
      };
    }
    case "release": {
      const { runId, device, error } = message;
      // One that is asked for, any device may take back.
      const mayRelease = state.lock?.device.id === device.id || state.lock?.asks !== undefined;
      if (!mayRelease || state.lock?.runId !== runId) return nothing;
      const { lock: _lock, ...rest } = state;
      return {
        state: { ...rest, ...(error !== undefined && { refused: { runId, error } }) },
        outcome: "nothing",
      };
    }
    case "run": {
      const { device, knew } = message;
      const name = runName(message);
      // Another device may have sent a copy; the one that sends it now has more.
      if (openRun(state, name, device) !== undefined) return nothing;
      // A server that was cut off behind its claim: since then the run was asked for again.
      const { lock: held } = state;
      if (held?.isClaimed === true && runName(held) === name && held.device.id !== device.id) return nothing;
      const { deleted, ...rest } = state;
      const isActive = deleted === true || state.active === null || knew === state.active;
      const open = { ...state.open, [name]: { device, prev: message.prev, nextSeq: 0 } };
      const lock = held ?? { ...idsOf(message), device };
      return {
        state: { ...rest, open, lastRun: seq, ...(isActive && { active: name, lock }) },
        outcome: isActive ? "active-run" : "run-beside",
      };
    }
    case "events": {
      const run = openRun(state, message.runId, message.device);
      const chunks = newChunks(message.chunks, run?.nextSeq ?? 0);
      const last = chunks.at(-1);
      if (run === undefined || last === undefined || !continues(chunks, run.nextSeq)) return nothing;
      const nextSeq = last.firstSeq + last.count;
      return {
        state: { ...state, lastRun: seq, open: { ...state.open, [message.runId]: { ...run, nextSeq } } },
        outcome: "events",
      };
    }
    case "end": {
      const run = openRun(state, message.runId, message.device);
      if (run === undefined || newChunks([message.chunk], run.nextSeq).length === 0) return nothing;
      if (!continues([message.chunk], run.nextSeq)) return nothing;
      return {
        state: { ...unlocked(state, message.runId), open: without(state.open, message.runId), lastRun: seq },
        outcome: "end",
      };
    }
    case "abandon": {
      const run = openRun(state, message.runId, message.device);
      if (run === undefined) return nothing;
      // Where nothing of it came, it is as if it had never begun.
      const active = state.active === message.runId && run.nextSeq === 0 ? run.prev : state.active;
      return {
        state: { ...unlocked(state, message.runId), open: without(state.open, message.runId), active },
        outcome: "abandon",
      };
    }
    case "result": {
      const { runId: of, result } = message;
      if (!takesResult(state, of, result.toolCallId)) return nothing;
      const toolCallIds = [...resultsOf(state, of), result.toolCallId];
      return { state: { ...state, results: { of, toolCallIds } }, outcome: "result" };
    }
    case "thread": {
      if (state.deleted === true) return nothing;
      const { title, archived, pinned } = message;
      return {
        state: {
          ...state,
          ...(title !== undefined && { title }),
          ...(archived !== undefined && { archived }),
          ...(pinned !== undefined && { pinned }),
        },
        outcome: "thread",
      };
    }
    case "active":
      if (state.deleted === true || state.active !== message.knew || state.active === null) return nothing;
      return { state: { ...state, active: message.runId }, outcome: "active" };
    // What it stands for is folded, if it has not been.
    case "whole":
      return nothing;
    case "deleted":
      if (message.knew !== state.lastRun) return nothing;
      return { state: { ...NO_ENTRIES, last: seq, lastRun: seq, deleted: true }, outcome: "deleted" };
  }
}

export const resultsOf = ({ results }: ThreadState, name: string): readonly string[] =>
  results?.of === name ? results.toolCallIds : [];

/** Whether the result of a tool call counts: nobody goes on from its run, or has given another one. */
export const takesResult = (state: ThreadState, name: string, toolCallId: string): boolean =>
  state.lock === undefined && isEnd(state, name) && !resultsOf(state, name).includes(toolCallId);

/** The run is the end of the active path, and has ended. */
export const isEnd = ({ active, open }: ThreadState, name: string): boolean =>
  active === name && !Object.hasOwn(open, name);

/** The open run of this name, if this device sends it. */
export function openRun({ open }: ThreadState, name: string, device: DeviceName): OpenRun | undefined {
  const run = Object.hasOwn(open, name) ? open[name] : undefined;
  return run?.device.id === device.id ? run : undefined;
}

/** Whether the thread is held for this request: another device may have asked for another answer under the same run id. */
export function isLockOf(lock: SpaceLock, asked: NamedRun & Pick<AskedRun, "fingerprint">): boolean {
  const what = lock.asks ?? lock.asked;
  if (what === undefined) return runName(lock) === runName(asked);
  return lock.runId === asked.runId && what.fingerprint === asked.fingerprint;
}
