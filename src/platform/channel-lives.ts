import { onAbort } from "./abort.js";
import { openBroadcastChannel, type OpenChannel } from "./channel.js";
import { systemClock, type Clock } from "./clock.js";
import { processLockManager } from "./in-process-locks.js";
import { locksOf, type HeldLock, type Lives } from "./locks.js";
import { livesChannelName } from "./names.js";

/**
 * History of the messages: 1, the first. Other versions are ignored. Older builds say `lives` each second, unasked, and
 * answer `who` as well, so old and new builds notice each other.
 */
const PROTOCOL = 1;
/** Interval of the questions, in ms. */
const ASK_MS = 2_000;
/** A holder counts as dead after so many unanswered questions in a row. */
const DEAD_AFTER = 4;

/** `who`: a question to the holders of these names. `lives`: a holder's answer. `released`: they are no longer held. */
interface LifeMessage {
  readonly v: typeof PROTOCOL;
  readonly type: "who" | "lives" | "released";
  readonly names: readonly string[];
}

function isLifeMessage(value: unknown): value is LifeMessage {
  const { v, type, names } = (value ?? {}) as Partial<Record<keyof LifeMessage, unknown>>;
  return (
    v === PROTOCOL &&
    (type === "who" || type === "lives" || type === "released") &&
    Array.isArray(names) &&
    names.every((name) => typeof name === "string")
  );
}

interface Watch {
  readonly name: string;
  /** Questions in a row without an answer. */
  unanswered: number;
  readonly end: (free: boolean) => void;
}

export interface ChannelLivesOptions {
  readonly clock?: Clock;
  readonly openChannel?: OpenChannel;
}

/**
 * Life locks without Web Locks: watchers of a name ask for its holder over a BroadcastChannel, and treat silence as its
 * end. That is only a hint: messages can be lost or forged, and a living holder can be too busy to answer. So the
 * reaction to an end must be safe if there was none. A holder only answers and needs no timer, so throttled holders
 * answer, too.
 */
export class ChannelLives implements Lives {
  private readonly held = new Map<string, () => void>();
  private readonly watches = new Set<Watch>();
  private readonly clock: Clock;
  private readonly channel;
  private readonly hearing: { unsubscribe(): void };
  private asking = false;
  private closed = false;

  constructor({ clock = systemClock, openChannel = openBroadcastChannel }: ChannelLivesOptions = {}) {
    this.clock = clock;
    this.channel = openChannel(livesChannelName);
    this.hearing = this.channel.messages$.subscribe((message) => isLifeMessage(message) && this.hear(message));
  }

  hold(name: string): Promise<HeldLock> {
    let end!: () => void;
    const gone = new Promise<void>((resolve) => (end = resolve));
    this.held.set(name, end);
    return Promise.resolve({
      release: () => {
        // The name may have been taken again.
        if (this.held.get(name) === end) this.letGo([name]);
        return gone;
      },
      gone,
    });
  }

  whenFree(name: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || this.closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const over = new AbortController();
      const watch: Watch = {
        name,
        unanswered: 0,
        end: (free) => {
          this.watches.delete(watch);
          over.abort();
          resolve(free);
        },
      };
      onAbort(signal, () => watch.end(false), over.signal);
      this.watches.add(watch);
      if (!this.asking) void this.ask();
    });
  }

  /** Releases what is held; ends all watches as aborted. */
  close(): void {
    this.letGo([...this.held.keys()]);
    this.closed = true;
    for (const watch of this.watches) watch.end(false);
    this.hearing.unsubscribe();
    this.channel.close();
  }

  /** Asks while any name is watched. */
  private async ask(): Promise<void> {
    this.asking = true;
    while (this.watches.size > 0) {
      const asked = [...this.watches].filter(({ name }) => !this.held.has(name));
      for (const watch of asked) watch.unanswered++;
      if (asked.length > 0) this.post("who", [...new Set(asked.map(({ name }) => name))]);
      const since = this.clock.elapsed();
      await this.clock.after(ASK_MS);
      // This context was suspended (frozen, blocked, throttled): answers may be waiting in its queue.
      if (this.clock.elapsed() - since > 2 * ASK_MS) continue;
      for (const watch of asked) if (watch.unanswered >= DEAD_AFTER) watch.end(true);
    }
    this.asking = false;
  }

  private hear({ type, names }: LifeMessage): void {
    if (type === "who") {
      const ours = names.filter((name) => this.held.has(name));
      if (ours.length > 0) this.post("lives", ours);
      return;
    }
    for (const watch of this.watches) {
      if (!names.includes(watch.name)) continue;
      if (type === "lives") watch.unanswered = 0;
      else watch.end(true);
    }
  }

  private letGo(names: readonly string[]): void {
    for (const name of names) {
      this.held.get(name)?.();
      this.held.delete(name);
    }
    if (names.length > 0) this.post("released", names);
    // A channel does not hear itself.
    this.hear({ v: PROTOCOL, type: "released", names });
  }

  private post(type: LifeMessage["type"], names: readonly string[]): void {
    this.channel.post({ v: PROTOCOL, type, names } satisfies LifeMessage);
  }
}

/** Life locks where there are no Web Locks: those of the process, or over a BroadcastChannel. */
export function substituteLives(): Lives & { close?(): unknown } {
  const manager = processLockManager();
  return manager === undefined ? new ChannelLives() : locksOf(manager);
}
