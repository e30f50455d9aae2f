import type { AgentRunner } from "../run/contract.js";
import { invalidInput } from "../run/errors.js";
import { RuntimeCore } from "./core.js";
import type { AgentRuntimeOptions } from "./options.js";
import type { Runtime, RuntimeHealth } from "./runtime.js";

/** Gives the entry points access to a runtime's core. */
let core: (runtime: AgentRuntime) => RuntimeCore | undefined;

/**
 * Agents, their runner and the middleware around them. Every entry point goes through it: `serveRuntime` for tabs,
 * `createRuntimeHandler` for HTTP.
 */
export class AgentRuntime implements Runtime {
  readonly #core: RuntimeCore;

  static {
    // Untyped callers may pass anything.
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

  /** Settles live runs as stopped and releases everything. Does neither for a third-party runner. */
  close(): Promise<void> {
    return this.#core.close();
  }
}

/** @throws RunnerError `invalid-input` if it is not an AgentRuntime of this library */
export function coreOf(runtime: AgentRuntime): RuntimeCore {
  const found = core(runtime);
  if (found !== undefined) return found;
  throw invalidInput("runtime", "runtime must be a new AgentRuntime({ … })");
}
