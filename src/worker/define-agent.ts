import { AbstractAgent, type AgentConfig, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { EventType, type AGUIEvent } from "@ag-ui/core";
import { Observable } from "rxjs";
import { nextTask } from "../platform/clock.js";
import type { Attempt, ContinuingAgent, HostedRun } from "../run/hosted.js";
import { AGENT_NAMES, checkKind, checkNames, FUNCTION, TEXTS, type Names } from "../run/options.js";
import { mustBeEvent, returns } from "../runner/agent/lifecycle.js";

/** What an agent function is given besides its input. */
export interface AgentContext {
  /** Aborts when the run is to stop. Pass it on to `fetch` and the like. */
  readonly signal: AbortSignal;
  /**
   * Resolves once everything that was yielded so far is in the log: await it before a side effect that must not happen
   * twice. Rejects with a RunnerError where the run is over, or can be written no more. In a run without a host (the agent
   * was run by itself) there is no log, and it resolves at once.
   */
  readonly committed: () => Promise<void>;
  /** The run goes on with one that broke: `input.messages` then end with what that one left. */
  readonly attempt?: Attempt;
}

/** What {@link defineAgent} is told beside the function. */
export interface DefinedAgentConfig extends AgentConfig, Partial<Omit<ContinuingAgent, "hosted">> {}

/**
 * An agent as a function that yields AG-UI events. RUN_STARTED and the terminal event may be left out; what is left
 * open is closed. What it throws ends the run as errored. On stop `signal` aborts, and the generator returns at its
 * next yield.
 */
export type AgentFunction<E extends BaseEvent = AGUIEvent> = (
  input: RunAgentInput,
  context: AgentContext,
) => AsyncIterable<E>;

/** How long an agent may yield before other tasks of its host (messages, storage, stops) get a turn, in ms. */
const SLICE_MS = 8;

const NAMES: Names<DefinedAgentConfig> = {
  ...AGENT_NAMES,
  continues: [(given) => given === true, "true, or left out"],
  repeatableTools: TEXTS,
};

const unhosted = (): Promise<void> => Promise.resolve();

const isStart = (event: unknown): boolean => (event as BaseEvent | undefined)?.type === EventType.RUN_STARTED;

class FunctionAgent extends AbstractAgent {
  private work: AgentFunction<BaseEvent>;
  private aborting: AbortController | undefined;
  continues: boolean;
  repeatableTools: readonly string[];
  hosted: HostedRun | undefined = undefined;

  constructor(work: AgentFunction<BaseEvent>, { continues, repeatableTools, ...config }: DefinedAgentConfig) {
    super(config);
    this.work = work;
    this.continues = continues === true;
    this.repeatableTools = [...(repeatableTools ?? [])];
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return new Observable<BaseEvent>((subscriber) => {
      const aborting = new AbortController();
      this.aborting = aborting;
      const { signal } = aborting;
      const { threadId, runId } = input;
      const { attempt, committed = unhosted } = this.hosted ?? {};
      const context: AgentContext = { signal, committed, ...(attempt !== undefined && { attempt }) };
      let isEnded = false;
      let yielded = 0;
      const drive = async (): Promise<void> => {
        const iterator = this.work(input, context)[Symbol.asyncIterator]();
        try {
          let upcoming = iterator.next();
          // Readers see the question before the agent's first event, unless that is an immediate RUN_STARTED.
          const early = await Promise.race([upcoming, nextTask()]).catch(() => undefined);
          const startsItself = isStart(early?.value);
          if (!startsItself) subscriber.next({ type: EventType.RUN_STARTED, threadId, runId });
          let sliceEnds = performance.now() + SLICE_MS;
          for (;;) {
            const next = await upcoming;
            if (next.done === true) return;
            if (signal.aborted) break;
            mustBeEvent(next.value, ++yielded);
            const { type } = next.value;
            isEnded =
              type === EventType.RUN_FINISHED ||
              type === EventType.RUN_ERROR ||
              (isEnded && type !== EventType.RUN_STARTED);
            const wasSent = yielded === 1 && isStart(next.value) && !startsItself;
            if (!wasSent) subscriber.next(next.value);
            if (performance.now() >= sliceEnds) {
              await nextTask();
              sliceEnds = performance.now() + SLICE_MS;
            }
            // An agent that was stopped is not asked for more.
            if (signal.aborted) break;
            upcoming = iterator.next();
          }
        } finally {
          await iterator.return?.();
        }
      };
      drive().then(
        () => {
          // To return ends the run, unless it was stopped (L18).
          if (!isEnded && !signal.aborted) {
            const end: BaseEvent = { type: EventType.RUN_FINISHED, threadId, runId };
            returns.add(end);
            subscriber.next(end);
          }
          subscriber.complete();
        },
        (error: unknown) => (signal.aborted ? subscriber.complete() : subscriber.error(error)),
      );
      return () => aborting.abort();
    });
  }

  override abortRun(): void {
    this.aborting?.abort();
  }

  /** The base class copies only its own fields, onto an object that no constructor made. */
  override clone(): FunctionAgent {
    const copy = super.clone() as FunctionAgent;
    copy.work = this.work;
    copy.aborting = undefined;
    copy.continues = this.continues;
    copy.repeatableTools = this.repeatableTools;
    copy.hosted = undefined;
    return copy;
  }
}

/**
 * Makes an agent from an async generator function, with correct abort and clone. `defineAgent<BaseEvent>` takes a
 * function that passes on another agent's events, whose fields the compiler does not know.
 *
 * @param work see {@link AgentFunction}
 * @param config `agentId`, `description` and the like of AbstractAgent; `continues` where the function goes on from what a
 *   broken run left, and `repeatableTools`: see {@link ContinuingAgent}
 */
export function defineAgent(work: AgentFunction, config?: DefinedAgentConfig): AbstractAgent;
// Applies only where the type is named: no function yields `never`.
export function defineAgent<E extends BaseEvent = never>(
  work: AgentFunction<NoInfer<E>>,
  config?: DefinedAgentConfig,
): AbstractAgent;
export function defineAgent(work: AgentFunction<BaseEvent>, config: DefinedAgentConfig = {}): AbstractAgent {
  checkKind("work", work, FUNCTION);
  checkNames(config, NAMES, { of: "defineAgent" });
  return new FunctionAgent(work, config);
}
