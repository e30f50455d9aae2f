import { Observable, type MonoTypeOperatorFunction } from "rxjs";
import { onTestFinished } from "vitest";
import { ChannelLives } from "../../../src/platform/channel-lives.js";
import type { Channel, OpenChannel } from "../../../src/platform/channel.js";
import { nextTask } from "../../../src/platform/clock.js";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";
import type { Lives } from "../../../src/platform/locks.js";
import { DrivenClock } from "./driven-clock.js";

export const SECOND_MS = 1_000;
/** More seconds than any silence that means something. */
export const LONG = 30;

export interface LivesWorldContext {
  readonly lives: Lives & { close?(): void };
  /** Ends it without a word, as a killed process does. */
  die(): Promise<void> | void;
}

/** Several contexts that hear of each other's ends. */
export interface LivesWorld {
  context(): LivesWorldContext;
  /** Lets a second pass in all contexts that live, and what they do in it come to its end. */
  second(): Promise<void>;
}

/** Lets seconds pass until something is so. @returns how many passed; more than {@link LONG}: it never was */
export async function secondsUntil(world: LivesWorld, isSo: () => boolean | Promise<boolean>): Promise<number> {
  for (let seconds = 0; seconds <= LONG; seconds++) {
    if (await isSo()) return seconds;
    await world.second();
  }
  return Number.POSITIVE_INFINITY;
}

/** Whether a promise has settled by now. */
export function settled(promise: Promise<unknown>): () => boolean {
  let is = false;
  const note = (): void => {
    is = true;
  };
  promise.then(note, note);
  return () => is;
}

/** Holds back what comes while `frozen` says so: it is heard when `later` is called. */
const delayed =
  (frozen: () => boolean, later: (() => void)[]): MonoTypeOperatorFunction<unknown> =>
  (messages$) =>
    new Observable((subscriber) =>
      messages$.subscribe((message) => {
        if (frozen()) later.push(() => subscriber.next(message));
        else subscriber.next(message);
      }),
    );

export interface LivesContextOptions {
  readonly openChannel?: OpenChannel;
}

/** A context without Web Locks. */
export interface LivesContext extends LivesWorldContext {
  readonly clock: DrivenClock;
  /**
   * - `throttled`: the world's seconds pass it by, but it hears.
   * - `frozen`: it hears nothing either, or only when it wakes.
   */
  is: "awake" | "throttled" | "frozen";
}

/** Contexts without Web Locks, whose time the test drives. */
export class ChannelWorld implements LivesWorld {
  private readonly contexts = new Set<LivesContext>();
  private readonly unheard = new Map<LivesContext, (() => void)[]>();

  constructor(
    readonly openChannel: OpenChannel = inProcessChannels(),
    /** Resolves when what was said is heard, and the answers too. */
    private readonly heard: () => Promise<void> = nextTask,
  ) {}

  context({ openChannel = this.openChannel }: LivesContextOptions = {}): LivesContext {
    const clock = new DrivenClock();
    const unheard: (() => void)[] = [];
    const channels: Channel[] = [];
    const lives = new ChannelLives({
      clock,
      openChannel: (name) => {
        const channel = openChannel(name);
        channels.push(channel);
        return { ...channel, messages$: channel.messages$.pipe(delayed(() => context.is === "frozen", unheard)) };
      },
    });
    const context: LivesContext = {
      lives,
      clock,
      is: "awake",
      die: () => {
        this.contexts.delete(context);
        for (const channel of channels) channel.close();
      },
    };
    this.contexts.add(context);
    this.unheard.set(context, unheard);
    onTestFinished(() => lives.close());
    return context;
  }

  async second(): Promise<void> {
    for (const context of this.contexts) if (context.is === "awake") context.clock.pass(SECOND_MS);
    await this.heard();
  }

  /** Wakes a context after so long: its timers fire late, and once; then it hears what was said meanwhile. */
  async wake(context: LivesContext, ms: number): Promise<void> {
    context.clock.pass(ms);
    await this.heard();
    context.is = "awake";
    for (const hear of this.unheard.get(context)?.splice(0) ?? []) hear();
    await this.heard();
  }
}
