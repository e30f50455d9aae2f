import type { Authenticator, ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import type { Clock } from "../../platform/clock.js";
import { invalidInput } from "../../run/errors.js";
import { checkNames, CLOCK, COUNT, FUNCTION, TIMEOUT, type Names } from "../../run/options.js";

/** Who the server takes this device for. `creds`: the text of a credentials file, a JWT and the seed of its key. */
export type NatsCredentials =
  { readonly user: string; readonly password: string } | { readonly token: string } | { readonly creds: string };

/** Which servers and space, and how a device connects. */
export interface NatsSpaceOptions {
  /** `ws://` and `wss://`, or what `connect` takes. Of several, a random one that answers. */
  readonly servers: string | readonly string[];
  /** 1 to 64 characters of A to Z, a to z, 0 to 9, `-` and `_`. */
  readonly space: string;
  /** A function is called again for each connection, so that they may expire. It may take 30 s. */
  readonly credentials?: NatsCredentials | (() => NatsCredentials | Promise<NatsCredentials>);
  /** On how many servers the space is kept, where this device is the one that creates it. Default: 1. */
  readonly replicas?: number;
  /** How long an answer of the server may take, in ms. Default: 5,000. */
  readonly timeoutMs?: number;
  /** Default: by WebSocket. In Node: `connect` of `@nats-io/transport-node`, for `nats://` and `tls://`. */
  readonly connect?: (options: ConnectionOptions) => Promise<NatsConnection>;
  readonly clock?: Clock;
}

const isNonEmpty = (given: unknown): boolean => typeof given === "string" && given !== "";

/** What may be a part of a subject of NATS, and of the name of a stream. */
export const isToken = (given: unknown): boolean => typeof given === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(given);

const NAMES: Names<NatsSpaceOptions> = {
  servers: [
    (given) => (Array.isArray(given) ? given.length > 0 && given.every(isNonEmpty) : isNonEmpty(given)),
    "an address, or a list of addresses",
  ],
  space: [isToken, "1 to 64 characters of A to Z, a to z, 0 to 9, - and _"],
  credentials: true,
  replicas: COUNT,
  timeoutMs: TIMEOUT,
  connect: FUNCTION,
  clock: CLOCK,
};

/** @throws RunnerError `invalid-input` */
export function checkOptions(options: NatsSpaceOptions): void {
  checkNames(options, NAMES, { of: "natsSpace", isRequired: true });
  for (const name of ["servers", "space"] as const) {
    if (options[name] === undefined) throw invalidInput(name, `natsSpace needs ${name}`);
  }
}

/** Errors: those of the function that gives the credentials. */
export async function authenticatorOf(
  { credentials }: NatsSpaceOptions,
  core: typeof import("@nats-io/nats-core"),
): Promise<Authenticator | undefined> {
  const given = typeof credentials === "function" ? await credentials() : credentials;
  if (given === undefined) return undefined;
  if ("creds" in given) return core.credsAuthenticator(new TextEncoder().encode(given.creds));
  if ("token" in given) return core.tokenAuthenticator(given.token);
  return core.usernamePasswordAuthenticator(given.user, given.password);
}
