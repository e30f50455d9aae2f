import type { AbstractAgent, AgentConfig, BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { AGUIEvent } from "@ag-ui/core";
import { AGENT_NAMES, checkKind, checkNames, FUNCTION } from "../run/options.js";
import { GeneratorAgent } from "../runner/agent/generator-agent.js";

/** What an agent function is given besides its input. */
export interface AgentContext {
  /** Aborts when the run is to stop. Pass it on to `fetch` and the like. */
  readonly signal: AbortSignal;
}

/**
 * An agent as a function that yields AG-UI events. RUN_STARTED and the terminal event may be left out; what is left
 * open is closed. What it throws ends the run as errored. On stop `signal` aborts, and the generator returns at its
 * next yield.
 */
export type AgentFunction<E extends BaseEvent = AGUIEvent> = (
  input: RunAgentInput,
  context: AgentContext,
) => AsyncIterable<E>;

class FunctionAgent extends GeneratorAgent {
  private work: AgentFunction<BaseEvent>;

  constructor(work: AgentFunction<BaseEvent>, config: AgentConfig) {
    super(config);
    this.work = work;
  }

  protected override events(input: RunAgentInput, signal: AbortSignal): AsyncIterable<BaseEvent> {
    return this.work(input, { signal });
  }

  override clone(): this {
    const copy = super.clone();
    copy.work = this.work;
    return copy;
  }
}

/**
 * Makes an agent from an async generator function, with correct abort and clone. `defineAgent<BaseEvent>` takes a
 * function that passes on another agent's events, whose fields the compiler does not know.
 *
 * @param work see {@link AgentFunction}
 * @param config `agentId`, `description` and the like of AbstractAgent
 */
export function defineAgent(work: AgentFunction, config?: AgentConfig): AbstractAgent;
// Applies only where the type is named: no function yields `never`.
export function defineAgent<E extends BaseEvent = never>(
  work: AgentFunction<NoInfer<E>>,
  config?: AgentConfig,
): AbstractAgent;
export function defineAgent(work: AgentFunction<BaseEvent>, config: AgentConfig = {}): AbstractAgent {
  checkKind("work", work, FUNCTION);
  checkNames(config, AGENT_NAMES, { of: "defineAgent" });
  return new FunctionAgent(work, config);
}
