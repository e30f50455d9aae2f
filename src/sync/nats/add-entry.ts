import type { Clock } from "../../platform/clock.js";
import { keyOfThread } from "../thread-key.js";
import { failAsBehind } from "./errors.js";
import { isUnfinished, split } from "./parts.js";
import type { SpaceLog } from "./space-log.js";

/** The largest part, in bytes: a reader holds several, and a slow device must send one within the time-out. */
const PART_BYTES = 512 * 1_024;
/** What is kept free for headers, in bytes. */
const HEADER_BYTES = 1_024;
/** How often an unfinished series of another device is looked at, in ms. */
const LOOK_MS = 200;

export interface NewEntry {
  readonly thread: string;
  readonly body: Uint8Array;
  readonly last: number;
  readonly id: string;
  /** See `Space.add`. */
  readonly isWhole: boolean;
}

type Place =
  /** It is there already. */
  | { readonly is: "added"; readonly seq: number }
  /** Others have added something after `last`. */
  | { readonly is: "behind" }
  /** The seq of the thread's last message: `last`, or that of a part whose writer has died. */
  | { readonly is: "free"; readonly after: number };

/**
 * Adds an entry, in parts where it is large, by compare-and-set on the thread's subject.
 *
 * For the server the parts of an unfinished series count as the thread's last messages; for `last` they do not. So that a
 * writer that died between two of them blocks nobody, the next one goes on after them, once nothing has followed for
 * `staleMs`. A living writer that is passed over fails at its next part. `staleMs` must be longer than a writer waits for
 * the answer to one part.
 *
 * @returns its seq; undefined where others were first. Errors: SpaceOffline, the server lacks `last`; those of the log
 */
export async function addEntry(
  log: SpaceLog,
  entry: NewEntry,
  { clock, staleMs }: { readonly clock: Clock; readonly staleMs: number },
): Promise<number | undefined> {
  // Ids of the server are those of a whole stream, and what may be in a header is limited.
  const key = await keyOfThread(`${entry.thread} ${entry.id}`);
  const pieces = split(entry.body, Math.max(1, Math.min(PART_BYTES, log.maxPayload - HEADER_BYTES)));
  let after = entry.last;
  // Nothing is sent in vain, and no unfinished series left, where the entry is there.
  let isKnown = pieces.length === 1;
  for (;;) {
    if (isKnown) {
      const seq = await publish(log, entry, { key, pieces, after });
      if (seq !== undefined) {
        if (!log.isReplicated) return seq;
        const follower = await log.knownFollower(entry.thread, entry.last, seq);
        return follower.key === key ? follower.seq : undefined;
      }
    }
    isKnown = true;
    const place = await placeFor(log, entry, { key, clock, staleMs });
    if (place.is === "added") return place.seq;
    if (place.is === "behind") return undefined;
    after = place.after;
  }
}

interface Pieces {
  readonly key: string;
  readonly pieces: readonly Uint8Array[];
  readonly after: number;
}

/** @returns the seq of the last part; undefined where something came in between */
async function publish(
  log: SpaceLog,
  { thread, last: base, isWhole }: NewEntry,
  { key, pieces, after }: Pieces,
): Promise<number | undefined> {
  const of = pieces.length;
  let seq: number | undefined = after;
  for (const [at, body] of pieces.entries()) {
    const number = at + 1;
    seq = await log.publish({
      thread,
      body,
      after: seq,
      part: { number, of, base, key },
      isWhole,
      // Where it can be void, it may be added again under its id after another base.
      ...(number === of && { id: log.isReplicated ? `${key}.${base}` : key }),
    });
    if (seq === undefined) return undefined;
  }
  return seq;
}

/** Where an entry can be added, after a look at what is there. */
async function placeFor(
  log: SpaceLog,
  { thread, last }: NewEntry,
  { key, clock, staleMs }: { readonly key: string; readonly clock: Clock; readonly staleMs: number },
): Promise<Place> {
  let seen: number | undefined;
  let since = 0;
  for (;;) {
    // First of all: what comes after it, and is not seen below, is found by the comparison with its seq.
    const message = await log.lastOf(thread);
    // Nothing would tell that it knows more later.
    if ((message?.seq ?? 0) < last) failAsBehind();
    const base = last === 0 ? undefined : await log.at(last);
    if (last !== 0 && (base?.thread !== thread || isUnfinished(base))) return { is: "behind" };
    if (base?.key === key) return { is: "added", seq: last };
    const follower = await log.follower(thread, last);
    if (follower !== undefined) return follower.key === key ? { is: "added", seq: follower.seq } : { is: "behind" };
    if (message === undefined) return { is: "free", after: 0 };
    const { seq, part } = message;
    // Nothing, or void entries only, and unfinished ones of others that were too late.
    if (part === undefined || !isUnfinished(message) || part.base !== last) return { is: "free", after: seq };
    // What is left of this writer's own attempt.
    if (part.key === key) return { is: "free", after: seq };
    const now = clock.elapsed();
    if (seq !== seen) {
      seen = seq;
      since = now;
    } else if (now - since >= staleMs) return { is: "free", after: seq };
    await clock.after(LOOK_MS, log.signal);
  }
}
