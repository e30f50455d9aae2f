import type { Channel, OpenChannel } from "../../../src/platform/channel.js";
import type { Clock } from "../../../src/platform/clock.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { Subject } from "rxjs";

/** Random numbers from 0 to 1 that grow from a seed (mulberry32, public domain). */
export type Random = () => number;

export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]!;

/** Something that may happen next. */
export interface Step {
  readonly name: string;
  /** How likely it is, beside the others. */
  readonly weight: number;
  readonly run: () => void;
}

/** What everything that can run by itself does before it waits for the next step. */
export const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Time that passes from one timer to the next, when the schedule says so. */
export class SteppedClock implements Clock {
  private time = 0;
  private readonly timers = new Set<{ readonly due: number; readonly fire: () => void }>();

  now(): number {
    return 1_000_000_000 + this.time;
  }

  elapsed(): number {
    return this.time;
  }

  after(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const fire = (): void => {
        this.timers.delete(timer);
        signal?.removeEventListener("abort", fire);
        resolve();
      };
      const timer = { due: this.time + ms, fire };
      this.timers.add(timer);
      signal?.addEventListener("abort", fire, { once: true });
    });
  }

  /** Fires the timer that is due next. */
  step(): void {
    let next: { readonly due: number; readonly fire: () => void } | undefined;
    for (const timer of this.timers) if (next === undefined || timer.due < next.due) next = timer;
    if (next === undefined || next.due === Infinity) return;
    this.time = Math.max(this.time, next.due);
    next.fire();
  }

  get isWaiting(): boolean {
    return [...this.timers].some(({ due }) => due < Infinity);
  }
}

const WRITES: ReadonlySet<string> = new Set<keyof RunStore>([
  "claim",
  "append",
  "settle",
  "settleForeign",
  "derive",
  "requestStop",
  "updateThread",
  "deleteThread",
  "cut",
  "sweep",
  "repack",
  "addWaiting",
  "moveWaiting",
  "removeWaiting",
  "clearWaiting",
  "updateWaiting",
]);

interface Call {
  readonly name: string;
  readonly isWrite: boolean;
  readonly perform: () => void;
  /** There once it took place. */
  reply?: () => void;
}

/**
 * One host's way to the log. A call takes place at one step and is answered at another. As IndexedDB does, calls that
 * overlap keep their order where one of them writes; reads among themselves do not.
 */
export class SteppedStore {
  readonly store: RunStore;
  private calls: Call[] = [];

  constructor(inner: RunStore) {
    this.store = new Proxy(inner, {
      get: (target, name: keyof RunStore) => {
        if (name === "close") return () => target.close();
        // Some are optional.
        if (target[name] === undefined) return undefined;
        return (
          // What each method takes is checked by whoever calls it.
          ...args: never[]
        ): Promise<unknown> =>
          new Promise((resolve) => {
            const perform = (): void => {
              const result = (target[name] as (...given: never[]) => Promise<unknown>)(...args);
              result.catch(() => undefined);
              call.reply = () => {
                this.calls = this.calls.filter((other) => other !== call);
                resolve(result);
              };
            };
            const call: Call = { name, isWrite: WRITES.has(name), perform };
            this.calls.push(call);
          });
      },
    });
  }

  steps(host: string): Step[] {
    const steps: Step[] = [];
    /** Calls before that are not answered, or have not taken place. */
    let writes = 0;
    let reads = 0;
    for (const call of this.calls) {
      const isFree = writes === 0 && (!call.isWrite || reads === 0);
      if (isFree && call.reply === undefined) {
        steps.push({ name: `${host} ${call.name}`, weight: 4, run: call.perform });
      } else if (isFree && call.reply !== undefined) {
        steps.push({ name: `${host} ${call.name} answered`, weight: 4, run: call.reply });
      }
      if (call.isWrite) writes++;
      else reads++;
    }
    return steps;
  }

  /** The host dies: some of what it asked for takes place, in its order, and nothing is answered. */
  die(random: Random): void {
    const count = Math.floor(random() * (this.calls.length + 1));
    for (const call of this.calls.splice(0).slice(0, count)) if (call.reply === undefined) call.perform();
  }
}

/** Channels whose messages arrive when the schedule says so: in order from each to each, some never. */
export class SteppedChannels {
  private readonly members = new Set<Subject<unknown>>();
  private links: { readonly to: Subject<unknown>; readonly from: Subject<unknown>; readonly queue: unknown[] }[] = [];

  constructor(
    private readonly random: Random,
    private readonly lossy: boolean,
  ) {}

  readonly open: OpenChannel = (): Channel => {
    const own = new Subject<unknown>();
    for (const other of this.members) {
      this.links.push({ from: own, to: other, queue: [] }, { from: other, to: own, queue: [] });
    }
    this.members.add(own);
    return {
      post: (message) => {
        for (const { from, queue } of this.links) if (from === own) queue.push(structuredClone(message));
      },
      messages$: own,
      close: () => {
        this.members.delete(own);
        this.links = this.links.filter(({ from, to, queue }) => to !== own && (from !== own || queue.length > 0));
      },
    };
  };

  steps(): Step[] {
    return this.links
      .filter(({ queue }) => queue.length > 0)
      .map(({ to, queue }) => ({
        name: "message",
        weight: 3,
        run: () => {
          const message = queue.shift();
          if (!this.lossy || this.random() > 0.1) to.next(message);
        },
      }));
  }
}
