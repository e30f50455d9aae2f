import { openBroadcastChannel, type Channel, type OpenChannel } from "./channel.js";
import { systemClock, type Clock } from "./clock.js";
import type { HeldLock, Lives } from "./locks.js";
import { beatChannelName } from "./names.js";
import { Ticker } from "./ticker.js";

/** History of the messages: 1, the first. Those of another version are not heard. */
const BEAT_PROTOCOL = 1;

/** After so many ticks without a beat its holder is asked for one, at each tick. */
const ASK_TICKS = 2;
/** After so many ticks without a beat, the holder counts as dead. */
const DEAD_TICKS = 8;

/**
 * - `lives`: who posts it holds these names.
 * - `released`: it has let go of these.
 * - `who`: whoever holds one of these is asked to say so.
 */
interface BeatMessage {
  readonly v: typeof BEAT_PROTOCOL;
  readonly type: "lives" | "released" | "who";
  readonly names: readonly string[];
}

function isBeatMessage(value: unknown): value is BeatMessage {
  const { v, type, names } = (value ?? {}) as Partial<Record<keyof BeatMessage, unknown>>;
  return (
    v === BEAT_PROTOCOL &&
    (type === "lives" || type === "released" || type === "who") &&
    Array.isArray(names) &&
    names.every((name) => typeof name === "string")
  );
}

interface Watch {
  readonly name: string;
  /** How many ticks nothing was heard of it. */
  silent: number;
  readonly end: (free: boolean) => void;
}

export interface BeatOptions {
  readonly clock?: Clock;
  readonly openChannel?: OpenChannel;
}

/**
 * Life locks where there are no Web Locks: who holds one says so about each second, over a BroadcastChannel, and its
 * silence is its end. They are hints: a message can be lost or forged and a living context be too busy to speak, so
 * what follows from an end must be safe when there was none.
 *
 * A timer runs only while something is held or watched.
 */
export class Beats implements Lives {
  private readonly held = new Map<string, () => void>();
  private readonly watches = new Set<Watch>();
  private readonly channel: Channel;
  private readonly ticker: Ticker;
  private readonly hearing: { unsubscribe(): void };
  private closed = false;

  /**
   * @param onAsk other contexts ask for a beat of these names, of whatever kind they are
   * @param onQuiet a watched context has said nothing for some ticks and is asked for a beat
   */
  constructor(
    { clock = systemClock, openChannel = openBroadcastChannel }: BeatOptions = {},
    private readonly onAsk: (names: readonly string[]) => void = () => undefined,
    private readonly onQuiet: () => void = () => undefined,
  ) {
    this.channel = openChannel(beatChannelName);
    this.hearing = this.channel.messages$.subscribe((message) => isBeatMessage(message) && this.hear(message));
    this.ticker = new Ticker(
      clock,
      () => !this.closed && this.held.size + this.watches.size > 0,
      (late) => this.tick(late),
    );
  }

  hold(name: string): Promise<HeldLock> {
    let end!: () => void;
    const gone = new Promise<void>((resolve) => (end = resolve));
    this.held.set(name, end);
    this.post("lives", [name]);
    this.ticker.adjust();
    return Promise.resolve({
      release: () => {
        // The name may be held anew by now.
        if (this.held.get(name) === end) this.letGo([name]);
        return gone;
      },
      gone,
    });
  }

  whenFree(name: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || this.closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const aborted = (): void => watch.end(false);
      const watch: Watch = {
        name,
        silent: 0,
        end: (free) => {
          this.watches.delete(watch);
          signal.removeEventListener("abort", aborted);
          this.ticker.adjust();
          resolve(free);
        },
      };
      signal.addEventListener("abort", aborted, { once: true });
      this.watches.add(watch);
      this.ticker.adjust();
    });
  }

  /** Asks whoever holds these names, of whatever kind, for a beat. */
  ask(names: readonly string[]): void {
    this.post("who", names);
  }

  /** Lets go of what is held; what is watched counts as aborted. */
  close(): void {
    if (this.held.size > 0) this.letGo([...this.held.keys()]);
    this.closed = true;
    for (const watch of this.watches) watch.end(false);
    this.hearing.unsubscribe();
    this.channel.close();
  }

  private letGo(names: readonly string[]): void {
    for (const name of names) {
      this.held.get(name)?.();
      this.held.delete(name);
    }
    this.post("released", names);
    this.released(names);
    this.ticker.adjust();
  }

  private tick(late: boolean): void {
    if (this.held.size > 0) this.beat();
    const quiet = new Set<string>();
    for (const watch of this.watches) {
      if (this.held.has(watch.name)) continue;
      if (!late) watch.silent++;
      if (watch.silent >= DEAD_TICKS) watch.end(true);
      else if (watch.silent >= ASK_TICKS) quiet.add(watch.name);
    }
    if (quiet.size === 0) return;
    this.ask([...quiet]);
    this.onQuiet();
  }

  private hear({ type, names }: BeatMessage): void {
    if (type === "released") return this.released(names);
    if (type === "lives") {
      for (const watch of this.watches) if (names.includes(watch.name)) watch.silent = 0;
      return;
    }
    if (names.some((name) => this.held.has(name))) this.beat();
    this.onAsk(names);
  }

  private released(names: readonly string[]): void {
    for (const watch of this.watches) if (names.includes(watch.name)) watch.end(true);
  }

  private beat(): void {
    this.post("lives", [...this.held.keys()]);
  }

  private post(type: BeatMessage["type"], names: readonly string[]): void {
    this.channel.post({ v: BEAT_PROTOCOL, type, names } satisfies BeatMessage);
  }
}

/** The life locks of a context that competes for no thread (a tab), where there are no Web Locks. */
export function beatLives(options?: BeatOptions): Lives & { close(): void } {
  return new Beats(options);
}
