import type { AgentRunner } from "../run/contract.js";
import { RunnerError } from "../run/errors.js";
import { RuntimeCore } from "./core.js";
import type { AgentRuntimeOptions } from "./options.js";
import type { Runtime, RuntimeHealth } from "./runtime.js";

/** What a runtime is inside, for the ways in. */
let core: (runtime: AgentRuntime) => RuntimeCore | undefined;

/**
 * Agents, the runner that runs them, and what stands around them. Every way in leads through it: `serveRuntime` for tabs,
 * `createRuntimeHandler` for HTTP.
 */
export class AgentRuntime implements Runtime {
  readonly #core: RuntimeCore;

  static {
    // Whatever a caller without types gives.
    core = (runtime) =>
      typeof runtime === "object" && (runtime as unknown) !== null && #core in runtime ? runtime.#core : undefined;
  }

  /** @throws RunnerError `agent-not-cloneable` for an agent whose clone cannot run; `invalid-input` */
  constructor(options: AgentRuntimeOptions) {
    this.#core = new RuntimeCore(this, options);
  }

  runner(): Promise<AgentRunner> {
    return this.#core.home.open();
  }

  health(): Promise<RuntimeHealth> {
    return this.#core.health();
  }

  /** Settles the live runs as stopped and lets go of everything; of a runner of another make it does neither. */
  close(): Promise<void> {
    return this.#core.close();
  }
}

/** @throws RunnerError `invalid-input` for what is no AgentRuntime of this library */
export function coreOf(runtime: AgentRuntime): RuntimeCore {
  const found = core(runtime);
  if (found !== undefined) return found;
  throw new RunnerError(
    "invalid-input",
    { field: "runtime" },
    { message: "runtime must be a new AgentRuntime({ … })" },
  );
}
