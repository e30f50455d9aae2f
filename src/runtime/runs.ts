import type { AbstractAgent, BaseEvent, Message, RunAgentInput } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { share, tap, type Observable } from "rxjs";
import { systemClock } from "../platform/clock.js";
import { loggable, type Logger } from "../platform/log.js";
import type { IndexedDBAgentRunnerOptions } from "../runner/indexeddb-agent-runner.js";
import type { AgentRunner, AgentRunnerRunRequest } from "../run/contract.js";
import { messageOf, RunnerError } from "../run/errors.js";
import type { Attempt } from "../run/hosted.js";
import { loaded } from "../run/loaded.js";
import { Fold } from "../run/fold.js";
import { cloneJson } from "../run/json.js";
import { failureLine, runName } from "../run/printable.js";
import { sizeOf } from "../run/size.js";
import type { SettledStatus } from "../run/types.js";
import { toLiveRunInfo } from "../runner/read/attach.js";
import { noServer, type Asked } from "../runner/request.js";
import type { LiveRun } from "../runner/live/live-run.js";
import { LocalAgentRunner } from "../runner/local-agent-runner.js";
import type { RunRequest } from "../wire/shapes.js";
import type { Network } from "../platform/network.js";
import { policyOf, type AgentPolicies } from "./agent-policies.js";
import type { AgentRegistry } from "./agents.js";
import { AgentConfigurator, type AgentSettings } from "./configure-agent.js";
import type { Debug } from "./debug.js";
import { foreignEvents } from "./foreign-events.js";
import { tell, type MeasuredRun, type RuntimeMetrics } from "./metrics.js";
import type { Admitted, RequestEnd, ServedRun } from "./request.js";
import { isSuggestion, mcpRequestOf } from "./mcp-requests.js";
import type { UnrecordedRunsOptions } from "./options.js";
import { json } from "./http/responses.js";
import type { RunnerHome } from "./runner-home.js";

export interface RuntimeRunsParts {
  readonly agents: AgentRegistry;
  readonly home: RunnerHome;
  readonly settings: AgentSettings;
  readonly metrics: RuntimeMetrics | undefined;
  readonly debug: Debug;
  /** An after-middleware gets the run's messages. */
  readonly observes: boolean;
  /** Bounds for the runners of unrecorded runs. */
  readonly bounds: Pick<IndexedDBAgentRunnerOptions, "stopGraceMs" | "maxRunMs" | "eventLimits">;
  readonly unrecordedRuns: UnrecordedRunsOptions | undefined;
  readonly policies: AgentPolicies | undefined;
  readonly network: Network;
  /** Resolves once it is known how the devices stand. */
  readonly inStep: () => Promise<unknown>;
  readonly logger: Required<Logger>;
}

/** How a run comes about; empty: a caller of this host has just asked for it, and waits for it. */
export interface RunAs {
  /** Maps the thread's messages to what the sender sees, if it cannot hold them in full. */
  readonly shownAs?: ((message: Message) => Message) | undefined;
  /** It is one of the thread's waiting runs; `attempt`: that goes on with a broken one. */
  readonly waiting?: { readonly attempt: Attempt | undefined };
  /** Another device asks this server for it. */
  readonly asked?: Asked;
}

interface LoadingRun {
  readonly threadId: string;
  readonly runId: string;
  isStopped: boolean;
}

/** An unrecorded run, from its request until its runner is closed. */
interface Beside {
  readonly threadId: string;
  /** Suggestions have a made-up thread. */
  readonly isAlone: boolean;
  runner?: LocalAgentRunner;
  /** While somebody reads it. */
  run?: LiveRun | undefined;
}

/** Defaults of `unrecordedRuns`. */
const MAX_PER_THREAD = 16;
const MAX_IN_ALL = 100;
const MAX_UNRECORDED_MS = 300_000;

/** Limit for messages collected from a third-party run, see `sizeOf`. */
const MAX_TOLD = 32 * 1024 * 1024;

/** Starts a runtime's runs and observes their end. */
export class RuntimeRuns {
  /** Runs already reported: the same run may be requested again. */
  private readonly told = new WeakSet<LiveRun>();
  /** Recorded runs that were started here. */
  private readonly recorded = new Set<LiveRun>();
  private readonly beside = new Set<Beside>();
  /** Requests whose agent is still loading: no runner knows of their runs yet. */
  private readonly loading = new Set<LoadingRun>();
  private readonly threads = new Map<string, number>();
  private closed = false;

  readonly configurator: AgentConfigurator;

  constructor(private readonly parts: RuntimeRunsParts) {
    this.configurator = new AgentConfigurator(parts.settings);
  }

  get live(): number {
    return this.threads.size;
  }

  /**
   * Errors: see `RuntimeCore.startRun`.
   */
  async start(request: Admitted, asked: RunRequest, { shownAs, ...as }: RunAs = {}): Promise<ServedRun> {
    if (mcpRequestOf(asked.input) !== undefined) return this.askMcpServer(request, asked);
    if (isSuggestion(asked.input)) return this.suggest(request, asked);
    const { configurator } = this;
    const { agents, home } = this.parts;
    const { agentId, threadId } = asked;
    await this.checkNetwork(asked);
    const input = { ...asked.input, threadId };
    // One that goes on with what broke here does so here.
    const isPlaced = as.asked === undefined && as.waiting?.attempt === undefined;
    const placement = isPlaced ? await agents.placementOf(agentId, request.request) : "here";
    const load = async () => {
      // Nothing is superseded in vain.
      if (placement === "server" && asked.onBusy === "supersede") {
        if (!agents.servers.includes(agentId)) await agents.heard(agentId);
        if (!agents.servers.includes(agentId))
          throw new RunnerError("offline", { threadId, agentId }, { message: noServer(agentId) });
      }
      const agent = await agents.clone(agentId, request.request);
      await configurator.configure({ agentId, agent, input, request: request.request });
      const opened = await home.open();
      if (placement !== "here") await this.parts.inStep();
      return { agent, runner: opened };
    };
    const loading: LoadingRun = { threadId, runId: input.runId, isStopped: false };
    this.loading.add(loading);
    let made: Awaited<ReturnType<typeof load>>;
    try {
      made = await load();
    } finally {
      // L11: from here to the runner's start nothing is awaited, so a stop finds it here or there.
      this.loading.delete(loading);
    }
    const { agent, runner } = made;
    const { isStopped } = loading;
    if (!(runner instanceof LocalAgentRunner)) {
      if (isStopped) throw new RunnerError("cancelled", { threadId, runId: input.runId });
      const persistedInputMessages = asked.persistedInputMessages && [...asked.persistedInputMessages];
      handOver(agent, input);
      const run = { threadId, agent, input, ...(persistedInputMessages && { persistedInputMessages }) };
      return this.foreign(asked, await runForeign(runner, run));
    }
    const { partial, cut, branchBefore, persistedInputMessages, afterToolCalls, onBusy } = asked;
    const run = runner.start({
      threadId,
      agentId,
      agent,
      input,
      partial,
      cut,
      branchBefore,
      persistedInputMessages,
      afterToolCalls,
      shownAs,
      onBusy: onBusy === "reject" || onBusy === "queue" ? "throw" : onBusy,
      afterWaiting: onBusy === "queue",
      waiting: as.waiting !== undefined,
      attempt: as.waiting?.attempt,
      asked: as.asked,
      ...(placement !== "here" && { placement }),
    });
    // One that waits in the queue is cancelled.
    if (isStopped) run.stop();
    const ref = await run.started;
    if (this.closed || isStopped) run.stop();
    const isFirst = this.isNew(run);
    if (isFirst) {
      this.recorded.add(run);
      void run.ended.then(() => this.recorded.delete(run));
      this.measure(asked, run);
    }
    const messages = async (): Promise<readonly Message[]> =>
      messagesOf((await runner.getRunEvents(run.runId, { threadId })).map(({ event }) => event));
    return {
      is: "local",
      isRecorded: true,
      run: toLiveRunInfo(ref),
      frames: (signal) => runner.runFrames(run, asked, signal),
      ...(run.is.is === "refused"
        ? onlyRead({ threadId })
        : {
            left: nothing,
            ended: run.ended.then(() => ({ threadId, ...(isFirst && { runId: run.runId, messages }) })),
          }),
    };
  }

  /** Errors: RunnerError `offline` for a run that needs the network; not for one that is there already. */
  private async checkNetwork({ agentId, threadId, input }: RunRequest): Promise<void> {
    const { policies, network, home } = this.parts;
    if (network.isOnline || policyOf(policies, agentId).needsNetwork !== true) return;
    const runner = await home.open();
    const isKnown = runner instanceof LocalAgentRunner && (await runner.hasRun(threadId, input));
    if (!isKnown) throw new RunnerError("offline", { threadId, agentId });
  }

  /** Runs the agent as it is, without a2ui and mcpApps, and records nothing. */
  async suggest(request: Admitted, asked: RunRequest): Promise<ServedRun> {
    if (mcpRequestOf(asked.input) !== undefined) return this.askMcpServer(request, asked);
    const agent = await this.parts.agents.clone(asked.agentId, request.request);
    this.configurator.addHeaders({ agent, request: request.request });
    return this.unrecorded(asked, agent, true);
  }

  /**
   * Forwards a request of an MCP server's user interface to that server, through the agent's middleware (`mcpApps`). It
   * is not part of the conversation and may come while a run is live. If no server of the agent allows it, it is
   * refused as the middleware would: in the run's result.
   */
  private async askMcpServer(request: Admitted, asked: RunRequest): Promise<ServedRun> {
    const { configurator } = this;
    const { agents, metrics, logger, debug } = this.parts;
    const { agentId, threadId } = asked;
    const input = { ...asked.input, threadId };
    const asks = mcpRequestOf(input)!;
    const { method, tool } = asks;
    const isAllowed = configurator.mcpServersFor(agentId, asks).length > 0;
    const told = { threadId, runId: input.runId, agentId, method, ...(tool !== undefined && { tool }), isAllowed };
    tell(metrics, "mcpRequest", told);
    debug.lifecycle?.("MCP server asked", told);
    const agent = await agents.clone(agentId, request.request);
    if (!isAllowed) {
      logger.warn("[ag-ui-local-runtime] Refused what a page asked of an MCP server", told);
      const { RefusingAgent } = await loaded(import("./stand-ins.js"));
      return this.unrecorded(asked, new RefusingAgent(asks), false);
    }
    logger.info("[ag-ui-local-runtime] A page asked an MCP server", told);
    await configurator.configure({ agentId, agent, input, request: request.request });
    return this.unrecorded(asked, agent, false);
  }

  /**
   * Stops the runs of a thread whose agent is still loading, as soon as they start.
   *
   * @returns false if there are none that nobody has stopped
   */
  stopLoading({ threadId, runId }: { readonly threadId: string; readonly runId?: string }): boolean {
    let found = false;
    for (const run of this.loading) {
      if (run.isStopped || run.threadId !== threadId || run.runId !== (runId ?? run.runId)) continue;
      run.isStopped = found = true;
    }
    return found;
  }

  /** @returns false where no such run is live */
  stopUnrecorded({ threadId, runId }: { readonly threadId: string; readonly runId?: string }): boolean {
    return [...this.beside].some(({ threadId: its, isAlone, run }) => {
      if (its !== threadId || run === undefined) return false;
      // Without a runId, only a run alone in its thread is meant.
      return (runId === undefined ? isAlone : runId === run.runId) && run.stop();
    });
  }

  /** Stops unrecorded runs; the runner ends the recorded ones. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.beside].map((beside) => this.leave(beside)));
  }

  /** Stops the recorded runs that were started here. */
  async endRecorded(): Promise<void> {
    await Promise.all(
      [...this.recorded].map(async (run) => {
        run.stop();
        await run.ended;
      }),
    );
  }

  /** Starts an unrecorded run, independent of its thread's run; it ends when its reader leaves. */
  private async unrecorded(
    { agentId, threadId, input }: RunRequest,
    agent: AbstractAgent,
    isAlone: boolean,
  ): Promise<ServedRun> {
    const { bounds, unrecordedRuns: caps = {}, logger } = this.parts;
    const maxRunMs = caps.maxRunMs ?? Math.min(bounds.maxRunMs ?? Infinity, MAX_UNRECORDED_MS);
    const beside = this.enter(threadId, isAlone);
    try {
      // Loaded on demand: few front ends need it.
      const { InMemoryAgentRunner } = await loaded(import("../runner/in-memory-agent-runner.js"));
      if (this.closed) throw new RunnerError("closed");
      const runner = new InMemoryAgentRunner({ store: "isolated", logger, ...bounds, maxRunMs });
      beside.runner = runner;
      const run = runner.start({ threadId, agentId, agent, input: { ...input, threadId } });
      const ref = await run.started;
      beside.run = run;
      this.measure({ agentId, threadId, input }, run, true);
      return {
        is: "local",
        isRecorded: false,
        run: { ...toLiveRunInfo(ref), unrecorded: true },
        frames: (signal) => runner.runFrames(run, { input }, signal),
        ended: run.ended.then(() => ({ threadId })),
        left: () => void this.leave(beside),
      };
    } catch (error) {
      void this.leave(beside);
      throw error;
    }
  }

  /** Takes a slot for an unrecorded run. @throws Response 429 if none is free */
  private enter(threadId: string, isAlone: boolean): Beside {
    const { maxPerThread = MAX_PER_THREAD, maxInAll = MAX_IN_ALL } = this.parts.unrecordedRuns ?? {};
    const here = [...this.beside].filter((one) => one.threadId === threadId).length;
    if (here >= maxPerThread || this.beside.size >= maxInAll) {
      const message = "Too many runs beside the log: see unrecordedRuns";
      throw json({ error: "Too many requests", message }, 429, { "Retry-After": "1" });
    }
    const beside: Beside = { threadId, isAlone };
    this.beside.add(beside);
    return beside;
  }

  /** Ends an unrecorded run, and frees its slot. */
  private async leave(beside: Beside): Promise<void> {
    beside.run = undefined;
    await beside.runner?.close();
    this.beside.delete(beside);
  }

  /** Whether this request started the run rather than found it, here or in the log. */
  private isNew(run: LiveRun): boolean {
    if (this.told.has(run) || run.is.is === "refused") return false;
    this.told.add(run);
    return true;
  }

  private measure({ agentId, threadId }: RunRequest, run: LiveRun, unrecorded = false): void {
    const { metrics, debug } = this.parts;
    if (metrics === undefined && debug.lifecycle === undefined) {
      this.count(threadId, 1);
      void run.ended.then(() => this.count(threadId, -1));
      return;
    }
    const over = this.begin({ threadId, agentId, runId: run.runId, ...(unrecorded && { unrecorded }) });
    void run.ended.then(() => {
      const { state, publishedSeq } = run.feed;
      over(publishedSeq + 1, state.is === "ended" ? state.status : "lost");
    });
  }

  /** @returns a callback for the end of the run */
  private begin(run: MeasuredRun): (events: number, status?: "lost" | SettledStatus) => void {
    const { metrics, debug } = this.parts;
    const since = systemClock.elapsed();
    this.count(run.threadId, 1);
    tell(metrics, "runStarted", run);
    debug.lifecycle?.("run started", { ...run });
    return (events, status) => {
      const durationMs = systemClock.elapsed() - since;
      this.count(run.threadId, -1);
      const ended = { ...run, durationMs, events, ...(status !== undefined && { status }) };
      tell(metrics, "runEnded", ended);
      debug.lifecycle?.("run ended", ended);
    };
  }

  private count(threadId: string, change: 1 | -1): void {
    const { metrics } = this.parts;
    const runs = (this.threads.get(threadId) ?? 0) + change;
    if (runs > 0) this.threads.set(threadId, runs);
    else this.threads.delete(threadId);
    tell(metrics, "liveThreads", this.threads.size);
  }

  private foreign({ threadId, agentId, input }: RunRequest, events$: Observable<BaseEvent>): ServedRun {
    const over = this.begin({ threadId, agentId, runId: input.runId });
    // Collected only for an after-middleware, up to the limit.
    const told = new Fold({ messages: [], state: {}, interrupts: [] });
    let room = this.parts.observes ? MAX_TOLD : 0;
    let count = 0;
    const failed = (why: string, ...details: unknown[]): void => {
      const name = runName({ threadId, runId: input.runId, agentId });
      this.parts.logger.error(failureLine(name, why), ...details);
    };
    let end: () => void = nothing;
    const ended = new Promise<RequestEnd>((resolve) => {
      end = () => {
        over(count);
        resolve({ threadId, runId: input.runId, messages: () => Promise.resolve(told.messages) });
      };
    });
    const watched$ = events$.pipe(
      tap((event) => {
        count++;
        if (event.type === EventType.RUN_ERROR) failed(String(event["message"]));
        if (event.type === EventType.RUN_STARTED || room <= 0) return;
        try {
          room -= sizeOf(event, room);
          if (room > 0) told.apply(cloneJson(event));
        } catch {
          // Unchecked: it may be cyclic or nested too deep. Earlier messages are kept.
          room = 0;
        }
      }),
      // Also for what the one above throws.
      tap({
        error: (error: unknown) => {
          failed(messageOf(error), loggable(error));
          end();
        },
        complete: () => end(),
      }),
      // A second subscription could run the agent a second time. A reader that leaves does not end the run.
      share({ resetOnRefCountZero: false, resetOnComplete: false, resetOnError: false }),
    );
    return { is: "foreign", events$: watched$, ended, left: nothing };
  }
}

/** Third-party runners expect the thread set on the agent, as CopilotKit's runtime does. */
function handOver(agent: AbstractAgent, { threadId, messages, state }: RunAgentInput): void {
  agent.setMessages(messages);
  agent.setState(state);
  agent.threadId = threadId;
}

/**
 * Errors: RunnerError `thread-busy`, which CopilotKit's runner throws as a plain Error with this message; other errors
 * as thrown.
 */
async function runForeign(runner: AgentRunner, request: AgentRunnerRunRequest): Promise<Observable<BaseEvent>> {
  try {
    return await foreignEvents(runner.run(request));
  } catch (error) {
    if (RunnerError.is(error) || messageOf(error) !== "Thread already running") throw error;
    throw new RunnerError("thread-busy", { threadId: request.threadId }, { cause: error });
  }
}

/** A recorded run goes on without readers. */
const nothing = (): void => undefined;

/** For a run already in the log: over when its reader is done or left. */
function onlyRead(end: RequestEnd): Pick<ServedRun, "left" | "ended"> {
  let left: () => void = nothing;
  const over = new Promise<void>((resolve) => (left = resolve));
  return { left, ended: over.then(() => end) };
}

/** The messages that a run's events produce, without those of its input. */
function messagesOf(events: readonly BaseEvent[]): readonly Message[] {
  const fold = new Fold({ messages: [], state: {}, interrupts: [] });
  for (const event of events) if (event.type !== EventType.RUN_STARTED) fold.apply(event);
  return cloneJson(fold.messages);
}
