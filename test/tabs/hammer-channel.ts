import { NEVER } from "rxjs";
import type { OpenChannel } from "../../src/platform/channel.js";
import { type Clock, systemClock } from "../../src/platform/clock.js";
import type { LockMessage, LockMessageType } from "../../src/lock/protocol.js";
import { pick } from "./hammer-random.js";

/** What a channel does to the messages of its host. */
export const FAULTS = [
  /** Loses every other one. */
  "drops",
  /** Says each two to four times. */
  "doubles",
  /** Says each up to 300 ms late, so that they overtake one another. */
  "delays",
  /** Says others beside them: well formed, of all types, about threads and runs that are there. */
  "forges",
  /** All of that at once. */
  "misbehaves",
  /** Loses all of them, and hears nothing. */
  "deafens",
] as const;
export type Fault = (typeof FAULTS)[number];

/** The fault of this name. */
export const faultOf = (name: string | undefined): Fault | undefined => FAULTS.find((fault) => fault === name);

const LATEST_MS = 300;
/** How often it says something made up while nobody says anything, in ms. */
const FORGE_EVERY_MS = 100;

/**
 * What may be forged. A `stop` is not among it: it does stop the run, because whoever can post on the origin's channel
 * could as well call `stop`.
 */
const FORGED: readonly LockMessageType[] = [
  "claim",
  "refused",
  "wait",
  "started",
  "advanced",
  "ended",
  "stop-ack",
  "changed",
];

type Posted = LockMessage & { readonly v: number };

/** Channels of a host whose messages meet with this fault. */
export function faultyChannel(
  open: OpenChannel,
  fault: Fault,
  random: () => number,
  clock: Clock = systemClock,
): OpenChannel {
  const has = (one: Fault): boolean => fault === one || fault === "misbehaves";
  return (name) => {
    const channel = open(name);
    const closed = new AbortController();
    /** What it has heard and said, to forge from. */
    const known: Posted[] = [];
    const note = (message: unknown): void => {
      // Whatever is said on this channel is the protocol's.
      known.push(message as Posted);
      if (known.length > 100) known.shift();
    };
    const say = (message: unknown): void => {
      if (has("drops") && random() < 0.5) return;
      const times = has("doubles") ? 2 + Math.floor(random() * 3) : 1;
      for (let n = 0; n < times; n++) {
        if (has("delays")) void clock.after(random() * LATEST_MS).then(() => channel.post(message));
        else channel.post(message);
      }
    };
    const forge = (): void => {
      if (known.length === 0) return;
      const made: Posted = {
        ...pick(random, known),
        type: pick(random, FORGED),
        from: random() < 0.5 ? pick(random, known).from : "nobody",
        runIndex: Math.floor(random() * 4),
        seq: Math.floor(random() * 1_000),
      };
      channel.post(made);
    };
    const forgeOn = async (): Promise<void> => {
      while (!closed.signal.aborted) {
        await clock.after(FORGE_EVERY_MS, closed.signal);
        forge();
      }
    };
    if (fault === "deafens") return { messages$: NEVER, post: () => undefined, close: () => channel.close() };
    const hearing = channel.messages$.subscribe(note);
    if (has("forges")) void forgeOn();
    return {
      messages$: channel.messages$,
      post(message) {
        note(message);
        say(message);
        if (has("forges")) for (let n = 0; n < 3; n++) forge();
      },
      close() {
        closed.abort();
        hearing.unsubscribe();
        channel.close();
      },
    };
  };
}
