import type { AbstractAgent, BaseEvent, Message, RunAgentInput } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import type { Observable } from "rxjs";
import { systemClock } from "../platform/clock.js";
import { loggable, type Logger } from "../platform/log.js";
import type { IndexedDBAgentRunnerOptions } from "../runner/indexeddb-agent-runner.js";
import type { AgentRunner, AgentRunnerRunRequest } from "../run/contract.js";
import { messageOf, RunnerError } from "../run/errors.js";
import { Fold } from "../run/fold.js";
import { cloneJson } from "../run/json.js";
import { failureLine, runName } from "../run/printable.js";
import { sizeOf } from "../run/size.js";
import type { SettledStatus } from "../run/types.js";
import { toLiveRunInfo } from "../runner/read/attach.js";
import type { LiveRun } from "../runner/live/live-run.js";
import { LocalAgentRunner } from "../runner/local-agent-runner.js";
import type { RunRequest } from "../wire/shapes.js";
import type { AgentRegistry } from "./agents.js";
import type { AgentConfigurator } from "./configure-agent.js";
import type { Debug } from "./debug.js";
import { foreignEvents } from "./foreign-events.js";
import { tell, type MeasuredRun, type RuntimeMetrics } from "./metrics.js";
import type { Admitted, RequestEnd } from "./request.js";
import { mcpRequestOf, RefusingAgent } from "./mcp-requests.js";
import type { UnrecordedRunsOptions } from "./options.js";
import { json } from "./http/responses.js";
import type { RunnerHome } from "./runner-home.js";
import type { ServedRun } from "./served-run.js";

export interface RuntimeRunsParts {
  readonly agents: AgentRegistry;
  readonly home: RunnerHome;
  readonly configurator: AgentConfigurator;
  readonly metrics: RuntimeMetrics | undefined;
  readonly debug: Debug;
  /** Somebody is told of messages when a run is over. */
  readonly observes: boolean;
  /** Of the runners of runs that are recorded nowhere. */
  readonly bounds: Pick<IndexedDBAgentRunnerOptions, "stopGraceMs" | "maxRunMs" | "eventLimits">;
  readonly unrecordedRuns: UnrecordedRunsOptions | undefined;
  readonly logger: Required<Logger>;
}

/** Defaults of `unrecordedRuns`. */
const MAX_PER_THREAD = 16;
const MAX_IN_ALL = 100;
const MAX_UNRECORDED_MS = 300_000;

/** What of a foreign run's messages is told at most, see `sizeOf`. */
const MAX_TOLD = 32 * 1024 * 1024;

/** Starts the runs of a runtime and sees how they end. */
export class RuntimeRuns {
  /** Runs that are told of already: the same one may be asked for again. */
  private readonly told = new WeakSet<LiveRun>();
  /** Those that were started here and are recorded. */
  private readonly recorded = new Set<LiveRun>();
  /** Those that are recorded nowhere, and whether each is all that its thread has: a thread is made up for suggestions. */
  private readonly unrecordedRuns = new Map<LiveRun, boolean>();
  /** How to end those that are recorded nowhere. */
  private readonly closers = new Set<() => Promise<void>>();
  private readonly threads = new Map<string, number>();
  /** How many runs that are recorded nowhere each thread has. */
  private readonly places = new Map<string, number>();
  private closed = false;

  constructor(private readonly parts: RuntimeRunsParts) {}

  get live(): number {
    return this.threads.size;
  }

  /** @param shownAs how the sender is shown the thread's messages, where it cannot hold all of them */
  async start(request: Admitted, asked: RunRequest, shownAs?: (message: Message) => Message): Promise<ServedRun> {
    if (mcpRequestOf(asked.input) !== undefined) return this.askMcpServer(request, asked);
    if (isSuggestion(asked.input)) return this.suggest(request, asked);
    const { agents, configurator, home } = this.parts;
    const { agentId, threadId } = asked;
    const input = { ...asked.input, threadId };
    const agent = await agents.clone(agentId, request.request);
    await configurator.configure({ agentId, agent, input, request: request.request });
    const runner = await home.open();
    if (!(runner instanceof LocalAgentRunner)) {
      const persistedInputMessages = asked.persistedInputMessages && [...asked.persistedInputMessages];
      handOver(agent, input);
      const run = { threadId, agent, input, ...(persistedInputMessages && { persistedInputMessages }) };
      return this.foreign(asked, await runForeign(runner, run));
    }
    const { partial, cut, branchBefore, persistedInputMessages } = asked;
    const run = runner.start({
      threadId,
      agentId,
      agent,
      input,
      partial,
      cut,
      branchBefore,
      persistedInputMessages,
      shownAs,
    });
    const ref = await run.started;
    if (this.closed) run.stop();
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

  /** Runs the agent as it is, without a2ui and mcpApps, and records nothing. */
  async suggest(request: Admitted, asked: RunRequest): Promise<ServedRun> {
    if (mcpRequestOf(asked.input) !== undefined) return this.askMcpServer(request, asked);
    const { agents, configurator } = this.parts;
    const agent = await agents.clone(asked.agentId, request.request);
    configurator.addHeaders({ agent, request: request.request });
    return this.unrecorded(asked, agent, true);
  }

  /**
   * Asks an MCP server what its user interface asks, through the agent's middleware (`mcpApps`). It is no part of the
   * conversation, and comes while a run is live, too. What no server of the agent allows is answered as the middleware
   * answers what it refuses: by the run's result.
   */
  private async askMcpServer(request: Admitted, asked: RunRequest): Promise<ServedRun> {
    const { agents, configurator, metrics, logger, debug } = this.parts;
    const { agentId, threadId } = asked;
    const input = { ...asked.input, threadId };
    const asks = mcpRequestOf(input)!;
    const { method, tool } = asks;
    const isAllowed = configurator.mcpServersFor(agentId, asks).length > 0;
    const told = { threadId, runId: input.runId, agentId, method, ...(tool !== undefined && { tool }), isAllowed };
    tell(metrics?.mcpRequest?.bind(metrics), told);
    debug.lifecycle?.("MCP server asked", told);
    const agent = await agents.clone(agentId, request.request);
    if (!isAllowed) {
      logger.warn("[ag-ui-local-runtime] Refused what a page asked of an MCP server", told);
      return this.unrecorded(asked, new RefusingAgent(asks), false);
    }
    logger.info("[ag-ui-local-runtime] A page asked an MCP server", told);
    await configurator.configure({ agentId, agent, input, request: request.request });
    return this.unrecorded(asked, agent, false);
  }

  /** @returns false where no such run is live */
  stopUnrecorded({ threadId, runId }: { readonly threadId: string; readonly runId?: string }): boolean {
    return [...this.unrecordedRuns].some(([run, isAlone]) => {
      if (run.threadId !== threadId) return false;
      // Without a name it is the thread's run that is meant.
      return (runId === undefined ? isAlone : runId === run.runId) && run.stop();
    });
  }

  /** Stops what is recorded nowhere; what is recorded is the runner's to end. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.closers].map((close) => close()));
  }

  /** Stops what was started here and is recorded. */
  async endRecorded(): Promise<void> {
    await Promise.all(
      [...this.recorded].map(async (run) => {
        run.stop();
        await run.ended;
      }),
    );
  }

  /** A run that is recorded nowhere, beside whatever its thread does, and ends when nobody reads it any more. */
  private async unrecorded(
    { agentId, threadId, input }: RunRequest,
    agent: AbstractAgent,
    isAlone: boolean,
  ): Promise<ServedRun> {
    const { bounds, unrecordedRuns: caps = {}, logger } = this.parts;
    const maxRunMs = caps.maxRunMs ?? Math.min(bounds.maxRunMs ?? Infinity, MAX_UNRECORDED_MS);
    const leave = this.enter(threadId);
    try {
      // Few front ends ask for such runs.
      const { InMemoryAgentRunner } = await import("../runner/in-memory-agent-runner.js");
      if (this.closed) throw new RunnerError("closed");
      const runner = new InMemoryAgentRunner({ store: "isolated", logger, ...bounds, maxRunMs });
      const close = async (): Promise<void> => {
        this.closers.delete(close);
        await runner.close();
        leave();
      };
      this.closers.add(close);
      try {
        const run = runner.start({ threadId, agentId, agent, input: { ...input, threadId } });
        const ref = await run.started;
        this.unrecordedRuns.set(run, isAlone);
        this.measure({ agentId, threadId, input }, run, true);
        return {
          is: "local",
          isRecorded: false,
          run: { ...toLiveRunInfo(ref), unrecorded: true },
          frames: (signal) => runner.runFrames(run, { input }, signal),
          ended: run.ended.then(() => ({ threadId })),
          left: () => {
            this.unrecordedRuns.delete(run);
            void close();
          },
        };
      } catch (error) {
        void close();
        throw error;
      }
    } catch (error) {
      leave();
      throw error;
    }
  }

  /**
   * A place among the runs that are recorded nowhere.
   *
   * @returns to be called when it is free again
   * @throws Response 429 where there is none
   */
  private enter(threadId: string): () => void {
    const { maxPerThread = MAX_PER_THREAD, maxInAll = MAX_IN_ALL } = this.parts.unrecordedRuns ?? {};
    const here = this.places.get(threadId) ?? 0;
    const inAll = [...this.places.values()].reduce((sum, count) => sum + count, 0);
    if (here >= maxPerThread || inAll >= maxInAll) {
      const message = "Too many runs beside the log: see unrecordedRuns";
      throw json({ error: "Too many requests", message }, 429, { "Retry-After": "1" });
    }
    this.places.set(threadId, here + 1);
    let isFree = false;
    return () => {
      if (isFree) return;
      isFree = true;
      const left = (this.places.get(threadId) ?? 1) - 1;
      if (left > 0) this.places.set(threadId, left);
      else this.places.delete(threadId);
    };
  }

  /** This request started the run. (Another one found it, here or in the log.) */
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

  /** @returns to be called when the run is over */
  private begin(run: MeasuredRun): (events: number, status?: "lost" | SettledStatus) => void {
    const { metrics, debug } = this.parts;
    const since = systemClock.elapsed();
    this.count(run.threadId, 1);
    tell(metrics?.runStarted?.bind(metrics), run);
    debug.lifecycle?.("run started", { ...run });
    return (events, status) => {
      const durationMs = systemClock.elapsed() - since;
      this.count(run.threadId, -1);
      const ended = { ...run, durationMs, events, ...(status !== undefined && { status }) };
      tell(metrics?.runEnded?.bind(metrics), ended);
      debug.lifecycle?.("run ended", ended);
    };
  }

  private count(threadId: string, change: 1 | -1): void {
    const { metrics } = this.parts;
    const runs = (this.threads.get(threadId) ?? 0) + change;
    if (runs > 0) this.threads.set(threadId, runs);
    else this.threads.delete(threadId);
    tell(metrics?.liveThreads?.bind(metrics), this.threads.size);
  }

  private foreign({ threadId, agentId, input }: RunRequest, events$: Observable<BaseEvent>): ServedRun {
    const over = this.begin({ threadId, agentId, runId: input.runId });
    // Where somebody is told of them; of a flood the beginning.
    const told = new Fold({ messages: [], state: {}, interrupts: [] });
    let room = this.parts.observes ? MAX_TOLD : 0;
    let count = 0;
    const ended = new Promise<RequestEnd>((resolve) => {
      const failed = (why: string, ...details: unknown[]): void => {
        const name = runName({ threadId, runId: input.runId, agentId });
        this.parts.logger.error(failureLine(name, why), ...details);
      };
      const end = (): void => {
        over(count);
        resolve({ threadId, runId: input.runId, messages: () => Promise.resolve(told.messages) });
      };
      // Whether or not anybody else reads it: its end is what frees the thread.
      events$.subscribe({
        next: (event) => {
          count++;
          if (event.type === EventType.RUN_ERROR) failed(String(event["message"]));
          if (event.type === EventType.RUN_STARTED || room <= 0) return;
          try {
            room -= sizeOf(event, room);
            if (room > 0) told.apply(cloneJson(event));
          } catch {
            // Nothing has checked it: it may hold itself, or be nested too deep. What came before it is told.
            room = 0;
          }
        },
        error: (error: unknown) => {
          failed(messageOf(error), loggable(error));
          end();
        },
        complete: end,
      });
    });
    return { is: "foreign", events$, ended, left: nothing };
  }
}

/** A runner of another make runs an agent that knows its thread: so CopilotKit's runtime hands agents over. */
function handOver(agent: AbstractAgent, { threadId, messages, state }: RunAgentInput): void {
  agent.setMessages(messages);
  agent.setState(state);
  agent.threadId = threadId;
}

/** Errors: RunnerError `thread-busy`, which CopilotKit's runner says by a bare Error of these words; what else it throws. */
async function runForeign(runner: AgentRunner, request: AgentRunnerRunRequest): Promise<Observable<BaseEvent>> {
  try {
    return await foreignEvents(runner.run(request));
  } catch (error) {
    if (RunnerError.is(error) || messageOf(error) !== "Thread already running") throw error;
    throw new RunnerError("thread-busy", { threadId: request.threadId }, { cause: error });
  }
}

/** A recorded run goes on, whoever reads it. */
const nothing = (): void => undefined;

/** Of a run that was in the log before: over when its reader has it, or left. */
function onlyRead(end: RequestEnd): Pick<ServedRun, "left" | "ended"> {
  let left: () => void = nothing;
  const over = new Promise<void>((resolve) => (left = resolve));
  return { left, ended: over.then(() => end) };
}

/** What CopilotKit's suggestion engine asks for: a thread of its own that is for nobody to keep. */
function isSuggestion({ forwardedProps }: RunAgentInput): boolean {
  const props = forwardedProps as { readonly toolChoice?: { readonly function?: { readonly name?: unknown } } } | null;
  return props?.toolChoice?.function?.name === "copilotkitSuggest";
}

/** The messages that events of one run lead to, without those of its input. */
function messagesOf(events: readonly BaseEvent[]): readonly Message[] {
  const fold = new Fold({ messages: [], state: {}, interrupts: [] });
  for (const event of events) if (event.type !== EventType.RUN_STARTED) fold.apply(event);
  return cloneJson(fold.messages);
}
