/** Milliseconds on a clock that all contexts of one browser share (to the accuracy that `clockOffset` reports). */
export const stamp = (): number => performance.timeOrigin + performance.now();

/** When an agent emitted, as its host tells over a channel once it has emitted everything. */
export interface Emitted {
  readonly runId: string;
  readonly first: number;
  readonly last: number;
}

/** Tells all contexts that listen. */
export function say(channel: BroadcastChannel, message: unknown): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no target
  channel.postMessage(message);
}

export const MARKS_CHANNEL = "bench-marks";

/** What a host of the bench is started with: a SharedWorker's name is the only thing that it gets before its first line. */
export interface HostConfig {
  readonly dbName: string;
  /** Two hosts of one database differ in it. */
  readonly host: string;
  /** Times storage and ports. */
  readonly probe: boolean;
}

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
