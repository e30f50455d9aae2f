/**
 * Bodies that are larger than a message of NATS may be are written as a series of parts. Each part is chained to the one
 * before it by compare-and-set on the thread's subject, so the parts of an entry stand there without anything in between,
 * and a series that another message interrupts can never be finished.
 */

import { failAsBehind } from "./errors.js";

/** What a message says of its entry, in a header. A small entry is a series of one part. */
export interface Part {
  /** From 1. */
  readonly number: number;
  readonly of: number;
  /** The seq of the thread's last entry, which this one follows: unfinished series and void entries do not count. */
  readonly base: number;
  /** The key of the entry. */
  readonly key: string;
}

/** A message of the stream. */
export interface LogMessage {
  readonly seq: number;
  readonly thread: string;
  readonly body: Uint8Array;
  /** The key of the entry; undefined: of another program. */
  readonly key: string | undefined;
  readonly part: Part | undefined;
  /** Its entry stands for all before it: they may be removed. */
  readonly isWhole: boolean;
  /** The seq of the message before it in its thread, which it was written after; undefined: not known. */
  readonly before: number | undefined;
}

/** The header of an entry that stands for all before it. */
export const WHOLE_HEADER = "Agui-Whole";

/** The header of a part. */
export const PART_HEADER = "Agui-Part";

export const encodePart = ({ number, of, base, key }: Part): string => `${number}/${of} ${base} ${key}`;

/** Undefined for what is no part. */
export function decodePart(text: string): Part | undefined {
  const found = /^(\d{1,9})\/(\d{1,9}) (\d{1,16}) ([A-Za-z0-9_-]+)$/.exec(text);
  if (found === null) return undefined;
  const [number = 0, of = 0, base = 0] = found.slice(1, 4).map(Number);
  const key = found[4] ?? "";
  return number >= 1 && number <= of ? { number, of, base, key } : undefined;
}

export const isUnfinished = ({ part }: LogMessage): boolean => part !== undefined && part.number < part.of;

/** The body in pieces of at most `size` bytes, one at least. */
export function split(body: Uint8Array, size: number): readonly Uint8Array[] {
  const count = Math.max(1, Math.ceil(body.length / size));
  return Array.from({ length: count }, (_, at) => body.subarray(at * size, (at + 1) * size));
}

export function join(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return first;
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Where messages are read again. */
interface Messages {
  /** @returns undefined if it is not there any more */
  at(seq: number): Promise<LogMessage | undefined>;
}

/** How much of unfinished series is kept, in bytes. More of them are read again when their last part has come. */
const KEPT_BYTES = 16 * 1_024 * 1_024;

interface Series {
  readonly key: string;
  readonly pieces: Uint8Array[];
  lastSeq: number;
}

/** Puts the parts of a reader's entries together. */
export class Assembly {
  private readonly series = new Map<string, Series>();
  private bytes = 0;

  /** @returns the body of the entry that this message completes, if it does. Errors: those of `log` */
  async take(message: LogMessage, log: Messages): Promise<Uint8Array | undefined> {
    const { thread, part, body, before, seq } = message;
    const begun = this.series.get(thread);
    if (part === undefined) {
      this.drop(thread);
      return body;
    }
    const { key, number } = part;
    const continues = begun?.key === key && begun.lastSeq === before && begun.pieces.length === number - 1;
    if (number === part.of) {
      const pieces = continues ? [...begun.pieces, body] : await readBack(message, part, log);
      this.drop(thread);
      return pieces && join(pieces);
    }
    if (continues) {
      begun.pieces.push(body);
      begun.lastSeq = seq;
      this.bytes += body.length;
    } else {
      this.drop(thread);
      if (number > 1) return undefined;
      this.series.set(thread, { key, pieces: [body], lastSeq: seq });
      this.bytes += body.length;
    }
    for (const oldest of this.series.keys()) {
      if (this.bytes <= KEPT_BYTES) break;
      this.drop(oldest);
    }
    return undefined;
  }

  private drop(thread: string): void {
    const series = this.series.get(thread);
    if (series === undefined) return;
    this.series.delete(thread);
    for (const { length } of series.pieces) this.bytes -= length;
  }
}

/** Whether the parts before a last one are there. Errors: as {@link readBack} */
export const isComplete = async (last: LogMessage, log: Messages): Promise<boolean> =>
  last.part === undefined || (await readBack(last, last.part, log)) !== undefined;

/**
 * The pieces of a series whose last part was read, where the reader began in the middle of it. Errors: SpaceOffline, the server
 * that answers is behind; those of `log`
 */
async function readBack(
  last: LogMessage,
  { of, key }: Part,
  log: Messages,
): Promise<readonly Uint8Array[] | undefined> {
  const pieces = [last.body];
  let { before } = last;
  for (let number = of - 1; number >= 1; number--) {
    if (before === undefined) return undefined;
    let message = await log.at(before);
    if (message === undefined) {
      if ((await log.at(last.seq)) === undefined) failAsBehind();
      // A server that has the last one has those before it.
      message = await log.at(before);
    }
    if (message?.part?.number !== number || message.part.key !== key || message.thread !== last.thread) {
      return undefined;
    }
    pieces.unshift(message.body);
    before = message.before;
  }
  return pieces;
}
