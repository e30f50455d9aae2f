import type { AbstractAgent, AgentConfig, BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { AGUIEvent } from "@ag-ui/core";
import type { ContinuingAgent, HostedAttempt, HostedRun } from "../run/hosted.js";
import { AGENT_NAMES, checkKind, checkNames, FUNCTION, TEXTS, type Names } from "../run/options.js";
import { GeneratorAgent } from "../runner/agent/generator-agent.js";

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
  readonly attempt?: HostedAttempt;
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

const NAMES: Names<DefinedAgentConfig> = {
  ...AGENT_NAMES,
  continues: [(given) => given === true, "true, or left out"],
  repeatableTools: TEXTS,
};

const unhosted = (): Promise<void> => Promise.resolve();

class FunctionAgent extends GeneratorAgent {
  private work: AgentFunction<BaseEvent>;
  continues: boolean;
  repeatableTools: readonly string[];
  hosted: HostedRun | undefined = undefined;

  constructor(work: AgentFunction<BaseEvent>, { continues, repeatableTools, ...config }: DefinedAgentConfig) {
    super(config);
    this.work = work;
    this.continues = continues === true;
    this.repeatableTools = [...(repeatableTools ?? [])];
  }

  protected override events(input: RunAgentInput, signal: AbortSignal): AsyncIterable<BaseEvent> {
    const { attempt, committed = unhosted } = this.hosted ?? {};
    return this.work(input, { signal, committed, ...(attempt !== undefined && { attempt }) });
  }

  override clone(): this {
    const copy = super.clone();
    copy.work = this.work;
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
