import { onAbort } from "../../platform/abort.js";
import { Bell, ringOrSilence } from "../../platform/bell.js";
import type { Clock } from "../../platform/clock.js";
import { Lazy } from "../../platform/lazy.js";
import type { Logger } from "../../platform/log.js";
import { loggable } from "../../platform/log.js";
import type { Network } from "../../platform/network.js";
import { RunnerError } from "../../run/errors.js";
import { equalJson } from "../../run/json.js";
import type { WaitingError } from "../../run/types.js";
import { idKey } from "../../run/id-key.js";
import type { LocalAgentRunner } from "../../runner/local-agent-runner.js";
import type { Outbox, ThreadNow } from "../../runner/outbox.js";
import type { RecoveryWaiting, WaitingRow } from "../../storage/waiting.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { Enqueued, EnqueueRequest, WaitingReason, WaitingRun } from "../../wire/waiting-shapes.js";
import { policyOf, type AgentPolicies } from "../agent-policies.js";
import { hasAll, type Callers } from "../callers.js";
import { isUnrecorded } from "../mcp-requests.js";
import { afterFailure, isLateAnswer } from "./failures.js";
import { reasonFor, type Candidate } from "./reason.js";
import { messagesOf, requestIn } from "./stored-call.js";

type Headers = Readonly<Record<string, string>>;

/** After so long without a signal the log is read: a message of another host may be lost. In ms. */
const SILENCE_MS = 5_000;
/** The same where nothing waits. */
const SILENCE_EMPTY_MS = 60_000;
/** How often the network is looked at while a run waits for it: its events are not trusted alone. In ms. */
const NETWORK_MS = 1_000;
/** Changes within this time are told as one, in ms. */
const TOLD_AFTER_MS = 20;

export interface WaitingParts {
  readonly runner: Pick<LocalAgentRunner, "checkRequest" | "getRun" | "hasRun" | "outbox" | "stop" | "waiting">;
  readonly network: Network;
  readonly callers: Pick<Callers, "changed$" | "having">;
  readonly policies: AgentPolicies | undefined;
  readonly logger: Required<Logger>;
  /** There may be servers that have agents. */
  readonly haveServers: boolean;
  /** This host is one: nobody calls it with headers, so its runs wait for none. */
  readonly isServer: boolean;
  /** Starts a run that need not wait, as the runtime starts what a tab asks for. Resolves once it is in the log. */
  readonly begin: (run: RunRequest, headers: Headers) => Promise<void>;
  /** Starts a waiting run in the same way. */
  readonly execute: (row: WaitingRow, headers: Headers | undefined) => Promise<void>;
  /** What becomes of broken runs. */
  readonly recovery: {
    /** Decides whether a run goes on: afterwards it waits for its time (`notBefore`), or no more. */
    decide(row: RecoveryWaiting, headers: Headers | undefined): Promise<void>;
    /** It does not go on. @returns false if it does not wait any more */
    cancel(row: RecoveryWaiting): Promise<boolean>;
    /** It is left to a person, since the thread refuses it. @returns false if it does not wait any more */
    refused(row: RecoveryWaiting): Promise<boolean>;
  };
}

/** What this host alone knows of a waiting run. */
interface Known {
  /** Those of its call. Never stored. */
  readonly headers?: Headers;
  readonly tries: number;
  readonly retryAt?: number;
  /** The same by `elapsed` of the clock: the time of day may be set back. */
  readonly retryBy?: number;
  readonly error?: WaitingError;
  /** It is not in the log yet. */
  readonly isAdding?: true;
}

interface Looking {
  readonly bell: Bell;
  /** Undefined: all threads. */
  readonly threadId: string | undefined;
  /** Nothing waits there. */
  isEmpty: boolean;
}

const mayWaitAfter = (error: unknown, { onBusy, whenOffline }: EnqueueRequest): boolean =>
  (onBusy === "queue" && RunnerError.is(error, "thread-busy")) ||
  (whenOffline === "wait" && RunnerError.is(error, "offline"));

/** Reasons to wait that end with an answer. */
const FOR_ANSWERS: ReadonlySet<string> = new Set<WaitingReason["is"]>(["interrupts", "tool-calls"]);

const UNTRIED: Known = { tries: 0 };
const keyOf = ({ threadId, runId }: { readonly threadId: string; readonly runId: string }): string =>
  idKey(threadId, runId);

const threadOf = (key: string): unknown => (JSON.parse(key) as readonly unknown[])[0];

/**
 * A host's part in the runs that wait in the log: it adds them, tells why they wait, and starts the first one of each
 * thread when nothing keeps it. All hosts do so at once: the claim of the run decides whose attempt counts.
 */
export class WaitingRuns {
  /** Wake those who look at threads. */
  private readonly looking = new Set<Looking>();
  /** Threads whose first waiting run this host wants to start. */
  private readonly kept = new Set<string>();
  private readonly known = new Map<string, Known>();
  private readonly clock: Clock;
  private readonly closed: AbortSignal;
  /** Any use of what a run is added with loads its code. */
  private readonly adding = new Lazy(() =>
    Promise.all([this.outbox.store.isWaiting("", ""), this.parts.runner.getRun("-")]),
  );

  /** @param outbox of the runner */
  constructor(
    private readonly parts: WaitingParts,
    private readonly outbox: Outbox,
  ) {
    const { clock, closed } = parts.runner.waiting;
    this.clock = clock;
    this.closed = closed;
    outbox.changed$.subscribe(({ threadId, waits }) => this.ring(threadId, waits));
    parts.network.onChange(() => this.ring(undefined, false), closed);
    // It outlives the runner, which may have read what is locked by now.
    const calls = parts.callers.changed$.subscribe(() => this.ring(undefined, false));
    onAbort(closed, () => calls.unsubscribe());
  }

  /** Loads what is needed to add a run, once: without a network it could not be loaded any more. */
  async preload(): Promise<void> {
    await this.adding.get();
  }

  /** Starts what waits in the thread, each when it may. */
  look(threadId: string): void {
    if (this.kept.has(threadId) || this.closed.aborted) return;
    this.kept.add(threadId);
    void this.keep(threadId);
  }

  /**
   * Begins a run, or has it wait where it cannot begin at once: from the answer on nobody has to do anything for it.
   *
   * Errors: RunnerError `thread-busy` (`onBusy: "reject"`, or too many wait), `offline`, `invalid-input`, or why it was
   * refused
   */
  async enqueue(asked: EnqueueRequest, headers: Headers): Promise<Enqueued> {
    if (isUnrecorded(asked.run.input)) return "free";
    this.parts.runner.checkRequest(asked.run);
    // A thread that has not come to this device cannot be looked at.
    const mustWait = await this.mustWait(asked).catch((error: unknown) => {
      if (RunnerError.is(error, "offline") && mayWaitAfter(error, asked)) return true;
      throw error;
    });
    if (mustWait) return this.add(asked, headers);
    try {
      await this.parts.begin({ ...asked.run, onBusy: asked.onBusy }, headers);
      return "began";
    } catch (error) {
      if (!mayWaitAfter(error, asked)) throw error;
      // Another run came first.
      return this.add(asked, headers);
    }
  }

  private async mustWait({ run, onBusy, whenOffline }: EnqueueRequest): Promise<boolean> {
    const { threadId, agentId, input } = run;
    const { runId } = input;
    const { runner, network } = this.parts;
    // Asked again: a host has died, or its answer was lost.
    if (await this.outbox.store.isWaiting(threadId, runId)) return true;
    const [now, [first], isKnown] = await Promise.all([
      this.outbox.thread(threadId),
      this.outbox.store.waitingRuns(threadId, 1),
      runner.hasRun(threadId, input),
    ]);
    if (isKnown) return false;
    const live = now.head?.live;
    if (onBusy === "reject" && live !== undefined)
      throw new RunnerError("thread-busy", { threadId, runId: live.runId });
    const isOffline = this.needsNetwork(agentId) && !network.isOnline;
    if (isOffline && whenOffline === "fail") throw new RunnerError("offline", { threadId, agentId });
    const alone = this.reasonIn(now, agentId, { kind: "run", input }, { isCall: true });
    const isFree = onBusy !== "queue" || (first === undefined && alone.is === "starting");
    return !isFree || isOffline;
  }

  private async add({ run }: EnqueueRequest, headers: Headers): Promise<Enqueued> {
    const { threadId, agentId, input } = run;
    const { runId } = input;
    const { onBusy: _ofNow, ...request } = run;
    const since = this.clock.now();
    const key = keyOf({ threadId, runId });
    const before = this.known.get(key);
    // Before it is added: its thread may be looked at already.
    this.known.set(key, { ...UNTRIED, headers, isAdding: true });
    let added: "waits" | "exists" | undefined;
    try {
      added = await this.outbox.add({ threadId, runId, agentId, since, kind: "run", request }, input);
    } finally {
      // The headers of a call that was refused go with it.
      const now = added === "waits" ? { ...UNTRIED, headers } : before;
      if (now === undefined) this.known.delete(key);
      else if (this.known.has(key)) this.known.set(key, now);
    }
    if (added === "exists") return "began";
    this.look(threadId);
    return "waits";
  }

  /**
   * The waiting runs of a thread, or of all, now and after each change, until `signal` aborts. Errors: RunnerError `locked`, or
   * of the storage.
   */
  async *watch(threadId: string | undefined, signal: AbortSignal): AsyncGenerator<readonly WaitingRun[], void> {
    await this.outbox.store.readable?.();
    const bell = new Bell();
    const looking: Looking = { bell, threadId, isEmpty: false };
    this.looking.add(looking);
    let last: readonly WaitingRun[] | undefined;
    try {
      while (!signal.aborted && !this.closed.aborted) {
        const seen = bell.count;
        const threads = threadId === undefined ? await this.outbox.store.waitingThreads() : [threadId];
        const now: WaitingRun[] = [];
        for (const each of threads) now.push(...(await this.list(each)));
        // Threads in which nothing waits may run as they like.
        looking.isEmpty = now.length === 0;
        if (!equalJson(now, last)) yield (last = now);
        await ringOrSilence(bell, seen, this.clock, looking.isEmpty ? SILENCE_EMPTY_MS : SILENCE_MS, signal);
        await this.clock.after(TOLD_AFTER_MS, signal);
      }
    } finally {
      this.looking.delete(looking);
    }
  }

  /** Puts a run before another one, or at the end; one that had failed is tried again there. */
  async move(threadId: string, runId: string, before: string | null): Promise<boolean> {
    if (!(await this.outbox.move(threadId, runId, before))) return false;
    return this.retry(threadId, runId);
  }

  async cancel(threadId: string, runId: string): Promise<boolean> {
    this.known.delete(keyOf({ threadId, runId }));
    const row = await this.rowOf(threadId, runId);
    if (row?.kind === "recovery") return this.parts.recovery.cancel(row);
    const isRemoved = await this.outbox.remove(threadId, runId);
    // A server may have been asked for it already.
    if (isRemoved) await this.parts.runner.stop({ threadId, runId });
    return isRemoved;
  }

  async retry(threadId: string, runId: string): Promise<boolean> {
    const key = keyOf({ threadId, runId });
    const { headers } = this.known.get(key) ?? UNTRIED;
    this.known.set(key, { ...UNTRIED, ...(headers !== undefined && { headers }) });
    const row = await this.rowOf(threadId, runId);
    // One that goes on with a broken run is decided first.
    const isUndecided = row?.kind === "recovery" && row.notBefore === undefined;
    const isWaiting = await this.outbox.update(threadId, runId, { error: null, notBefore: isUndecided ? null : 0 });
    if (!isWaiting) this.known.delete(key);
    this.look(threadId);
    return isWaiting;
  }

  private async rowOf(threadId: string, runId: string): Promise<WaitingRow | undefined> {
    return (await this.outbox.store.waitingRuns(threadId)).find((row) => row.runId === runId);
  }

  /** A thread's waiting runs with their reasons, in order. */
  private async list(threadId: string): Promise<readonly WaitingRun[]> {
    const rows = await this.outbox.store.waitingRuns(threadId);
    const [first] = rows;
    if (first === undefined) return [];
    const reason = await this.reasonOf(first);
    return rows.map((row): WaitingRun => {
      const { runId, agentId, since, attempt } = row;
      return {
        threadId,
        runId,
        agentId,
        messages: messagesOf(row),
        since,
        reason: row === first ? reason : { is: "behind" },
        ...(attempt !== undefined && { attempt }),
      };
    });
  }

  private async reasonOf(row: WaitingRow): Promise<WaitingReason> {
    return this.reasonAt(row, await this.outbox.thread(row.threadId));
  }

  /** Why a run would wait if it were the first one. */
  private reasonAt(row: WaitingRow, now: ThreadNow): WaitingReason {
    const input = row.kind === "run" ? requestIn(row)?.input : undefined;
    return this.reasonIn(now, row.agentId, { ...row, input }, this.known.get(keyOf(row)));
  }

  /** An answer goes ahead of the run that waits for it. @returns whether one does now */
  private async putAnswerFirst({ threadId, runId }: WaitingRow): Promise<boolean> {
    const [rows, now] = await Promise.all([this.outbox.store.waitingRuns(threadId), this.outbox.thread(threadId)]);
    const answer = rows.find((row) => {
      const { is } = this.reasonAt(row, now);
      return row.kind === "run" && is !== "failed" && !FOR_ANSWERS.has(is);
    });
    return answer !== undefined && this.outbox.move(threadId, answer.runId, runId);
  }

  private reasonIn(
    now: ThreadNow,
    agentId: string,
    run: Candidate,
    { isCall = false, retryAt, ...here }: Partial<Known> & { readonly isCall?: boolean } = {},
  ): WaitingReason {
    const isDue = here.retryBy === undefined || this.clock.elapsed() >= here.retryBy;
    return reasonFor(run, {
      head: now.head,
      online: this.parts.network.isOnline,
      now: this.clock.now(),
      needsNetwork: this.needsNetwork(agentId),
      // A call that starts its run at once is told by it what it lacks.
      lacksHeaders: isCall || this.headersFor(agentId, here.headers) !== "lacking" ? [] : this.needsHeaders(agentId),
      openInterrupts: now.interrupts,
      awaitedCalls: (now.toolCalls?.calls ?? []).map(({ toolCallId }) => toolCallId),
      here: { ...here, ...(!isDue && retryAt !== undefined && { retryAt }) },
    });
  }

  private needsNetwork(agentId: string): boolean {
    return policyOf(this.parts.policies, agentId).needsNetwork === true;
  }

  private needsHeaders(agentId: string): readonly string[] {
    return this.parts.isServer ? [] : (policyOf(this.parts.policies, agentId).needsHeaders ?? []);
  }

  /**
   * The headers that a run starts with; undefined: those of the newest caller.
   *
   * @param own those of its call
   */
  private headersFor(agentId: string, own: Headers | undefined): Headers | undefined | "lacking" {
    const needs = this.needsHeaders(agentId);
    if (needs.length === 0 || (own !== undefined && hasAll(own, needs))) return own;
    return this.parts.callers.having(needs) ?? "lacking";
  }

  private async keep(threadId: string): Promise<void> {
    const bell = new Bell();
    const looking: Looking = { bell, threadId, isEmpty: false };
    this.looking.add(looking);
    try {
      for (;;) {
        const seen = bell.count;
        let waitMs = SILENCE_MS;
        try {
          const [first] = await this.outbox.store.waitingRuns(threadId, 1);
          if (this.closed.aborted) return;
          if (first === undefined) {
            if (bell.count !== seen) continue;
            for (const [key, { isAdding }] of this.known) {
              if (isAdding !== true && threadOf(key) === threadId) this.known.delete(key);
            }
            return;
          }
          const reason = await this.reasonOf(first);
          if (FOR_ANSWERS.has(reason.is) && (await this.putAnswerFirst(first))) continue;
          if (first.kind === "recovery" && first.notBefore === undefined && reason.is === "starting") {
            await this.parts.recovery.decide(first, this.known.get(keyOf(first))?.headers);
            continue;
          }
          if (reason.is === "starting") {
            await this.start(first);
            continue;
          }
          if (reason.is === "offline") waitMs = NETWORK_MS;
          if (reason.is === "retry") waitMs = Math.min(Math.max(reason.at - this.clock.now(), 1), SILENCE_MS);
        } catch (error) {
          // The log cannot be read now; whoever watches the thread is told. That it is locked, its status says.
          if (!RunnerError.is(error, "locked"))
            this.parts.logger.warn("[ag-ui-local-runtime] Waiting runs cannot be read", { threadId }, loggable(error));
        }
        await ringOrSilence(bell, seen, this.clock, waitMs, this.closed);
        if (this.closed.aborted) return;
      }
    } finally {
      this.looking.delete(looking);
      this.kept.delete(threadId);
    }
  }

  private async start(row: WaitingRow): Promise<void> {
    const key = keyOf(row);
    const { tries, headers } = this.known.get(key) ?? UNTRIED;
    const given = this.headersFor(row.agentId, headers);
    try {
      // A run that the thread left behind is dropped, whatever it lacks.
      await this.parts.execute(row, given === "lacking" ? headers : given);
      this.known.delete(key);
    } catch (error) {
      await this.failed(row, { tries: tries + 1, ...(headers !== undefined && { headers }) }, error);
    }
    this.ring(row.threadId, false);
  }

  private async failed(row: WaitingRow, known: Known, error: unknown): Promise<void> {
    const { threadId, runId } = row;
    const key = keyOf(row);
    // Nobody can add the answers that it lacks, and what waits behind it must go on.
    if (row.kind === "recovery" && RunnerError.is(error, "interrupts-open")) {
      const isEnded = await this.parts.recovery.refused(row).catch(() => undefined);
      if (isEnded !== undefined) {
        this.known.delete(key);
        return;
      }
    }
    const after = afterFailure(error, known.tries, this.clock.now(), this.parts.haveServers);
    if (after.is === "retry") {
      const { afterMs } = after;
      const retry = { retryAt: this.clock.now() + afterMs, retryBy: this.clock.elapsed() + afterMs };
      this.known.set(key, { ...known, ...retry });
      return;
    }
    this.parts.logger.warn("[ag-ui-local-runtime] A waiting run cannot start", { threadId, runId }, loggable(error));
    // Where nobody has said anything with it, nothing is lost: what waits behind it goes on.
    if (isLateAnswer(error) && row.kind === "run" && messagesOf(row).length === 0) {
      await this.outbox.remove(threadId, runId);
      this.known.delete(key);
      return;
    }
    this.known.set(key, { ...known, error: after.error });
    if (!after.lasting) return;
    // From here on the log says so, to all hosts.
    const isKept = await this.outbox.update(threadId, runId, { error: after.error }).catch(() => false);
    if (isKept) this.known.set(key, known);
  }

  private ring(threadId: string | undefined, waits: boolean): void {
    for (const { bell, threadId: of, isEmpty } of this.looking) {
      const isItsThread = threadId === undefined || of === undefined || of === threadId;
      if (isItsThread && (waits || !isEmpty)) bell.ring();
    }
  }
}
