import type { Observable } from "rxjs";
import { invalidInput } from "../run/errors.js";
import { checkNames, OBJECT, type Names } from "../run/options.js";
import { ENCRYPTION, type EncryptionOption } from "../storage/encryption-option.js";
import type { SyncOptions } from "../sync/options.js";
import type { SyncState } from "../wire/shapes.js";
import type { Agents } from "./agents.js";
import type { AgentRuntimeOptions } from "./options.js";

/** What a {@link Host} is started with. */
export interface HostOptions extends Pick<
  AgentRuntimeOptions,
  | "agentPolicies"
  | "beforeRequestMiddleware"
  | "afterRequestMiddleware"
  | "a2ui"
  | "mcpApps"
  | "metrics"
  | "debug"
  | "logger"
  | "stopGraceMs"
  | "maxRunMs"
  | "eventLimits"
  | "recordInput"
> {
  /** By agentId: what devices see of them. */
  readonly agents: Agents;
  /** The key of the space, where its devices have one: what is on the servers of the space is encrypted then. */
  readonly encryption?: EncryptionOption;
  /** The space. Addresses may be `nats://` and `tls://` too, by `@nats-io/transport-node`. */
  readonly sync: SyncOptions;
}

/** A host on a server: one more device of a space, which runs agents for the others. */
export interface Host {
  /** The newest state first. */
  readonly status$: Observable<SyncState>;
  /** Ends its live runs as stopped, and leaves the space. */
  close(): Promise<void>;
}

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
