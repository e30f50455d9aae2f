import type { BaseEvent } from "@ag-ui/client";
import type { Observable, Subscription } from "rxjs";
import { systemClock } from "../platform/clock.js";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import type { Frame } from "../wire/shapes.js";
import { cursorBehind } from "../wire/thread-events.js";
import { inTurn } from "./in-turn.js";
import { Unicast } from "./unicast.js";

export interface FollowerParts {
  readonly frames: (after: Cursor | undefined) => Observable<Frame>;
  /** Resolves when the tab has a new link to a host: what failed may work now. */
  readonly linkedAnew: (signal: AbortSignal) => Promise<void>;
  /** Where to begin: after the last run that was seen whole. */
  readonly cursor: () => Cursor | undefined;
  /** Whether another stream of the agent delivers the thread now: an own run or a reading. */
  readonly isHeld: () => boolean;
  readonly note: (frame: Frame) => void;
  readonly eventsOf: (frame: Frame) => readonly BaseEvent[];
  /** Called when the session that applies a run ended before the run. */
  readonly cut: () => void;
  /** Called when the history is there, and whenever what came after it is. */
  readonly caughtUp: () => void;
  /** Called when a run was seen whole. */
  readonly settled: (cursor: Cursor) => void;
  /**
   * Applies one run's events to the agent by the client's pipeline, once no other stream is being applied. Resolves
   * when they end; a no-op if they are no longer wanted by then.
   */
  readonly session: (events$: Observable<BaseEvent>, isWanted: () => boolean) => Promise<void>;
}

interface Session {
  readonly events: Unicast;
  readonly applied: Promise<void>;
}

/** Retry backoff of a failed reading: first and longest wait, in ms. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** How often in a row a follower restarts with a snapshot after the pipeline rejected events. */
const FRESH_STARTS = 3;

/**
 * Applies the runs of a thread to an agent in order, each in a session of the client's pipeline. It has no attachment
 * while another stream of the agent delivers the thread ({@link hold}), so each chunk is sent to the tab once.
 */
export class ThreadFollower {
  private reading: Subscription | undefined;
  private session: Session | undefined;
  /** The next reading begins with a snapshot, whatever the cursor is. */
  private isStale = false;
  /** The reading ends with the current session. */
  private letsGo = false;
  /** Resolves when the history is there, or reading it failed; replaced when it must be read again. */
  private catchUp!: Promise<void>;
  private resolveCatchUp: (() => void) | undefined;
  /** Set while reading fails. */
  private failure: { readonly error: unknown } | undefined;
  private freshStarts = 0;
  private pause = RETRY_MS;
  /** Changes with each {@link end}: work of an earlier one is stale. */
  private generation = 0;

  constructor(private readonly parts: FollowerParts) {
    this.mustCatchUp();
    this.read();
  }

  /** Resolves when the history is there and no run is being followed. Errors: why it cannot be read. */
  async caughtUp(): Promise<void> {
    for (let waitedFor: Promise<void> | undefined; waitedFor !== this.catchUp;) {
      waitedFor = this.catchUp;
      await waitedFor;
      await this.session?.applied;
    }
    if (this.failure !== undefined) throw this.failure.error;
  }

  /** The current session was left in the middle (`detachActiveRun`). */
  get isLeft(): boolean {
    return this.session?.events.isLeft === true;
  }

  /** Starts again with a snapshot. */
  restart(): void {
    this.end();
    this.isStale = true;
    this.mustCatchUp();
    this.read();
  }

  /** Another stream of the agent begins. The current session ends first. */
  hold(): void {
    if (this.session === undefined) this.end();
    else this.letsGo = true;
  }

  /** The other streams have ended: goes on after what they delivered. */
  release(): void {
    if (this.reading !== undefined) return;
    if (this.parts.cursor() === undefined) this.mustCatchUp();
    this.read();
  }

  close(): void {
    this.end();
    this.caughtUpNow();
  }

  private mustCatchUp(): void {
    if (this.resolveCatchUp === undefined) this.catchUp = new Promise((resolve) => (this.resolveCatchUp = resolve));
  }

  private caughtUpNow(): void {
    this.resolveCatchUp?.();
    this.resolveCatchUp = undefined;
    if (this.failure === undefined) this.parts.caughtUp();
  }

  private end(): void {
    this.generation++;
    this.reading?.unsubscribe();
    this.reading = undefined;
    this.letsGo = false;
    const { session } = this;
    this.session = undefined;
    if (session === undefined) return;
    session.events.complete();
    this.parts.cut();
  }

  private read(): void {
    const after = this.isStale ? undefined : this.parts.cursor();
    // A thread without news sends no frame.
    if (after !== undefined) this.caughtUpNow();
    if (this.parts.isHeld()) return;
    let cursor = after;
    this.reading = this.parts
      .frames(after)
      // A session begins when the one before it is applied.
      .pipe(
        inTurn((frame) => {
          this.failure = undefined;
          this.isStale = false;
          cursor = cursorBehind(frame, cursor);
          return this.take(frame, cursor);
        }),
      )
      .subscribe({ error: (error: unknown) => this.failed(error) });
  }

  /** A follower has nobody to tell, so it retries. */
  private failed(error: unknown): void {
    this.end();
    this.failure = { error };
    this.isStale = true;
    this.caughtUpNow();
    if (RunnerError.is(error, "closed")) return;
    const { generation, pause } = this;
    this.pause = Math.min(2 * pause, RETRY_MAX_MS);
    const over = new AbortController();
    void Promise.race([systemClock.after(pause, over.signal), this.parts.linkedAnew(over.signal)]).then(() => {
      over.abort();
      if (generation === this.generation) this.read();
    });
  }

  /** @returns a promise if the next frame has to wait */
  private take(frame: Frame, behind: Cursor | undefined): Promise<void> | void {
    switch (frame.type) {
      case "idle":
        this.pause = RETRY_MS;
        return this.caughtUpNow();
      case "prelude":
        // The thread went on without the current run: nothing more comes of that.
        return this.letsGo ? this.leave() : this.afterSession(() => this.show(frame, behind));
      case "run":
        if (this.session === undefined) this.begin();
        return this.parts.note(frame);
      case "chunk":
        this.parts.note(frame);
        return this.push(frame);
      case "settled":
        this.parts.note(frame);
        return this.finish(behind);
      case "recovery":
        return this.parts.note(frame);
      case "lost":
        return this.afterSession(() => {
          this.parts.cut();
          this.parts.note(frame);
          this.caughtUpNow();
          this.leave();
        });
      default:
    }
  }

  private show(frame: Frame & { readonly type: "prelude" }, behind: Cursor | undefined): Promise<void> | void {
    this.begin();
    this.push(frame);
    // Whoever is told that the thread is idle finds its messages there, also if the apply stage is still loading.
    if (frame.live === undefined) return this.finish(behind, () => this.parts.note(frame));
    this.parts.note(frame);
  }

  private begin(): void {
    const events = new Unicast();
    const { generation } = this;
    const isWanted = (): boolean => generation === this.generation;
    const applied = this.parts.session(events.events$, isWanted).then(
      () => {
        this.freshStarts = 0;
        this.pause = RETRY_MS;
      },
      (error: unknown) => {
        if (!isWanted()) return;
        // The client's pipeline has printed why. A snapshot does not depend on what came before.
        if (this.freshStarts++ < FRESH_STARTS) this.restart();
        else this.failed(error);
      },
    );
    this.session = { events, applied };
  }

  private push(frame: Frame): void {
    for (const event of this.parts.eventsOf(frame)) this.session?.events.next(event);
  }

  /** Ends the session; calls `next` when it is applied, unless the reading was ended meanwhile. */
  private afterSession(next: () => Promise<void> | void): Promise<void> | void {
    const { session, generation } = this;
    if (session === undefined) return next();
    session.events.complete();
    return session.applied.then(() => {
      if (generation !== this.generation) return;
      this.session = undefined;
      return next();
    });
  }

  private finish(behind: Cursor | undefined, applied?: () => void): Promise<void> | void {
    const { isLeft, generation } = this;
    return this.afterSession(() => {
      // Left in the middle: a snapshot brings the rest.
      if (isLeft) this.parts.cut();
      if (isLeft) return this.restart();
      if (behind !== undefined) this.parts.settled(behind);
      applied?.();
      if (generation !== this.generation) return;
      this.caughtUpNow();
      this.leave();
    });
  }

  /** Ends the reading if another stream of the agent has begun; goes on at once if that is over. */
  private leave(): void {
    if (!this.letsGo) return;
    this.end();
    this.read();
  }
}
