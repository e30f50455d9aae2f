import type { ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import type { Clock } from "../platform/clock.js";
import { invalidInput, RunnerError } from "../run/errors.js";
import type { Asked } from "../runner/request.js";
import { InMemoryAgentRunner } from "../runner/in-memory-agent-runner.js";
import { encryptionOf } from "../storage/encryption-option.js";
import { checkSync, type SyncOptions } from "../sync/options.js";
import { checkRun } from "../wire/checks.js";
import type { RunRequest } from "../wire/shapes.js";
import { RuntimeCore } from "./core.js";
import type { Host, HostOptions } from "./host-options.js";
import { startUnread } from "./start-unread.js";
import { isUnrecorded } from "./unrecorded.js";
import { isPassing } from "./waiting/failures.js";

/** What is in the space must not leave it because this host has no room: nothing is removed. */
const UNLIMITED = { maxThreads: Infinity, maxRunsPerThread: Infinity, maxBytes: Infinity };

/** See `startHost`. @param clock for tests */
export async function memoryHost(options: HostOptions, clock?: Clock): Promise<Host> {
  const { sync, encryption, stopGraceMs, maxRunMs, eventLimits, recordInput, logger, ...others } = options;
  checkSync(sync);
  const runner = new InMemoryAgentRunner({
    store: "isolated",
    limits: UNLIMITED,
    ...(clock !== undefined && { clock }),
    ...(stopGraceMs !== undefined && { stopGraceMs }),
    ...(maxRunMs !== undefined && { maxRunMs }),
    ...(eventLimits !== undefined && { eventLimits }),
    ...(recordInput !== undefined && { recordInput }),
    ...(logger !== undefined && { logger }),
  });
  const core: RuntimeCore = new RuntimeCore(
    { runner: () => core.home.open(), health: () => core.health() },
    { ...others, ...(logger !== undefined && { logger }), runner, sync },
    {
      server: { agents: Object.keys(options.agents), execute: (run, asked) => startAsked(core, run, asked) },
      ...(encryption !== undefined && { encryption: encryptionOf(encryption) }),
      ...(!isByWebSocket(sync) && { connect: connectFromNode }),
    },
  );
  core.preload();
  await core.home.open();
  return { status$: core.sync$, close: () => core.close() };
}

/** Starts a run that a device asks for. Errors: why it can never start */
async function startAsked(core: RuntimeCore, run: RunRequest, asked: Asked): Promise<"started" | "later"> {
  try {
    // No device that waits for a claim of it: every server would execute it.
    if (isUnrecorded(checkRun(run).input)) throw invalidInput("input", "Suggestions are not asked of servers");
    await startUnread(core, run, {}, (admitted, made) => core.startAs(admitted, made, { asked }));
    return "started";
  } catch (error) {
    if (isPassing(error)) return "later";
    throw error;
  }
}

function isByWebSocket({ servers = [] }: SyncOptions): boolean {
  const addresses = typeof servers === "string" ? [servers] : servers;
  return "WebSocket" in globalThis && addresses.every((address) => /^wss?:/i.test(address));
}

/** The package is an optional one: pages do not need it. */
async function connectFromNode(options: ConnectionOptions): Promise<NatsConnection> {
  const { connect } = await import("@nats-io/transport-node").catch((cause: unknown) => {
    const message = "A host in Node connects to NATS by @nats-io/transport-node: npm install @nats-io/transport-node";
    throw new RunnerError("host-failed", {}, { message, cause });
  });
  return connect(options);
}
