import type { AbstractAgent } from "@ag-ui/client";
import { Lazy } from "../platform/lazy.js";
import { RunnerError, type RunnerErrorCode } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import type { Placement } from "../runner/request.js";
import { quoted } from "../run/printable.js";

/** An agent, or a function that loads it at its first run (a dynamic `import()` keeps the worker's start fast). */
export type AgentSource = AbstractAgent | (() => AbstractAgent | Promise<AbstractAgent>);

/** Agents by agentId. */
export type Agents = Readonly<Record<string, AgentSource>>;

/**
 * The agents of a runtime: a record; a promise of one; a function without parameters, called once at the first use and
 * again only after a failure; or a function of the request, called for each (agents of a tenant, of a signed-in user).
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
  /** Where its runs are executed, where that is not always this host: see `AgentPolicy`. */
  readonly placement?: Placement;
}

/**
 * Calls a function from the runtime's options. A RunnerError that it throws becomes `host-failed`: it is a fault of the
 * runtime, not of the request.
 */
export async function called<T>(option: string, call: () => T | Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!RunnerError.is(error)) throw error;
    const message = `The function given as ${option} failed: ${error.message}`;
    throw new RunnerError("host-failed", { field: option }, { message, cause: error });
  }
}

type OfRequest = (request: () => Request) => Agents | Promise<Agents>;

/** Calls `make` once per request, however often the request needs its agents. */
function oncePerRequest(make: OfRequest): OfRequest {
  const made = new WeakMap<() => Request, Agents | Promise<Agents>>();
  return (request) => {
    if (!made.has(request)) made.set(request, make(request));
    return made.get(request)!;
  };
}

/** Stands for an agent that servers have. */
const serverAgent = async (): Promise<AbstractAgent> => {
  const { ServerAgent } = await loaded(import("./stand-ins.js"));
  return new ServerAgent();
};

/** An agent that loads part of its code at its first run, or ahead of it. */
interface PreloadingAgent {
  preload(): Promise<unknown>;
}

/** What is known of an agent. */
export interface KnownAgent {
  readonly agentId: string;
  readonly agent: AbstractAgent | undefined;
  readonly placement: "here" | Placement;
}

/** A runtime's agents. Only own keys of a record count. */
export class AgentRegistry {
  /** Known in advance only if the agents were given as a record. */
  readonly ids: readonly string[] | undefined;
  private readonly agents: OfRequest;
  /** Those that were given as a record. */
  private readonly given: Agents = {};
  private readonly loaded = new WeakMap<object, Lazy<AbstractAgent>>();
  /** Ids of the agents of servers that are online. */
  servers: readonly string[] = [];
  /** Resolves when `servers` has the agent, or has what can be known now. Set by whoever hears of servers. */
  heard: (agentId: string) => Promise<unknown> = async () => undefined;

  /**
   * @param placed where agents are executed, as far as somebody has said so; undefined: there are no servers
   * @throws RunnerError `agent-not-cloneable` for an agent whose clone cannot run; `invalid-agent` for a non-agent
   */
  constructor(
    config: AgentsConfig,
    private readonly placed?: ReadonlyMap<string, "here" | Placement>,
  ) {
    if (typeof config === "function") {
      const make = config as () => Agents | Promise<Agents>; // called only if it has no parameters
      const shared = new Lazy(() => called("agents", make));
      this.agents =
        config.length === 0
          ? () => shared.get()
          : oncePerRequest((asked) => {
              const request = asked();
              return called("agents", () => config({ request }));
            });
    } else {
      // Callers who ask for an agent get the rejection.
      if (config instanceof Promise) config.catch(() => undefined);
      else {
        this.given = config;
        this.ids = [...new Set([...Object.keys(recordOf(config, "invalid-input")), ...this.elsewhere()])];
        for (const [agentId, source] of Object.entries(config)) {
          if (!isLoader(source)) cloneOf(agentId, checkAgent(agentId, source));
        }
      }
      this.agents = () => config;
    }
  }

  /**
   * A fresh clone for one run.
   *
   * @param request created only if the agents depend on it
   * Errors: RunnerError `unknown-agent`, `agent-not-cloneable`, `invalid-agent`, or what loading it threw (the next
   * call tries again).
   */
  async clone(agentId: string, request: () => Request): Promise<AbstractAgent> {
    return cloneOf(agentId, await this.load(agentId, await this.source(agentId, request)));
  }

  /**
   * Has the agents that are there load what their first run needs: Chromium and Firefox never repeat an `import()` that
   * failed in a worker. What fails is told by the run.
   */
  preload(): void {
    for (const source of Object.values(this.given)) {
      const agent = isLoader(source) ? this.loaded.get(source)?.made : source;
      void (agent as Partial<PreloadingAgent> | undefined)?.preload?.()?.catch(() => undefined);
    }
  }

  /** Errors: RunnerError `unknown-agent`, or what making the agents threw. */
  async require(agentId: string, request: () => Request): Promise<void> {
    await this.source(agentId, request);
  }

  /** As {@link require}, for what is done with runs in the log: an agent that a server may have is not required. */
  async requireHere(agentId: string, request: () => Request): Promise<void> {
    if ((await this.placementOf(agentId, request)) === "here") await this.require(agentId, request);
  }

  /** There may be servers that have agents. */
  get haveServers(): boolean {
    return this.placed !== undefined;
  }

  /** All agents, with where their runs are executed. Loads none: one that is not loaded yet has no `agent`. */
  async all(request: () => Request): Promise<readonly KnownAgent[]> {
    const own = recordOf(await this.agents(request));
    const agents = { ...Object.fromEntries(this.elsewhere().map((id) => [id, serverAgent])), ...own };
    return Promise.all(
      Object.entries(agents).map(async ([agentId, source]) => {
        const isLazy = isLoader(source) && !this.loaded.has(source);
        const agent = isLazy ? undefined : await this.load(agentId, source).catch(() => undefined);
        return { agentId, agent, placement: this.placementIn(own, agentId) };
      }),
    );
  }

  /** Where a run of the agent is executed. Errors: what making the agents threw */
  async placementOf(agentId: string, request: () => Request): Promise<"here" | Placement> {
    return this.placed === undefined ? "here" : this.placementIn(recordOf(await this.agents(request)), agentId);
  }

  private placementIn(own: Agents, agentId: string): "here" | Placement {
    const isOwn = Object.hasOwn(own, agentId);
    const said = this.placed?.get(agentId) ?? (isOwn ? "here" : "server");
    return said === "any" && !isOwn ? "server" : said;
  }

  /** Ids of agents that servers have, or are to have. */
  private elsewhere(): readonly string[] {
    if (this.placed === undefined) return [];
    const said = [...this.placed].flatMap(([agentId, placement]) => (placement === "here" ? [] : [agentId]));
    return [...new Set([...said, ...this.servers])];
  }

  private async source(agentId: string, request: () => Request): Promise<AgentSource> {
    const agents = recordOf(await this.agents(request));
    const source = Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
    const mayBeElsewhere = this.placed !== undefined && this.placementIn(agents, agentId) === "server";
    // A host that has just begun has heard of nobody yet.
    if (mayBeElsewhere && !this.elsewhere().includes(agentId)) await this.heard(agentId);
    if (mayBeElsewhere && this.elsewhere().includes(agentId)) return serverAgent;
    if (source !== undefined) return source;
    throw new RunnerError("unknown-agent", { agentId, agentIds: [...Object.keys(agents), ...this.elsewhere()] });
  }

  private async load(agentId: string, source: AgentSource): Promise<AbstractAgent> {
    if (!isLoader(source)) return checkAgent(agentId, source);
    let load = this.loaded.get(source);
    if (load === undefined) {
      // A non-agent counts as a failure, so the next call loads again.
      load = new Lazy(async () =>
        checkAgent(agentId, await called("agents", source), "The function that loads it returned "),
      );
      this.loaded.set(source, load);
    }
    return load.get();
  }
}

/**
 * @param fault error code for a non-record; `host-failed` if a function returned it, as its caller cannot fix that
 * @throws RunnerError
 */
function recordOf(agents: Agents, fault: RunnerErrorCode = "host-failed"): Agents {
  if (typeof agents === "object" && agents !== null && !Array.isArray(agents)) return agents;
  throw new RunnerError(fault, { field: "agents" }, { message: "agents must be a record of agents" });
}

const tagOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

/** An agent class; unlike a loader function, its prototype has `run`. */
const isClass = (value: unknown): boolean =>
  typeof value === "function" && typeof (value.prototype as Partial<AbstractAgent> | undefined)?.run === "function";

const isGenerator = (value: unknown): boolean => /Generator(Function)?$/.test(tagOf(value));

const isLoader = (source: AgentSource): source is Exclude<AgentSource, AbstractAgent> =>
  typeof source === "function" && !isClass(source) && !isGenerator(source);

/** @throws RunnerError `invalid-agent`, with what was given and what to do */
function checkAgent(agentId: string, given: unknown, how = "It is "): AbstractAgent {
  const runs = typeof given === "object" && typeof (given as Partial<AbstractAgent> | null)?.run === "function";
  if (runs && tagOf(given) !== "Module") return given as AbstractAgent; // its clone is checked too
  const cause = `${how}${whatIs(given)}`;
  throw new RunnerError("invalid-agent", { agentId, cause });
}

const LOADING = 'import("./agent.js").then((module) => module.agent)';

/** Describes a non-agent and says what to give instead. */
function whatIs(given: unknown): string {
  if (given === undefined || given === null) {
    return `${given}: is the agent exported under this name? It must return the agent, as () => ${LOADING}`;
  }
  if (tagOf(given) === "Module") {
    const names = Object.keys(given).map((name) => quoted(name));
    return `a module, not one of its exports (${names.slice(0, 20).join(", ")}): return the agent, as () => ${LOADING}`;
  }
  if (isGenerator(given)) return "a generator: register defineAgent(async function* (input, context) { … })";
  if (isClass(given)) return `the class ${quoted((given as { name?: unknown }).name)}: give an instance of it`;
  if (typeof given === "function") return "a function: return the agent that it makes";
  return typeof given === "object"
    ? "an object without run(): give an AbstractAgent, or use defineAgent()"
    : typeof given;
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
