import type { AbstractAgent } from "@ag-ui/client";
import { RunnerError, type RunnerErrorCode } from "../run/errors.js";

/** An agent, or how to get it at its first run (a dynamic `import()` keeps the worker's start fast). */
export type AgentSource = AbstractAgent | (() => AbstractAgent | Promise<AbstractAgent>);

/** Agents, by the id that callers name them by. */
export type Agents = Readonly<Record<string, AgentSource>>;

/**
 * The agents of a runtime: a record; a promise of one; a function without parameters, called once at the first use and
 * again only after it failed; or a function of the request, called for each (agents of a tenant, of a signed-in user).
 */
export type AgentsConfig =
  | Agents
  | Promise<Agents>
  | (() => Agents | Promise<Agents>)
  | ((context: { readonly request: Request }) => Agents | Promise<Agents>);

/** What `/info` says of an agent. */
export interface AgentDescription {
  readonly name: string;
  readonly description: string;
  readonly className: string;
  readonly capabilities?: unknown;
}

/** Calls `make` at the first use, once for all who ask meanwhile; anew for who asks after it failed. */
export function once<T>(make: () => T | Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    if (made === undefined) {
      const making = Promise.resolve().then(make);
      made = making;
      making.catch(() => (made = made === making ? undefined : made));
    }
    return made;
  };
}

type OfRequest = (request: () => Request) => Agents | Promise<Agents>;

/** A request that needs its agents in several places is asked about once. */
function oncePerRequest(make: OfRequest): OfRequest {
  const made = new WeakMap<() => Request, Agents | Promise<Agents>>();
  return (request) => {
    if (!made.has(request)) made.set(request, make(request));
    return made.get(request)!;
  };
}

/** The agents that a runtime has. Only own keys of a record count. */
export class AgentRegistry {
  /** Where they are known before anybody asks: those of a record. */
  readonly ids: readonly string[] | undefined;
  private readonly agents: OfRequest;
  private readonly loaded = new WeakMap<object, () => Promise<AbstractAgent>>();

  /** @throws RunnerError `agent-not-cloneable` for an agent whose clone cannot run */
  constructor(config: AgentsConfig) {
    if (typeof config === "function") {
      const shared = once(config as () => Agents | Promise<Agents>); // of no parameters, where it is used
      this.agents = config.length === 0 ? shared : oncePerRequest((request) => config({ request: request() }));
    } else {
      // Told to whoever asks for an agent.
      if (config instanceof Promise) config.catch(() => undefined);
      else {
        this.ids = Object.keys(recordOf(config, "invalid-input"));
        for (const [agentId, source] of Object.entries(config)) {
          if (typeof source !== "function") cloneOf(agentId, source);
        }
      }
      this.agents = () => config;
    }
  }

  /**
   * A fresh clone for one run.
   *
   * @param request what is asked for it; made only where agents hang on it
   * Errors: RunnerError `unknown-agent`, `agent-not-cloneable`, or what loading it threw (the next call tries again).
   */
  async clone(agentId: string, request: () => Request): Promise<AbstractAgent> {
    return cloneOf(agentId, await this.load(await this.source(agentId, request)));
  }

  /** Errors: RunnerError `unknown-agent`, or what making the agents threw. */
  async require(agentId: string, request: () => Request): Promise<void> {
    await this.source(agentId, request);
  }

  /** All of them. One that is loaded at its first run is described by its id until then: describing it loads nothing. */
  async describe(request: () => Request): Promise<Readonly<Record<string, AgentDescription>>> {
    const agents = recordOf(await this.agents(request));
    const entries = await Promise.all(
      Object.entries(agents).map(async ([agentId, source]) => {
        const isLazy = typeof source === "function" && !this.loaded.has(source);
        const agent = isLazy ? undefined : await this.load(source).catch(() => undefined);
        return [agentId, await descriptionOf(agentId, agent)] as const;
      }),
    );
    return Object.fromEntries(entries);
  }

  private async source(agentId: string, request: () => Request): Promise<AgentSource> {
    const agents = recordOf(await this.agents(request));
    const source = Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
    if (source === undefined) throw new RunnerError("unknown-agent", { agentId, agentIds: Object.keys(agents) });
    return source;
  }

  private load(source: AgentSource): Promise<AbstractAgent> {
    if (typeof source !== "function") return Promise.resolve(source);
    let load = this.loaded.get(source);
    if (load === undefined) this.loaded.set(source, (load = once(source)));
    return load();
  }
}

/**
 * @param fault what it is where they are none: of a function's, nothing that its caller could mend
 * @throws RunnerError
 */
function recordOf(agents: Agents, fault: RunnerErrorCode = "host-failed"): Agents {
  if (typeof agents === "object" && agents !== null && !Array.isArray(agents)) return agents;
  throw new RunnerError(fault, { field: "agents" }, { message: "agents must be a record of agents" });
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

async function descriptionOf(agentId: string, agent: AbstractAgent | undefined): Promise<AgentDescription> {
  const capabilities: unknown = await Promise.resolve()
    .then(() => agent?.getCapabilities?.())
    .catch(() => undefined);
  return {
    name: agentId,
    description: agent?.description ?? "",
    className: agent?.constructor.name ?? "AbstractAgent",
    ...(capabilities !== undefined && capabilities !== null && { capabilities }),
  };
}
