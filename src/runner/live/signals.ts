import { filter, map, Subject, using, type Observable, type Unsubscribable } from "rxjs";
import { Bell } from "../../platform/bell.js";
import type { RunnerError } from "../../run/errors.js";
import type { LiveRun } from "./live-run.js";
import type { RunnerParts } from "../parts.js";

/** Pause between two messages to followers in other hosts about committed events, in ms. */
const ADVANCED_EVERY_MS = 4;

/** A thread whose entry in the list may have changed. */
export interface TouchedThread {
  readonly threadId: string;
  /** It was deleted; it may have begun anew since. */
  readonly isDeleted: boolean;
  /** Its waiting runs changed. */
  readonly waits: boolean;
}

/** Tells followers here and in other hosts what happens to the runs of this one. */
export class Signals {
  /** One bell per reader, by thread. */
  private readonly bells = new Map<string, Set<Bell>>();
  private readonly changed = new Subject<TouchedThread>();
  private readonly anew = new Subject<RunnerError | undefined>();
  /** By thread, the last committed seq that other hosts were not told of yet. */
  private readonly advances = new Map<string, { readonly runId: string; readonly seq: number }>();
  /** They were told just now. */
  private isPausing = false;

  constructor(
    private readonly parts: Pick<RunnerParts, "channel" | "clock" | "isOneProcess">,
    /** Listens to other hosts until unsubscribed; what matters to readers here arrives through {@link touched}. */
    private readonly listen: () => Unsubscribable,
    private readonly closed: AbortSignal,
  ) {
    const over = (): void => [this.changed, this.anew].forEach((signal) => signal.complete());
    closed.addEventListener("abort", over, { once: true });
  }

  /** Threads that were touched in any host. */
  get changed$(): Observable<TouchedThread> {
    return using(this.listen, () => this.changed);
  }

  /** Threads whose waiting runs may have changed. In one process, only where it was changed here: nothing is listened to. */
  get waiting$(): Observable<string> {
    const changed$ = this.parts.isOneProcess ? this.changed : this.changed$;
    return changed$.pipe(
      filter(({ waits }) => waits),
      map(({ threadId }) => threadId),
    );
  }

  /** Everything told of any thread may be stale; emits the reason where it is known. */
  get anew$(): Observable<RunnerError | undefined> {
    return this.anew;
  }

  beganAnew(error: RunnerError | undefined): void {
    for (const bells of this.bells.values()) for (const bell of bells) bell.ring();
    this.anew.next(error);
  }

  /** Tells readers here that a thread may have changed, or that it was deleted. */
  touched(threadId: string, isDeleted = false, waits = false): void {
    for (const bell of this.bells.get(threadId) ?? []) bell.ring();
    this.changed.next({ threadId, isDeleted, waits });
  }

  /** As {@link touched}; also tells other hosts. */
  changedHere(threadId: string, isDeleted = false): void {
    this.parts.channel.post({ type: "changed", threadId, ...(isDeleted && { deleted: true }) });
    this.touched(threadId, isDeleted);
  }

  /** The waiting runs of a thread were changed here: tells readers, and who starts them, in all hosts. */
  waitingChangedHere(threadId: string): void {
    this.parts.channel.post({ type: "changed", threadId, waiting: true });
    this.touched(threadId, false, true);
  }

  told(run: LiveRun, type: "started" | "ended"): void {
    const { threadId, runId, inLog } = run;
    this.parts.channel.post({ type, threadId, runId, ...(inLog !== undefined && { runIndex: inLog.runIndex }) });
    this.touched(threadId);
  }

  /** Tells other hosts of a commit: at once, then at most every few ms, and always of the last one. */
  advanced({ threadId, runId }: LiveRun, seq: number): void {
    this.advances.set(threadId, { runId, seq });
    if (!this.isPausing) this.tellAdvances();
  }

  private tellAdvances(): void {
    this.isPausing = this.advances.size > 0;
    if (!this.isPausing) return;
    for (const [threadId, last] of this.advances) this.parts.channel.post({ type: "advanced", threadId, ...last });
    this.advances.clear();
    void this.parts.clock.after(ADVANCED_EVERY_MS, this.closed).then(() => this.tellAdvances());
  }

  /** A bell for the caller, which rings when a run of the thread starts or ends in any host, or the thread changes. */
  bellOf(threadId: string): { readonly bell: Bell; readonly release: () => void } {
    const bell = new Bell();
    const bells = this.bells.get(threadId) ?? new Set();
    this.bells.set(threadId, bells.add(bell));
    const listening = this.listen();
    return {
      bell,
      release: () => {
        listening.unsubscribe();
        bells.delete(bell);
        if (bells.size === 0 && this.bells.get(threadId) === bells) this.bells.delete(threadId);
      },
    };
  }
}
