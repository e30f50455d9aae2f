import { ringOrSilence } from "../platform/bell.js";
import { invalidInput } from "../run/errors.js";
import { idKey } from "../run/id-key.js";
import { toErrorData } from "../wire/errors.js";
import type { RunnerErrorData } from "../wire/shapes.js";
import { isFresh, toolsOf } from "./asked-run.js";
import type { Devices } from "./devices.js";
import { runName } from "./run-name.js";
import type { ServerParts, SyncHost } from "./sync-host.js";
import type { SpaceLock } from "./thread-state.js";
import type { ThreadSync } from "./thread-sync.js";

interface ServingHost extends SyncHost {
  readonly server: ServerParts;
  readonly devices: Devices;
}

/** How often it is said that a run cannot start, at most. */
const TRIES = 10;
/** Pause before a run is tried again that cannot start now, in ms. */
const AGAIN_MS = 500;
/** The same where the middleware refuses it: doubled up to this. */
const AGAIN_MAX_MS = 30_000;
/** When the device that asks is told of such a refusal, in ms: before it gives up. Until then other servers may take the run. */
const TELL_MS = 6_000;
const SILENCE_MS = 2_000;

/** Executes what devices ask of the agents of this server. */
export class Serving {
  /** Runs that were asked for, until they are in the log: see {@link idKey}. */
  readonly executing = new Set<string>();
  /** Threads in which a run is asked for, and is to be looked at again. */
  private readonly asked = new Set<ThreadSync>();
  /** Of other servers: looked at once. */
  private readonly known = new WeakSet<SpaceLock>();

  /** When a run that is asked for was tried first, and how often the middleware has refused it. */
  private readonly tried = new WeakMap<SpaceLock, { readonly since: number; readonly refused: number }>();

  constructor(private readonly of: ServingHost) {}

  /** An entry of the thread was read. */
  take(thread: ThreadSync): void {
    const { lock } = thread.record.state;
    // One that is not claimed may be that of a copy which another device sends again.
    if (lock?.isClaimed === true && lock.asks === undefined)
      void this.lookAt(lock, thread.record.threadId).catch(() => undefined);
    if (lock?.asks === undefined) this.asked.delete(thread);
    else if (this.of.isCurrent()) this.serve(thread);
    else this.asked.add(thread);
  }

  /** Everything was read, or other devices are online than before. */
  current(): void {
    const asked = [...this.asked];
    for (const thread of asked) {
      // It may have left this device.
      if (this.of.openOf(thread.record.threadId) === thread) this.serve(thread);
      else this.asked.delete(thread);
    }
  }

  forget(): void {
    this.asked.clear();
  }

  /** A run of this server that another one has taken, because this one was cut off behind its claim, ends. */
  private async lookAt(lock: SpaceLock, threadId: string): Promise<void> {
    const { self, parts, stop } = this.of;
    const { runId, device } = lock;
    if (device.id === self().id || this.known.has(lock)) return;
    this.known.add(lock);
    const own = await parts.store.runNamed(threadId, lock);
    if (own?.status === "running" && own.device === undefined) stop({ threadId, runId });
  }

  private serve(thread: ThreadSync): void {
    this.asked.delete(thread);
    const { server, devices } = this.of;
    const { clock } = this.of.parts;
    const { threadId } = thread.record;
    const { lock } = thread.record.state;
    if (lock?.asks === undefined || this.executing.has(idKey(threadId, lock.runId))) return;
    const { runId, device, asks } = lock;
    const { request, fingerprint, answerId, results = [] } = asks;
    if (!server.agents.includes(request.agentId)) return;
    // Nobody waits for it, as far as this server has heard: it looks again when it hears of other devices.
    if (!isFresh(asks, clock.now()) && !devices.isOnline(device.id)) return void this.asked.add(thread);
    const name = runName(lock);
    const key = idKey(threadId, runId);
    this.executing.add(key);
    if (!this.tried.has(lock)) this.tried.set(lock, { since: clock.elapsed(), refused: 0 });
    const isIts = request.threadId === threadId && request.input.runId === runId;
    const executed = isIts
      ? server.execute(request, {
          asker: { id: device.id, tools: toolsOf(request) },
          fingerprint,
          ...(answerId !== undefined && { answerId }),
          results,
        })
      : Promise.reject(invalidInput("request", "What is asked for is not of this thread"));
    executed
      .then(
        (done) => {
          if (done.is === "later") return done.refusal && this.refused(thread, lock, done.refusal);
          // It may have been in the log before it was asked for.
          return thread.record.state.lock?.asks && this.end(thread, name);
        },
        (error: unknown) => this.end(thread, name, toErrorData(error)),
      )
      .catch(() => undefined)
      .then(() => (this.isAsked(thread, name) ? clock.after(AGAIN_MS, this.of.closed) : undefined))
      .finally(() => {
        this.executing.delete(key);
        // It is another one where the space has begun anew.
        const now = this.of.openOf(threadId);
        now?.ring();
        if (now !== undefined && !this.of.closed.aborted) this.take(now);
      });
  }

  /** Backs off, beside the pause of every run that is tried again; where no time is left for that, the refusal is told. */
  private async refused(
    thread: ThreadSync,
    lock: SpaceLock,
    { error, afterMs }: { readonly error: RunnerErrorData; readonly afterMs: number },
  ): Promise<void> {
    const { closed, moved, openOf, devices } = this.of;
    const { clock } = this.of.parts;
    const { since, refused } = this.tried.get(lock) ?? { since: clock.elapsed(), refused: 0 };
    this.tried.set(lock, { since, refused: refused + 1 });
    const now = clock.elapsed();
    const again = now + Math.min(Math.max(AGAIN_MS * (2 ** refused - 1), afterMs), AGAIN_MAX_MS);
    // Whoever has asked may be gone: then it is tried as long as it may be executed.
    const isTold = again >= since + TELL_MS && !devices.isAway(lock.device.id);
    const until = isTold ? since + TELL_MS : again;
    for (;;) {
      const seen = moved.count;
      // It is not asked for any more, or anew.
      if (openOf(thread.record.threadId)?.record.state.lock !== lock || closed.aborted) return;
      const left = until - clock.elapsed();
      if (left <= 0) break;
      await ringOrSilence(moved, seen, clock, left, closed);
    }
    if (isTold) await this.end(thread, runName(lock), error);
  }

  private isAsked(thread: ThreadSync, name: string): boolean {
    const { lock } = thread.record.state;
    return lock?.asks !== undefined && runName(lock) === name;
  }

  /** Nobody is to wait for the run any more; not where another server has it. @param error why it cannot start */
  private async end(thread: ThreadSync, name: string, error?: RunnerErrorData): Promise<void> {
    const { moved, parts, closed } = this.of;
    const self = this.of.self();
    for (let tries = 0; tries < TRIES; tries++) {
      const seen = moved.count;
      const { lock } = thread.record.state;
      if (lock === undefined || runName(lock) !== name) return;
      if (lock.asks === undefined && lock.device.id !== self.id) return;
      const { threadId } = thread.record;
      const { runId } = lock;
      const release = { type: "release", threadId, runId, device: self, ...(error && { error }) } as const;
      if (await thread.add(release)) return;
      await ringOrSilence(moved, seen, parts.clock, SILENCE_MS, closed);
    }
  }
}
