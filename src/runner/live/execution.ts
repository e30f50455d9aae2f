import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message, RunErrorEvent, RunFinishedEvent } from "@ag-ui/client";
import type { HeldLock } from "../../platform/locks.js";
import { loggable } from "../../platform/log.js";
import { RunnerError } from "../../run/errors.js";
import { closingEvents } from "../../run/finalize.js";
import type { InputPlan } from "../../run/input-plan.js";
import type { FailurePoint } from "../../run/failure-points.js";
import { cloneJson } from "../../run/json.js";
import { isListening, type AskedStatus, type Life } from "../../run/life.js";
import { lastSeq } from "../../run/pack.js";
import { leftCalls } from "../../run/pending-tool-calls.js";
import { messagesSnapshot } from "../../run/prelude.js";
import { failureLine, runName } from "../../run/printable.js";
import type { Chunk, SettledStatus } from "../../run/types.js";
import type { PersistedInput, Settlement, StopRequest } from "../../storage/run-store.js";
import { runAgent } from "../agent/agent-pipeline.js";
import type { Refusal } from "../agent/event-gate.js";
import type { FencedRun } from "../claim/fence.js";
import { recoveryOf } from "../claim/recovery-record.js";
import { refusalBeside } from "../claim/refusals.js";
import type { PlacedRequest } from "../request.js";
import type { SaidEnd } from "../agent/lifecycle.js";
import { LogWriter } from "./log-writer.js";
import { startingEvents } from "./starting-events.js";
import type { RecordedRun } from "../history/recorded-run.js";
import type { RunnerContext } from "../claim/recovery.js";
import {
  decidedEnd,
  endAsAsked,
  endOfFailure,
  endOfFinish,
  endOfStream,
  endWithoutHost,
  type RunEnd,
} from "./run-end.js";
import type { RunFeed } from "../../run/run-feed.js";

/** How often a live run that appends nothing checks its head row, in ms. */
const HEAD_CHECK_MS = 1_000;

/** How long an agent may go on after its terminal event (to fail after all, to begin another run), in ms. */
const LATE_MS = 250;

/** What a run is executed with. */
export interface ExecutionParts {
  readonly request: PlacedRequest;
  readonly fenced: FencedRun;
  /** The thread's lock, held. */
  readonly lock: HeldLock;
  readonly life: Life;
  readonly feed: RunFeed;
  /** Events up to `seq` are committed. */
  readonly advanced: (seq: number) => void;
  /** Nothing is left to do. */
  readonly over: () => void;
}

/** The messages of a branch that go into the log: the caller may keep some of the new ones out of it. */
function recordedOf(plan: InputPlan, { messages }: PersistedInput): Message[] {
  const recorded = new Set(messages.map(({ id }) => id));
  const left = new Set(plan.newMessages.map(({ id }) => id).filter((id) => !recorded.has(id)));
  return plan.messages().filter(({ id }) => !left.has(id));
}

/** The code of an errored run. */
function codeOf(end: RunEnd): string | undefined {
  if (end.status !== "errored") return undefined;
  return "terminal" in end ? (end.terminal as RunErrorEvent).code : end.code; // its status says so
}

/** Executes a fenced run: its agent's events go to the log, then to its readers, until its end is written. */
export class Execution {
  private readonly writer: LogWriter;
  private readonly ended = new AbortController();
  private begun = false;
  private reported = false;
  /** What a reader is told where the run is ended for its silence. */
  private silent: string | undefined;
  /** The agent's terminal event, which is not taken yet. */
  private said: (SaidEnd & { readonly over: AbortController }) | undefined;
  private lastHeard: number;
  /** Ids of the request's messages. */
  private asked: ReadonlySet<string> | undefined;
  /** By id, messages of which the log has only the text so far. */
  private readonly withParts = new Map<string, Message>();
  /** Why the run was given up. */
  private lostTo: RunnerError | undefined;
  /** Receives the lock when the run has ended. */
  private heir: ((lock: HeldLock | undefined) => void) | undefined;

  constructor(
    private readonly context: RunnerContext,
    private readonly its: ExecutionParts,
  ) {
    const { parts } = context;
    const { fenced, feed, request } = its;
    this.lastHeard = parts.clock.elapsed();
    this.writer = new LogWriter(parts.store, fenced.claim, new Set(request.input.tools.map((tool) => tool.name)), {
      committed: (chunk) => {
        this.lastHeard = parts.clock.elapsed();
        fenced.recorded.applyChunk(chunk);
        feed.publish(chunk);
        its.advanced(lastSeq(chunk));
      },
      reached: parts.reached && ((point) => this.reached(point)),
      stopRequested: (as) => this.heed(as),
      failed: (error) => this.lose(error),
    });
  }

  /** The run as rebuilt from its committed events; undefined before the first one and while it is settling. */
  get view(): RecordedRun | undefined {
    const { life, fenced } = this.its;
    return isListening(life.now) && fenced.recorded.started ? fenced.recorded : undefined;
  }

  /** The run as rebuilt from its committed events. */
  get recorded(): RecordedRun {
    return this.its.fenced.recorded;
  }

  /** Why another run that is to supersede this one would be refused. */
  refusalOf(by: PlacedRequest): ReturnType<typeof refusalBeside> {
    return refusalBeside(this.context, by, this.recorded);
  }

  /** Starts the agent. Call once, after the run was announced. */
  begin(): void {
    const { lock, request, fenced } = this.its;
    const { clock, maxRunMs, makeId } = this.context.parts;
    // Stolen by a host that took us for dead: the log is not ours any more.
    void lock.gone.then(() => this.lose(this.fencedError()));
    void this.watchHead();
    const { noProgressMs = Infinity } = this.context.parts.recovery.policyOf?.(this.its.request.agentId) ?? {};
    if (noProgressMs !== Infinity) void this.watchProgress(noProgressMs);
    if (maxRunMs !== undefined) void clock.after(maxRunMs, this.ended.signal).then(() => this.askToEnd("errored"));

    const { threadId, agent, input, attempt } = request;
    const { plan, state } = fenced;
    const said = plan.is === "attempt" ? plan.said : undefined;
    runAgent(
      agent,
      { ...input, threadId, state },
      {
        messages: plan.messages,
        take: (event) => fenced.gate.weigh(event, this.refuse),
        next: (event) => this.accept(event),
        open: () => this.writer.open,
        // Of the run's own messages some may not be committed yet.
        knows: (id) => this.knows(id) || fenced.gate.has(id),
        makeId,
        said: (end) => this.hearEnd(end),
        hosted: {
          ...(attempt !== undefined && { attempt: { ...attempt, ...(said !== undefined && { said }) } }),
          committed: () => this.committed(),
        },
        hasParts: (message) => this.withParts.set(message.id, message),
        dropped: (message) => this.context.parts.logger.warn(`${this.name}: ${message}`),
      },
    ).then(
      // L18: only what the agent said finishes a run.
      (failure) => this.end(failure === undefined ? endOfStream : endOfFailure(failure)),
      (thrown: unknown) => this.end(endOfFailure(thrown)),
    );
  }

  /**
   * Asks the agent to end; the run is settled within `stopGraceMs`, however the agent behaves.
   *
   * @returns false where it is ending already
   */
  askToEnd(as: AskedStatus): boolean {
    this.takeEnd();
    if (!this.its.life.go({ to: "stop", as })) return false;
    const { clock, stopGraceMs } = this.context.parts;
    void this.reached("stopping.heard");
    this.abortAgent();
    void this.reached("stopping.aborted");
    // L7: the thread is free after `stopGraceMs`, whatever the agent does.
    void clock.after(stopGraceMs, this.ended.signal).then(() => this.end(endAsAsked(as)));
    return true;
  }

  /** Follows a stop request from the log or from another host. */
  heed(as: StopRequest["as"]): void {
    this.takeEnd();
    // Settle before aborting: what the agent emits then must not count.
    if (as !== "superseded") this.askToEnd(as);
    else if (this.settle({ status: as })) this.abortAgent();
  }

  /**
   * Ends the run at once, in favour of another one of this host.
   *
   * @returns the thread's lock; undefined where it has to be claimed
   */
  handOver(): Promise<HeldLock | undefined> {
    if (this.ended.signal.aborted) return Promise.resolve(undefined);
    const handed = new Promise<HeldLock | undefined>((resolve) => (this.heir = resolve));
    this.heed("superseded");
    return handed;
  }

  /** See `HostedRun`. */
  private async committed(): Promise<void> {
    const { life } = this.its;
    if (isListening(life.now)) await this.writer.committed();
    // Also where it was ended meanwhile: what its agent does from now on is in no log.
    if (isListening(life.now)) return;
    const { threadId, runId } = this.its.fenced.claim;
    throw this.lostTo ?? new RunnerError("fenced", { threadId, runId }, { message: "The run is over" });
  }

  private accept(given: BaseEvent): void {
    if (!isListening(this.its.life.now)) return;
    const event = this.its.fenced.gate.admit(given, this.refuse);
    if (event === undefined) return;
    switch (event.type) {
      case EventType.RUN_STARTED:
        return this.record(event);
      case EventType.RUN_FINISHED:
        return this.acceptFinish(event as RunFinishedEvent); // verified
      case EventType.RUN_ERROR:
        return void this.end({ status: "errored", terminal: event });
      default:
        this.writer.add(event, this.context.parts.clock.now());
    }
  }

  /** Ends the run, one of whose events is refused. */
  private readonly refuse = (refusal: Refusal): void => {
    const { said } = this;
    if (said?.isFailure === true) said.take();
    // If the failure itself is refused, nothing was taken.
    if (this.end({ status: "errored", ...refusal })) this.abortAgent();
    else if (said?.isFailure === true) {
      this.context.parts.logger.warn(`${this.name}: ${refusal.message}`);
      this.abortAgent();
    }
  };

  /** A terminal event before a stop request counts; after one, the request does. */
  private acceptFinish(event: RunFinishedEvent): void {
    const { threadId, runId } = this.its.fenced.claim;
    const end = endOfFinish({ ...event, threadId, runId }, this.said?.isReturn === true);
    this.end(end, event.runId === runId);
  }

  private end(end: RunEnd, isAskedRun = false): boolean {
    const decided = decidedEnd(this.its.life.now, end, isAskedRun);
    const { silent } = this;
    const isSilent = silent !== undefined && decided.status === "broken";
    return this.settle(isSilent ? { status: "broken", message: silent } : decided);
  }

  /** Handles the agent's terminal event: it is taken when the stream ends, or a little later. */
  private hearEnd(end: SaidEnd | undefined): void {
    this.said?.over.abort();
    this.said = undefined;
    const { life } = this.its;
    if (end === undefined || !isListening(life.now)) return;
    const { clock, stopGraceMs } = this.context.parts;
    const over = new AbortController();
    this.said = { ...end, over };
    if (life.now.is === "stopping") return this.takeEnd();
    const wait = end.isAskedFor ? Math.min(LATE_MS, stopGraceMs) : stopGraceMs;
    void clock.after(wait, over.signal).then(() => {
      if (!over.signal.aborted) end.take();
    });
  }

  /** Takes the requested run's terminal event at once, if the agent has emitted it. */
  private takeEnd(): void {
    if (this.said?.isAskedFor === true) this.said.take();
  }

  /** Records RUN_STARTED, given or made, and what a true replay needs. */
  private record(given: BaseEvent | undefined): void {
    this.begun = true;
    const { request, fenced } = this.its;
    const { plan, state, stateIsThreads, persisted } = fenced;
    const now = this.context.parts.clock.now();
    const events = startingEvents({
      given,
      request: { ...request.input, threadId: request.threadId },
      newMessages: persisted.messages,
      isKnown: (id) => this.knows(id),
      records: this.context.parts.recordInput,
      ...(!stateIsThreads && { state }),
      ...(plan.is === "branch" && { branchMessages: recordedOf(plan, persisted) }),
      ...(plan.is === "attempt" && { snapshot: plan.snapshot }),
    });
    for (const event of events) {
      fenced.gate.note(event);
      this.writer.add(event, now);
    }
  }

  /** Whether the thread or the request has a message of this id. */
  private knows(id: string): boolean {
    const { request, fenced } = this.its;
    this.asked ??= new Set([...request.input.messages, ...fenced.plan.newMessages].map((message) => message.id));
    return this.asked.has(id) || fenced.recorded.has(id);
  }

  private settle(end: RunEnd): boolean {
    if (!this.its.life.go({ to: "settle", status: end.status })) return false;
    this.writeEnd(end).catch((error: unknown) => {
      this.report(end);
      this.lose(error);
    });
    return true;
  }

  /** The run's name, for the logger. */
  private get name(): string {
    const { threadId, runId } = this.its.fenced.claim;
    const { agentId } = this.its.request;
    return runName({ threadId, runId, agentId });
  }

  /** Prints what an errored run ended with, once. */
  private report(end: RunEnd): void {
    if (end.status !== "errored" || this.reported) return;
    this.reported = true;
    const { message } = "terminal" in end ? (end.terminal as RunErrorEvent) : end;
    const code = codeOf(end);
    const what = code === undefined || code === "AGENT_FAILED" ? message : `${code}: ${message}`;
    const details = "thrown" in end ? [loggable(end.thrown)] : [];
    this.context.parts.logger.error(failureLine(this.name, what), ...details);
  }

  private async writeEnd(end: RunEnd): Promise<void> {
    const { parts, history } = this.context;
    const { fenced, life } = this.its;
    const { claim, recorded } = fenced;
    const { threadId, runId, runIndex, epoch } = claim;
    await this.reached("settling.decided");
    if (!this.begun) this.record(undefined);
    await this.writer.drain();
    if (life.now.is !== "settling") return;
    await this.reached("settling.drained");

    const ending = closingEvents(this.writer.open, { threadId, runId, ids: parts.makeId, ...end });
    const events = [...this.wholeMessages(), ...ending];
    const chunk = this.writer.finish(events, parts.clock.now());
    recorded.applyChunk(chunk);
    const { agentId, attempt } = this.its.request;
    const waits = recoveryOf(parts, { ...claim, agentId, attempt }, { status: end.status, code: codeOf(end) });
    const result = await parts.store.settle(claim, {
      status: end.status,
      endedAt: parts.clock.now(),
      chunk,
      ownTerminal: "terminal" in end && end.isReturn !== true,
      closing: recorded.closing(),
      derived: recorded.derived(),
      left: this.left(end),
      bytes: fenced.gate.size,
      ...(waits !== undefined && { recovery: waits }),
    });
    if (result === "stop-requested") return this.endAsAsked();
    this.report(end);
    await this.reached("settling.committed");
    // L15: the next run reads no history.
    history.remember(threadId, epoch, recorded.base(runIndex));
    await this.free(end.status, [chunk]);
    // The thread is free for it.
    if (waits !== undefined) parts.recovery.added(threadId);
  }

  /** A snapshot that adds the parts which no other event adds. Call when all events are committed. */
  private wholeMessages(): readonly BaseEvent[] {
    const { recorded, gate } = this.its.fenced;
    const { messages } = recorded.content;
    const wholeOf = (message: Message): Message =>
      (typeof message.content === "string" && this.withParts.get(message.id)) || message;
    if (this.withParts.size === 0 || messages.every((message) => wholeOf(message) === message)) return [];
    const snapshot = gate.weigh(messagesSnapshot(cloneJson(messages.map(wholeOf))), ({ message }) =>
      this.context.parts.logger.warn(`${this.name}: of messages with parts only the text is kept. ${message}`),
    );
    return snapshot === undefined ? [] : [snapshot];
  }

  /** The tool calls that a finished run leaves. */
  private left(end: RunEnd): Settlement["left"] {
    if (end.status !== "finished" || !("terminal" in end)) return undefined;
    const { request, fenced } = this.its;
    const tools = new Set(request.input.tools.map(({ name }) => name));
    const { outcome } = end.terminal as RunFinishedEvent; // its status says so
    const { recorded } = fenced;
    // Calls of the page that the broken run made have not been answered: they wait from now on.
    const before = request.attempt === undefined ? recorded.start.messages : [];
    const left = leftCalls(before, recorded.content.messages, tools, outcome);
    if (left.unanswered.size === 0) return undefined;
    const { agentId } = request;
    return { ...left, nextRunId: this.context.parts.makeId(), ...(agentId !== undefined && { agentId }) };
  }

  /** The log has a stop request that was not heard yet: it decides. */
  private async endAsAsked(): Promise<void> {
    const { recovery, parts } = this.context;
    const { threadId, runId, runIndex } = this.its.fenced.claim;
    await this.reached("settling.overruled");
    const head = await parts.store.head(threadId);
    const status = head?.stop?.as ?? "stopped";
    this.its.life.go({ to: "decide", status });
    if (head?.live?.runId === runId) await recovery.settleOrphan(head, status);
    await this.free(status, await parts.store.chunks(threadId, runIndex, this.its.feed.publishedSeq, Infinity));
  }

  /** Frees or hands over the lock before anybody sees the end, so that a follow-up run is never refused. */
  private async free(status: SettledStatus, end: readonly Chunk[]): Promise<void> {
    const { life, lock, feed } = this.its;
    // Settle before the release, which would look like a theft.
    life.go({ to: "settled" });
    if (this.heir === undefined) await lock.release();
    else this.heir(lock);
    await this.reached("settling.released");
    for (const chunk of end) feed.publish(chunk);
    feed.settled(status);
    // Whoever reruns the agent on this end must find it free: nothing is awaited without need.
    const { reached } = this.context.parts;
    if (reached !== undefined) await reached("settling.published", this.its.fenced.claim.threadId);
    this.leave();
  }

  /** Gives the run up: another host ends it, or the log cannot be written. Readers go on in the log. */
  private lose(error: unknown): void {
    const { life, lock, feed, fenced } = this.its;
    const as = endWithoutHost(life.now);
    if (!life.go({ to: "lose" })) return;
    this.lostTo = RunnerError.is(error) ? error : undefined;
    // The failure may be transient, and a host that took the lock may not have settled the run: try to end it.
    void this.reached("losing.lost")
      .then(() => this.context.recovery.breakOff(fenced.claim, as, error))
      .then(() => lock.release())
      .then(() => {
        // L10: readers are told what failed.
        feed.lose(RunnerError.is(error, "fenced") ? undefined : error);
        this.abortAgent();
        this.leave();
      });
  }

  private leave(): void {
    this.ended.abort();
    this.said?.over.abort();
    this.heir?.(undefined);
    this.its.over();
    // An agent that still runs is detached: nothing of it is written or shown any more.
    try {
      void this.its.request.agent.detachActiveRun().catch(() => undefined);
    } catch {
      // The agent's own failure: the run is over.
    }
  }

  private abortAgent(): void {
    try {
      // An async `abortRun` may reject, and nobody else would handle that.
      const asked: unknown = this.its.request.agent.abortRun();
      void Promise.resolve(asked).catch(() => undefined);
    } catch {
      // If `abortRun` throws, the grace period still applies.
    }
  }

  /** Ends the run as broken where its agent emits nothing for so long. */
  private async watchProgress(noProgressMs: number): Promise<void> {
    const { clock } = this.context.parts;
    const { signal } = this.ended;
    for (let left = noProgressMs; left > 0 && !signal.aborted; left = this.lastHeard + noProgressMs - clock.elapsed()) {
      await clock.after(left, signal);
    }
    // A terminal event that is not taken yet is progress: see `askToEnd`.
    if (signal.aborted) return;
    this.silent = `The run was ended: its agent emitted nothing for ${noProgressMs} ms`;
    this.askToEnd("broken");
  }

  /** Notices a stop request or a takeover even if the run appends nothing and no message arrives. */
  private async watchHead(): Promise<void> {
    const { clock, store } = this.context.parts;
    const { life, fenced } = this.its;
    const { threadId, runId, epoch } = fenced.claim;
    while (!this.ended.signal.aborted) {
      await clock.after(HEAD_CHECK_MS, this.ended.signal);
      if (!isListening(life.now) || clock.elapsed() - this.lastHeard < HEAD_CHECK_MS) continue;
      const head = await store.head(threadId).catch(() => undefined);
      if (head === undefined) continue;
      if (head.epoch !== epoch) this.lose(this.fencedError());
      else if (head.stop?.runId === runId) this.heed(head.stop.as);
    }
  }

  private async reached(point: FailurePoint): Promise<void> {
    await this.context.parts.reached?.(point, this.its.fenced.claim.threadId);
  }

  private fencedError(): RunnerError {
    const { threadId, runId } = this.its.fenced.claim;
    return new RunnerError("fenced", { threadId, runId });
  }
}
