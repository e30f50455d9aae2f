/** What the agents say, again and again. */
export const WORD = "word ";

/** Milliseconds on a clock that all contexts of one browser share (to the accuracy that `clockOffset` reports). */
export const stamp = (): number => performance.timeOrigin + performance.now();

/** When an agent emitted, as its host tells over a channel once it has emitted everything. */
export interface Emitted {
  readonly runId: string;
  readonly first: number;
  readonly last: number;
}

/** How often a clock is asked. */
const QUESTIONS = 30;

/** How far another context's clock is from this one's, in ms, by the fastest of several questions. */
export async function clockOffsetBy(ask: () => Promise<number>): Promise<number> {
  let fastest = Infinity;
  let offset = 0;
  for (let i = 0; i < QUESTIONS; i++) {
    const sent = stamp();
    const clock = await ask();
    const back = stamp();
    if (back - sent >= fastest) continue;
    fastest = back - sent;
    offset = clock - (sent + back) / 2;
  }
  return offset;
}

/** Tells all contexts that listen. */
export function say(channel: BroadcastChannel, message: unknown): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no target
  channel.postMessage(message);
}

/** Where agents tell what they {@link Emitted}. */
export const MARKS_CHANNEL = "bench-marks";

/** When the signal of a run's agent aborted, by its host's clock. */
export interface Aborted {
  readonly runId: string;
  readonly at: number;
}

/** Where agents tell when they were {@link Aborted}. */
export const ABORTS_CHANNEL = "bench-aborts";

/** What a host of the bench is started with: a SharedWorker's name is the only thing that it gets before its first line. */
export interface HostConfig {
  readonly dbName: string;
  /** Two hosts of one database differ in it. */
  readonly host: string;
  /** Times storage and ports. */
  readonly probe: boolean;
  /** Its agents are loaded when they run, with what runs them. It has no probe and answers no questions. */
  readonly lazy?: boolean;
  /** It keeps its threads in step with other devices. */
  readonly sync?: DeviceConfig;
}

/** A device has an origin of its own, and with it databases and workers: `device` is a part of the host's name. */
export interface DeviceConfig {
  readonly servers: readonly string[];
  readonly space: string;
  readonly device: string;
}

/** The name of a host's worker. */
export const nameOf = (host: HostConfig): string => JSON.stringify(host);

/** What the probe of a host counted since the last reset. Times in ms. */
export interface Probe {
  readonly appends: number;
  readonly settles: number;
  /** Spent in `put` calls: serialising the record. */
  readonly putMs: number;
  /** From the opening of an appending transaction to its complete event, summed. */
  readonly appendMs: number;
  readonly settleMs: number;
  readonly frames: number;
  /** Spent in `postMessage` of frames: serialising them. */
  readonly postMs: number;
}

/** When a chunk was committed, by its host's clock. */
export interface Commit {
  readonly threadId: string;
  readonly firstSeq: number;
  readonly at: number;
}

/** Beside the runtime: what the bench asks a host, and gets an answer to. */
export type Question = "clock" | "probe" | "commits";
export const questionsChannel = ({ dbName, host }: HostConfig): string => `bench-host-${dbName}-${host}`;

/** The worker that does nothing, and the Web Lock by whose fall its death is known. */
export const IDLE_NAME = "bench-idle";
export const IDLE_LOCK = "bench-idle";

/** What it says to who connects: that it is there, and that it holds its lock. */
export type IdleWord = "here" | "held";
