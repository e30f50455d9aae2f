import { getEventListeners } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Subject } from "rxjs";
import { onTestFinished } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";

/** What is left of what came and went: counts of this whole process. */
export interface Lasting {
  /** Listeners of signals that somebody still has and that have not aborted. */
  readonly abortListeners: number;
  /** Listeners of BroadcastChannels. */
  readonly channelListeners: number;
  /** Who has subscribed to subjects that somebody still has: of channels, of changes of threads. */
  readonly subscribers: number;
  /** Ports that somebody listens to. */
  readonly ports: number;
  /** Signals that follow others for good. */
  readonly followers: number;
}

/** Frees all that nobody refers to. */
function collector(): () => Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  return async () => {
    // What a WeakRef gave out is kept until the task ends.
    await nextTask();
    collect();
  };
}

/** Counts from now on, to the end of the test. */
export function countLasting(): () => Promise<Lasting> {
  const collect = collector();
  const seen = { signals: new Set<WeakRef<AbortSignal>>(), channels: new Set<WeakRef<BroadcastChannel>>() };
  const { addEventListener } = EventTarget.prototype;
  const { any } = AbortSignal;
  const { subscribe } = Subject.prototype;
  const subjects = new Set<WeakRef<Subject<unknown>>>();
  let followers = 0;
  const known = new WeakSet<object>();
  // By hand: a spy keeps what it was called on.
  EventTarget.prototype.addEventListener = function (this: EventTarget, ...given) {
    if (!known.has(this)) {
      known.add(this);
      if (this instanceof AbortSignal) seen.signals.add(new WeakRef(this));
      if (this instanceof BroadcastChannel) seen.channels.add(new WeakRef(this));
    }
    return addEventListener.apply(this, given);
  };
  Subject.prototype.subscribe = function (this: Subject<unknown>, ...given: []) {
    if (!known.has(this)) {
      known.add(this);
      subjects.add(new WeakRef(this));
    }
    return subscribe.apply(this, given);
  };
  AbortSignal.any = (signals) => {
    followers++;
    return any.call(AbortSignal, signals);
  };
  onTestFinished(() => {
    EventTarget.prototype.addEventListener = addEventListener;
    AbortSignal.any = any;
    Reflect.deleteProperty(Subject.prototype, "subscribe");
  });
  const listeners = (targets: Iterable<WeakRef<EventTarget>>, type: string): number => {
    let sum = 0;
    for (const reference of targets) {
      const target = reference.deref();
      const isOver = target === undefined || (target instanceof AbortSignal && target.aborted);
      if (!isOver) sum += getEventListeners(target, type).length;
    }
    return sum;
  };
  return async () => {
    await collect();
    return {
      abortListeners: listeners(seen.signals, "abort"),
      channelListeners: listeners(seen.channels, "message"),
      subscribers: [...subjects].reduce((sum, subject) => sum + (subject.deref()?.observers.length ?? 0), 0),
      ports: process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length,
      followers,
    };
  };
}
