import { abortWith } from "../platform/abort.js";
import { ringOrSilence } from "../platform/bell.js";
import { inTime } from "../platform/clock.js";
import { isAnswer, isThatRun } from "../run/interrupts.js";
import { RunnerError } from "../run/errors.js";
import { asKnown } from "../run/input-plan.js";
import { idKey } from "../run/id-key.js";
import { noServer, type PlacedRequest, type Placement } from "../runner/request.js";
import type { Admission } from "../runner/parts.js";
import { isNextAfterCalls } from "../storage/pending-tool-calls.js";
import type { RunRow } from "../storage/rows.js";
import type { AbsentThreads } from "./absent-threads.js";
import { askServers } from "./ask-servers.js";
import { askedRun } from "./asked-run.js";
import { runName } from "./run-name.js";
import { SpaceOffline } from "./space.js";
import type { SyncHost } from "./sync-host.js";
import { isLockOf } from "./thread-state.js";
import type { ThreadSync } from "./thread-sync.js";

/** How long a run that starts waits for the space, in ms; then it starts as if the device were offline. */
export const CLAIM_MS = 2_000;

export interface AdmissionsHost extends SyncHost {
  readonly absent: Pick<AbsentThreads, "isAbsent" | "fetch">;
}

/** Which runs of this device may start, and where they are executed. */
export class Admissions {
  /** Runs that are about to start, or that servers were asked for: see {@link idKey}. */
  readonly starting = new Set<string>();

  private readonly since: number;

  constructor(private readonly of: AdmissionsHost) {
    this.since = of.parts.clock.elapsed();
  }

  /**
   * Asks whether a run may start, and tells the other devices so. The caller holds the thread's lock here. Where the
   * device is offline, it may: what others add meanwhile stands beside it.
   *
   * Errors: RunnerError `offline`, `call-over`, `thread-busy` for a run that is to be executed elsewhere; `offline` of `wait`
   * where the thread cannot come
   */
  async admit(request: PlacedRequest): Promise<Admission> {
    const { placement, threadId } = request;
    const { absent } = this.of;
    if (await absent.isAbsent(threadId)) return { is: "behind", wait: () => absent.fetch(threadId) };
    return (placement && (await this.elsewhere(request, placement))) ?? this.here(request);
  }

  private async here(request: PlacedRequest): Promise<Admission> {
    const { threadId, asked, answerId } = request;
    const { runId } = request.input;
    const key = idKey(threadId, runId);
    const { moved, isCurrent } = this.of;
    const { clock } = this.of.parts;
    await this.begun();
    // Its claim may stand all the same, and be read meanwhile.
    const admitted: Admission = {
      is: "admitted",
      release: () => {
        if (this.starting.delete(key)) void this.ring(threadId);
      },
    };
    const refused = (is: Admission): Admission => {
      admitted.release();
      return is;
    };
    const until = abortWith(this.of.closed);
    /** A claim of which nothing is known may stand. */
    let mayStand = false;
    const late = clock.after(CLAIM_MS, until.signal).then(() => {
      until.abort();
      return "late" as const;
    });
    try {
      while (isCurrent() && !until.signal.aborted) {
        const seen = moved.count;
        const thread = await this.of.threadOf(threadId);
        if (thread === undefined) break;
        const device = this.of.context()?.self;
        if (device === undefined) break;
        if (thread.isReadAnew) return refused({ is: "behind", wait: () => this.readAnew(thread) });
        const { heldBy } = thread;
        const { lock } = thread.record.state;
        // The answer to its claim was lost.
        const isIts = lock !== undefined && runName(lock) === runName({ runId, answerId });
        const isClaimed = isIts && lock.isClaimed === true && lock.device.id === device.id;
        if (isClaimed && mayStand) return admitted;
        const isAsked = asked !== undefined && isIts && lock.asks !== undefined;
        // Another server was first, or nobody asks for it any more.
        if (asked !== undefined && !isAsked) return refused({ is: "busy", runId, deviceName: heldBy?.name ?? "" });
        if (heldBy !== undefined && lock !== undefined && !isAsked)
          return refused({ is: "busy", deviceName: heldBy.name, runId: lock.runId });
        if (thread.arrivals.areBehind) return refused({ is: "behind", wait: () => this.writtenDown(thread) });
        this.starting.add(key);
        const added = thread
          .add({ type: "claim", threadId, runId, ...(answerId !== undefined && { answerId }), device })
          .catch(unlessOffline);
        const result = await Promise.race([added, late]);
        if (result === true || (result === "late" && asked === undefined)) return admitted;
        mayStand ||= result === "unknown";
        if (!mayStand) this.starting.delete(key);
        // It is read where it stands; else it is added once more.
        await ringOrSilence(moved, seen, clock, mayStand ? LOOK_MS : CLAIM_MS, until.signal);
      }
    } catch {
      // Offline: see above.
    } finally {
      until.abort();
    }
    if (asked === undefined) return admitted;
    // What a server was asked for, another one may have taken. A claim that nothing is known of is taken back.
    admitted.release();
    throw new RunnerError("offline", { threadId, runId }, { message: "The space does not answer this server" });
  }

  /** @returns undefined where this host is to execute it after all, or has it in its log */
  private async elsewhere(request: PlacedRequest, placement: Placement): Promise<Admission | undefined> {
    const { threadId, agentId = "", input, afterToolCalls } = request;
    const { runId } = input;
    const key = idKey(threadId, runId);
    const { store, clock } = this.of.parts;
    const offline = (message: string): RunnerError => new RunnerError("offline", { threadId, agentId }, { message });
    if ((await this.inLog(request)) !== undefined) return undefined;
    const isReady = (): boolean => this.of.isCurrent() && this.isOffered(agentId);
    await this.waitedFor(isReady);
    const context = this.of.context();
    if (context === undefined) {
      const message = "Another host of this browser keeps the threads in step: servers are asked by its tabs only";
      // It starts what waits, too: this one would execute it once more.
      if (placement === "server" || request.waiting === true) throw offline(message);
      return undefined;
    }
    const thread = isReady() ? await this.of.threadOf(threadId) : undefined;
    if (thread === undefined) {
      if (placement === "any") return undefined;
      throw offline(noServer(agentId));
    }
    if (thread.isReadAnew) return { is: "behind", wait: () => this.readAnew(thread) };
    const { heldBy } = thread;
    const { lock } = thread.record.state;
    if (heldBy !== undefined && lock !== undefined && !isLockOf(lock, { ...request, runId }))
      return { is: "busy", deviceName: heldBy.name, runId: lock.runId };
    const head = await store.head(threadId);
    if (afterToolCalls === true && !isNextAfterCalls(head, runId))
      throw new RunnerError("call-over", { threadId, runId });
    // The server continues what the space has.
    const { sent, deleting, state } = thread.record;
    const isDeleted = head?.deleted === true;
    const isDeletionUntold = deleting !== undefined || (isDeleted && state.lastRun > 0 && state.deleted !== true);
    const areRunsUntold = !isDeleted && (head?.runCount ?? 0) > sent;
    if (thread.arrivals.areBehind || isDeletionUntold || areRunsUntold)
      return { is: "behind", wait: () => this.writtenDown(thread) };
    const { shownAs } = request;
    const isThere = shownAs !== undefined && head !== undefined && head.deleted !== true;
    const messages = isThere ? [...asKnown(await context.history.base(head), input.messages, shownAs)] : input.messages;
    const asking: PlacedRequest = { ...request, input: { ...input, messages } };
    const asked = askedRun(asking, await store.toolResults(head), clock.now());
    const wait = async (signal: AbortSignal): Promise<"elsewhere" | "here"> => {
      this.starting.add(key);
      try {
        const inLog = () => this.inLog(request);
        const untaken = await askServers({ ...this.of, ...context, inLog }, asked, signal);
        if (untaken !== undefined && placement === "server") throw untaken;
        return untaken === undefined ? "elsewhere" : "here";
      } finally {
        this.starting.delete(key);
        void this.ring(threadId);
      }
    };
    return { is: "elsewhere", wait };
  }

  private async inLog({ threadId, input, fingerprint }: PlacedRequest): Promise<RunRow | undefined> {
    const run = await this.of.parts.store.runById(threadId, input.runId, fingerprint);
    return run !== undefined && isThatRun(run, { fingerprint, answers: isAnswer(input) }) ? run : undefined;
  }

  /** A host that has just begun may be about to keep the threads in step, and to connect. */
  private async begun(): Promise<void> {
    const { closed, moved, parts, context, isCurrent } = this.of;
    const { clock } = parts;
    while (context() === undefined && !closed.aborted && clock.elapsed() - this.since < CLAIM_MS) {
      await ringOrSilence(moved, moved.count, clock, BEGIN_MS, closed);
    }
    if (context() !== undefined) await this.waitedFor(isCurrent);
  }

  private async ring(threadId: string): Promise<void> {
    const thread = await this.of.threadOf(threadId).catch(quiet);
    thread?.ring();
  }

  private isOffered(agentId: string): boolean {
    const { devices } = this.of.context() ?? {};
    return devices?.online.some(({ agents }) => agents?.includes(agentId)) === true;
  }

  /** A host that has just begun may not be connected yet, and have heard of nobody. */
  private async waitedFor(isReady: () => boolean): Promise<void> {
    const { closed, moved, parts, context, isCurrent, state } = this.of;
    const since = parts.clock.elapsed();
    for (;;) {
      const left = since + CLAIM_MS - parts.clock.elapsed();
      const isKnown = isCurrent() && context()?.devices.areHeard === true;
      if (isReady() || isKnown || left <= 0 || closed.aborted) return;
      const { is } = state();
      if (is === "offline" || is === "refused") return;
      await ringOrSilence(moved, moved.count, parts.clock, Math.min(left, LOOK_MS), closed);
    }
  }

  /** Resolves when the thread was read anew, or that cannot go on now. */
  private async readAnew(thread: ThreadSync): Promise<void> {
    const { closed, moved, parts, isCurrent } = this.of;
    while (thread.isReadAnew && isCurrent() && !closed.aborted) {
      await ringOrSilence(moved, moved.count, parts.clock, LOOK_MS, closed);
    }
  }

  private async writtenDown(thread: ThreadSync): Promise<void> {
    await inTime(thread.settled(), CLAIM_MS, this.of.parts.clock).catch(quiet);
  }
}

const quiet = (): void => undefined;

/** @throws what is no SpaceOffline */
function unlessOffline(error: unknown): "unknown" {
  if (error instanceof SpaceOffline) return "unknown";
  throw error;
}

/** How often what nothing rings for is looked at, in ms; and by a host that has just begun. */
const LOOK_MS = 250;
const BEGIN_MS = 20;
