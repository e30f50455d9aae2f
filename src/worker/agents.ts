import type { AbstractAgent } from "@ag-ui/client";
import { RunnerError } from "../run/errors.js";

/** An agent, or how to get it at its first run (a dynamic `import()` keeps the worker's start fast). */
export type AgentSource = AbstractAgent | (() => AbstractAgent | Promise<AbstractAgent>);

/** The agents that a host has, by the id that tabs name them by. */
export class AgentRegistry {
  private readonly sources: ReadonlyMap<string, AgentSource>;
  private readonly loaded = new Map<string, Promise<AbstractAgent>>();

  /** @throws RunnerError `agent-not-cloneable` for an agent whose clone cannot run */
  constructor(agents: Readonly<Record<string, AgentSource>>) {
    this.sources = new Map(Object.entries(agents));
    for (const [agentId, source] of this.sources) if (typeof source !== "function") cloneOf(agentId, source);
  }

  get ids(): readonly string[] {
    return [...this.sources.keys()];
  }

  /**
   * A fresh clone for one run.
   *
   * Errors: RunnerError `unknown-agent`, `agent-not-cloneable`, or what loading it threw (the next call tries again).
   */
  async clone(agentId: string): Promise<AbstractAgent> {
    const source = this.sources.get(agentId);
    if (source === undefined) throw new RunnerError("unknown-agent", { agentId, agentIds: this.ids });
    if (typeof source !== "function") return cloneOf(agentId, source);
    let loading = this.loaded.get(agentId);
    if (loading === undefined) {
      loading = Promise.resolve().then(source);
      this.loaded.set(agentId, loading);
      loading.catch(() => this.loaded.delete(agentId));
    }
    return cloneOf(agentId, await loading);
  }
}

function cloneOf(agentId: string, agent: AbstractAgent): AbstractAgent {
  let clone: AbstractAgent;
  try {
    clone = agent.clone() as AbstractAgent;
  } catch (error) {
    throw new RunnerError("agent-not-cloneable", { agentId }, { cause: error });
  }
  if (typeof clone?.run !== "function" || clone === agent) throw new RunnerError("agent-not-cloneable", { agentId });
  clone.agentId = agentId;
  return clone;
}
