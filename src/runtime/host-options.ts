import type { Observable } from "rxjs";
import type { EncryptionOption } from "../storage/encryption-option.js";
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
  /** Ends its live runs as stopped, and leaves the space. Resolves when the space has what came of them, or after some seconds. */
  close(): Promise<void>;
}
