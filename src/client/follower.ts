import type { BaseEvent } from "@ag-ui/client";
import type { Observable, Subscription } from "rxjs";
import { systemClock } from "../platform/clock.js";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import type { Frame } from "../wire/shapes.js";
import { cursorBehind } from "./frames.js";
import { Unicast } from "./unicast.js";

export interface FollowerParts {
  readonly frames: (after: Cursor | undefined) => Observable<Frame>;
  /** Where to begin: behind the last run that was seen whole. */
  readonly cursor: () => Cursor | undefined;
  /** A run that the agent itself started and reads by itself. */
  readonly isOwn: (runId: string) => boolean;
  /** All frames of an own run were passed over. */
  readonly passed: (runId: string) => void;
  readonly note: (frame: Frame) => void;
  readonly eventsOf: (frame: Frame) => readonly BaseEvent[];
  /** The agent has everything up to there, by its own runs. Waits until none of them is being applied. */
  readonly has: (cursor: Cursor) => Promise<boolean>;
  /** Everything comes again, with all own runs that are over. */
  readonly anew: () => void;
  /** The session that applies a run ended before the run. */
  readonly cut: () => void;
  /** A run was seen whole. */
  readonly settled: (cursor: Cursor) => void;
  /**
   * Applies one run's events to the agent, as the client's pipeline does, once no own run is being applied; ends when they
   * end. Does nothing where they are not wanted any more by then.
   */
  readonly session: (events$: Observable<BaseEvent>, isWanted: () => boolean) => Promise<void>;
}

interface Session {
  readonly events: Unicast;
  readonly applied: Promise<void>;
  /** The pipeline refused what it was given. */
  refused: boolean;
}

/** How long until a reading that failed is begun anew, at first and at most, in ms. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** How often a follower begins anew with a snapshot after events that the pipeline refused. */
const FRESH_STARTS = 3;

/** Applies the runs of a thread to an agent, one session of the client's pipeline for each, in order. */
export class ThreadFollower {
  private reading: Subscription | undefined;
  private session: Session | undefined;
  /** The own run whose frames are passed over; `missed`: with it, history that only a snapshot brings. */
  private passing: { readonly runIndex: number; readonly missed: boolean } | undefined;
  private queue: Promise<void> = Promise.resolve();
  /** Resolves when the history is there, or why it cannot be had now is known; another one when it has to come anew. */
  private catchUp!: Promise<void>;
  private resolveCatchUp: (() => void) | undefined;
  /** Why nothing is read now. */
  private failure: { readonly error: unknown } | undefined;
  private freshStarts = 0;
  private pause = RETRY_MS;
  private generation = 0;

  constructor(private readonly parts: FollowerParts) {
    this.mustCatchUp();
    this.read(parts.cursor());
  }

  /** Resolves when the history is there and no run is being followed. Errors: why it cannot be had now. */
  async caughtUp(): Promise<void> {
    for (let waitedFor: Promise<void> | undefined; waitedFor !== this.catchUp;) {
      waitedFor = this.catchUp;
      await waitedFor;
      await this.session?.applied;
    }
    if (this.failure !== undefined) throw this.failure.error;
  }

  /** The session that applies a run was left in the middle (`detachActiveRun`). */
  get isLeft(): boolean {
    return this.session?.events.isLeft === true;
  }

  /** Begins anew, with a snapshot. */
  restart(): void {
    this.end();
    this.parts.anew();
    this.mustCatchUp();
    this.read(undefined);
  }

  private mustCatchUp(): void {
    if (this.resolveCatchUp === undefined) this.catchUp = new Promise((resolve) => (this.resolveCatchUp = resolve));
  }

  private caughtUpNow(): void {
    this.resolveCatchUp?.();
    this.resolveCatchUp = undefined;
  }

  close(): void {
    this.end();
    this.caughtUpNow();
  }

  private end(): void {
    this.generation++;
    this.reading?.unsubscribe();
    this.passing = undefined;
    const { session } = this;
    this.session = undefined;
    if (session === undefined) return;
    session.events.complete();
    this.parts.cut();
  }

  private read(after: Cursor | undefined): void {
    const generation = ++this.generation;
    let cursor = after;
    // What is there already needs no frame: a thread without news has none.
    if (after !== undefined) this.caughtUpNow();
    this.reading = this.parts.frames(after).subscribe({
      next: (frame) => {
        this.failure = undefined;
        cursor = cursorBehind(frame, cursor);
        const behind = cursor;
        // One after the other: a session begins when the one before it is applied.
        this.queue = this.queue
          .then(() => this.take(frame, behind, generation))
          .catch((error: unknown) => (generation === this.generation ? this.failed(error) : undefined));
      },
      error: (error: unknown) => this.failed(error),
    });
  }

  /** A follower has nobody to tell; what it followed goes on, so it does too. */
  private failed(error: unknown): void {
    this.end();
    this.failure = { error };
    this.caughtUpNow();
    if (RunnerError.is(error, "closed")) return;
    const { generation, pause } = this;
    this.pause = Math.min(2 * pause, RETRY_MAX_MS);
    void systemClock.after(pause).then(() => {
      if (generation !== this.generation) return;
      this.parts.anew();
      this.read(undefined);
    });
  }

  private async take(frame: Frame, behind: Cursor | undefined, generation: number): Promise<void> {
    if (generation !== this.generation) return;
    const begun = frame.type === "run" ? frame.run : frame.type === "prelude" ? frame.live : undefined;
    if (frame.type === "prelude") this.passing = undefined;
    if (this.passing === undefined && begun !== undefined && this.parts.isOwn(begun.runId)) {
      const missed = frame.type === "prelude" && frame.events.length > 0;
      this.passing = { runIndex: begun.runIndex, missed };
    }
    // The thread went on without what this follower knew, so nothing of that comes any more.
    if (frame.type === "prelude") await this.abandon();
    if (generation !== this.generation) return;
    if (this.passing !== undefined) {
      const { runIndex, missed } = this.passing;
      if (frame.type !== "settled" || frame.runIndex !== runIndex) return;
      this.passing = undefined;
      this.parts.passed(frame.runId);
      if (missed) this.restart();
      return;
    }
    switch (frame.type) {
      case "idle":
        this.pause = RETRY_MS;
        this.caughtUpNow();
        return;
      case "prelude":
        if (frame.live === undefined && (await this.parts.has(frame.cursor))) return this.caughtUpNow();
        if (generation !== this.generation) return;
        await this.begin();
        this.push(frame);
        this.parts.note(frame);
        if (frame.live === undefined) await this.finish(behind);
        return;
      case "run":
        if (this.session === undefined) await this.begin();
        this.parts.note(frame);
        return;
      case "chunk":
        this.parts.note(frame);
        this.push(frame);
        return;
      case "settled":
        this.parts.note(frame);
        await this.finish(behind);
        return;
      case "lost":
        await this.abandon();
        this.parts.cut();
        this.parts.note(frame);
        this.caughtUpNow();
        return;
      default:
        return;
    }
  }

  private async abandon(): Promise<void> {
    const { session } = this;
    if (session === undefined) return;
    session.events.complete();
    await session.applied;
    if (this.session === session) this.session = undefined;
  }

  private async begin(): Promise<void> {
    await this.session?.applied;
    const events = new Unicast();
    const generation = this.generation;
    const session: Session = {
      events,
      refused: false,
      applied: this.parts
        .session(events.events$, () => generation === this.generation)
        .then(
          () => {
            this.freshStarts = 0;
            this.pause = RETRY_MS;
          },
          (error: unknown) => {
            session.refused = true;
            if (generation !== this.generation) return;
            // The client's pipeline has printed why. A snapshot needs nothing of what came before.
            if (this.freshStarts++ < FRESH_STARTS) this.restart();
            else this.failed(error);
          },
        ),
    };
    this.session = session;
  }

  private push(frame: Frame): void {
    for (const event of this.parts.eventsOf(frame)) this.session?.events.next(event);
  }

  private async finish(behind: Cursor | undefined): Promise<void> {
    const { session } = this;
    session?.events.complete();
    await session?.applied;
    if (session?.refused === true) return;
    // Detached in the middle (`detachActiveRun`): what it misses comes with a snapshot.
    if (session?.events.isLeft === true) return this.restart();
    if (this.session === session) this.session = undefined;
    if (behind !== undefined) this.parts.settled(behind);
    this.caughtUpNow();
  }
}
