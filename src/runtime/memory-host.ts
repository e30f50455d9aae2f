import { defined } from "../platform/defined.js";
import type { ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import type { Subscription } from "rxjs";
import type { Clock } from "../platform/clock.js";
import { invalidInput, RunnerError } from "../run/errors.js";
import { retryAfterMs } from "../run/retry-after.js";
import type { Asked } from "../runner/request.js";
import { InMemoryAgentRunner } from "../runner/in-memory-agent-runner.js";
import { encryptionOf } from "../storage/encryption-option.js";
import { checkSync, MOST_AGENTS, type SyncOptions } from "../sync/options.js";
import type { Executed } from "../sync/sync-host.js";
import { checkRun } from "../wire/checks.js";
import { toErrorData } from "../wire/errors.js";
import type { RunRequest } from "../wire/shapes.js";
import { RuntimeCore } from "./core.js";
import type { Host, HostOptions } from "./host-options.js";
import { startUnread } from "./start-unread.js";
import { isUnrecorded } from "./mcp-requests.js";
import { isAnswerOfNow, isPassing } from "./waiting/failures.js";

/** What is in the space must not leave it because this host has no room: nothing is removed. */
const UNLIMITED = { maxThreads: Infinity, maxRunsPerThread: Infinity, maxBytes: Infinity };

/** See `startHost`. @param clock for tests */
export async function memoryHost(options: HostOptions, clock?: Clock): Promise<Host> {
  const { sync, encryption, stopGraceMs, maxRunMs, eventLimits, recordInput, logger, ...others } = options;
  checkSync(sync);
  const agents = Object.keys(options.agents);
  if (agents.length > MOST_AGENTS)
    throw invalidInput("agents", `agents must be at most ${MOST_AGENTS}: start another host for the others`);
  const runner = new InMemoryAgentRunner({
    store: "isolated",
    limits: UNLIMITED,
    ...defined({ clock, stopGraceMs, maxRunMs, eventLimits, recordInput, logger }),
  });
  const core: RuntimeCore = new RuntimeCore(
    { runner: () => core.home.open(), health: () => core.health() },
    { ...others, ...(logger !== undefined && { logger }), runner, sync },
    {
      server: { agents, execute: (run, asked) => startAsked(core, run, asked) },
      ...(encryption !== undefined && { encryption: encryptionOf(encryption) }),
      ...(!isByWebSocket(sync) && { connect: connectFromNode }),
    },
  );
  const logging = logStates(core);
  core.preload();
  await core.home.open();
  const close = (): Promise<void> => {
    logging.unsubscribe();
    return core.close();
  };
  return { status$: core.sync$, close };
}

/** Nobody watches a server: its log says why it executes nothing. */
function logStates({ sync$, logger }: RuntimeCore): Subscription {
  const told = new Set<string>();
  return sync$.subscribe(({ is, message }) => {
    if (is === "online" && told.size > 0) {
      told.clear();
      logger.info("[ag-ui-local-runtime] The host is in its space again");
    }
    // Each attempt fails in its own way, or in the same one.
    const line = `The host is not in its space (${is}): ${message ?? "the connection is lost"}`;
    if ((is !== "offline" && is !== "refused") || told.has(line)) return;
    told.add(line);
    logger[is === "refused" ? "error" : "warn"](`[ag-ui-local-runtime] ${line}`);
  });
}

/** Starts a run that a device asks for. Errors: why it can never start */
async function startAsked(core: RuntimeCore, run: RunRequest, asked: Asked): Promise<Executed> {
  try {
    // No device that waits for a claim of it: every server would execute it.
    if (isUnrecorded(checkRun(run).input)) throw invalidInput("input", "Suggestions are not asked of servers");
    await startUnread(core, run, {}, (admitted, made) => core.startRun(admitted, made, { asked }));
    return { is: "started" };
  } catch (error) {
    if (!isPassing(error)) throw error;
    if (!isAnswerOfNow(error)) return { is: "later" };
    const afterMs = retryAfterMs(error.details["retryAfter"], Date.now()) ?? 0;
    return { is: "later", refusal: { error: toErrorData(error), afterMs } };
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
