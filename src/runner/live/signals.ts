import { Subject, using, type Observable, type Unsubscribable } from "rxjs";
import { Bell } from "../../platform/bell.js";
import type { RunnerError } from "../../run/errors.js";
import type { LiveRun } from "./live-run.js";
import type { RunnerParts } from "../parts.js";

/** How often followers in other hosts are told of committed events, in ms. */
const ADVANCED_EVERY_MS = 20;

/** Tells followers here and in other hosts what happens to the runs of this one. */
export class Signals {
  /** Of each reader its own, by thread. */
  private readonly bells = new Map<string, Set<Bell>>();
  private readonly changed = new Subject<string>();
  private readonly anew = new Subject<RunnerError | undefined>();
  /** The last committed seq that other hosts are still to be told of. */
  private readonly advances = new Map<string, { readonly runId: string; readonly seq: number }>();

  constructor(
    private readonly parts: Pick<RunnerParts, "channel" | "clock">,
    /** Listens to the other hosts until it is unsubscribed; what matters to readers here comes back through {@link touched}. */
    private readonly listen: () => Unsubscribable,
    private readonly closed: AbortSignal,
  ) {
    const over = (): void => [this.changed, this.anew].forEach((signal) => signal.complete());
    closed.addEventListener("abort", over, { once: true });
  }

  /** Threads whose entry in the list may have changed, in whichever host. */
  get changed$(): Observable<string> {
    return using(this.listen, () => this.changed);
  }

  /** Nothing that was told of any thread need be true any more; why, where that is known. */
  get anew$(): Observable<RunnerError | undefined> {
    return this.anew;
  }

  beganAnew(error: RunnerError | undefined): void {
    for (const bells of this.bells.values()) for (const bell of bells) bell.ring();
    this.anew.next(error);
  }

  /** A thread changed otherwise than by a run that begins or ends here. */
  touched(threadId: string): void {
    for (const bell of this.bells.get(threadId) ?? []) bell.ring();
    this.changed.next(threadId);
  }

  /** As {@link touched}; other hosts are told as well. */
  changedHere(threadId: string): void {
    this.parts.channel.post({ type: "changed", threadId });
    this.touched(threadId);
  }

  told(run: LiveRun, type: "started" | "ended"): void {
    const { threadId, runId, inLog } = run;
    this.parts.channel.post({ type, threadId, runId, ...(inLog !== undefined && { runIndex: inLog.runIndex }) });
    this.touched(threadId);
  }

  /** Other hosts are told of commits at most every few ms, and of the last one for sure. */
  advanced({ threadId, runId }: LiveRun, seq: number): void {
    const waiting = this.advances.size > 0;
    this.advances.set(threadId, { runId, seq });
    if (waiting) return;
    void this.parts.clock.after(ADVANCED_EVERY_MS, this.closed).then(() => {
      for (const [thread, last] of this.advances)
        this.parts.channel.post({ type: "advanced", threadId: thread, ...last });
      this.advances.clear();
    });
  }

  /** A bell of the caller's own. Rings when a run of the thread starts or ends in whichever host, or the thread changed. */
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
