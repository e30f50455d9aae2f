import { invalidInput } from "../run/errors.js";
import { checkNames, OBJECT, type Names } from "../run/options.js";
import { ENCRYPTION } from "../storage/encryption-option.js";
import type { Host, HostOptions } from "./host-options.js";

const NAMES: Names<HostOptions> = {
  agents: OBJECT,
  sync: OBJECT,
  encryption: ENCRYPTION,
  agentPolicies: true,
  beforeRequestMiddleware: true,
  afterRequestMiddleware: true,
  a2ui: true,
  mcpApps: true,
  metrics: true,
  debug: true,
  logger: true,
  stopGraceMs: true,
  maxRunMs: true,
  eventLimits: true,
  recordInput: true,
};

/**
 * Starts a host in Node that joins a space and runs its agents for the devices there: a run goes on when the last tab is
 * closed. Any number of such hosts share the work. Its log is in memory, and everything in it is in the space: one that
 * starts anew gets it from there.
 *
 * @returns the host, once it is there; it connects in the background
 * Errors: RunnerError `invalid-input`, `agent-not-cloneable`, `invalid-agent`
 */
export async function startHost(options: HostOptions): Promise<Host> {
  checkNames(options, NAMES, { of: "startHost", isRequired: true });
  for (const name of ["agents", "sync"] as const) {
    if (options[name] === undefined) throw invalidInput(name, `startHost needs ${name}`);
  }
  // Whoever only serves requests does not need it.
  const { memoryHost } = await import("./memory-host.js");
  return memoryHost(options);
}
