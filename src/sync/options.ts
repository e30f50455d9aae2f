import { checkNames, TEXT, type Check, type Names } from "../run/options.js";
import { invalidInput } from "../run/errors.js";
import type { Space } from "./space.js";

/** How a device signs in at the servers: those of NATS. The text of a `.creds` file has its key in it. */
export type SyncCredentials =
  { readonly user: string; readonly password: string } | { readonly token: string } | { readonly creds: string };

/** Keeps the threads of this device in step with those of others. */
export interface SyncOptions {
  /** Addresses of NATS servers: `wss://…` in a browser (`ws://` for a server on this machine). */
  readonly servers?: string | readonly string[];
  /**
   * Whose threads: all devices that name the same space share them. 1 to 64 characters of A to Z, a to z, 0 to 9, `-` and
   * `_`. Or, in place of `servers`, a Space of another engine, which is closed with the runtime; or a function that makes
   * one: with encryption it is asked again whenever the database is unlocked, since its space is closed when it is locked.
   */
  readonly space: string | Space | (() => Space);
  /** Asked again at each connection where it is a function. Never stored. Default: none. */
  readonly credentials?: SyncCredentials | (() => SyncCredentials | Promise<SyncCredentials>);
  /** What people call this device, 1 to 100 characters. Default: what the browser says of itself. */
  readonly device?: string;
  /** On how many servers a new space is kept. Default 1. */
  readonly replicas?: number;
  /**
   * Which threads come to this device. `all`: those that somebody opens first, the rest in the background. `opened`: those that
   * somebody opens; of the others it has what the list shows. Default `all`.
   */
  readonly keep?: "all" | "opened";
}

const NAMES: Names<SyncOptions> = {
  servers: true,
  space: true,
  credentials: true,
  device: TEXT,
  replicas: true,
  keep: [(given) => given === "all" || given === "opened", '"all" or "opened"'],
};

const SPACE_NAME = /^[A-Za-z0-9_-]{1,64}$/;

export const SYNC: Check = [
  (given) => typeof given === "object" && given !== null,
  'an object: { servers: "wss://…", space: "…" }',
];

/** Most agents of one server: devices do not take more from it. */
export const MOST_AGENTS = 1_000;

/** @throws RunnerError `invalid-input` */
export function checkSync(options: SyncOptions): void {
  checkNames(options, NAMES, { of: "AgentRuntime", within: "sync", isRequired: true });
  const { servers, space, device } = options;
  if (device !== undefined && (device.length === 0 || device.length > 100)) {
    throw invalidInput("sync.device", "sync.device must be 1 to 100 characters");
  }
  if (typeof space === "function" || (typeof space === "object" && space !== null)) return;
  if (typeof space !== "string" || !SPACE_NAME.test(space)) {
    throw invalidInput("sync.space", "sync.space must be 1 to 64 characters of A to Z, a to z, 0 to 9, - and _");
  }
  const list = typeof servers === "string" ? [servers] : servers;
  if (!Array.isArray(list) || list.length === 0 || !list.every((url) => typeof url === "string" && url !== "")) {
    throw invalidInput("sync.servers", "sync.servers must be the address of a NATS server, or a list of them");
  }
}
