import { invalidInput } from "../run/errors.js";
import {
  checkNames,
  COUNT,
  FLAG,
  FUNCTION,
  ID,
  NUMBER,
  OBJECT,
  oneOf,
  SWITCH,
  TIMEOUT,
  type Elsewhere,
  type Names,
} from "../run/options.js";
import { eventLimits } from "../runner/agent/event-limits.js";
import { checkLimits } from "../runner/keep/limits.js";
import { LIMITS_ELSEWHERE, RUNNER_NAMES } from "../runner/options.js";
import { checkSync, SYNC, type SyncOptions } from "../sync/options.js";
import { ENCRYPTION } from "../storage/encryption-option.js";
import type { Network } from "../platform/network.js";
import { checkAgentPolicies, type AgentPolicies } from "./agent-policies.js";
import type { AgentsConfig } from "./agents.js";
import type { A2UIOptions, McpAppsOptions } from "./configure-agent.js";
import type { DebugOptions } from "./debug.js";
import type { ForwardHeadersOptions } from "./forward-headers.js";
import type { RuntimeMetrics } from "./metrics.js";
import type { AfterRequestMiddleware, BeforeRequestMiddleware, FilterEvent } from "./middleware.js";
import { checkAgentSettings } from "./check-agent-settings.js";
import { HOOKS_ELSEWHERE } from "./hooks-elsewhere.js";
import type { RunnerHomeOptions } from "./runner-home.js";
import type { TranscriptionService } from "./http/transcribe.js";

const { user, stopGraceMs, maxRunMs, recordInput, logger } = RUNNER_NAMES;

/** Of {@link AgentRuntimeOptions}. */
const NAMES: Names<AgentRuntimeOptions> = {
  agents: true,
  runner: ["run", "connect", "isRunning", "stop"],
  dbName: ID,
  encryption: ENCRYPTION,
  user,
  sync: SYNC,
  stopGraceMs,
  maxRunMs,
  limits: true,
  eventLimits: true,
  recordInput,
  openTimeoutMs: TIMEOUT,
  memoryFallback: FLAG,
  logger,
  beforeRequestMiddleware: FUNCTION,
  afterRequestMiddleware: FUNCTION,
  filterEvent: FUNCTION,
  transcriptionService: ["transcribeFile"],
  a2ui: true,
  mcpApps: true,
  unrecordedRuns: true,
  agentPolicies: OBJECT,
  network: ["onChange"],
  forwardHeaders: true,
  sseKeepAliveIntervalSeconds: NUMBER,
  readerTimeoutSeconds: NUMBER,
  maxBodyBytes: NUMBER,
  onDisconnect: oneOf("continue", "stop"),
  metrics: true,
  debug: SWITCH,
};
const METRICS: Names<RuntimeMetrics> = {
  runStarted: FUNCTION,
  runEnded: FUNCTION,
  liveThreads: FUNCTION,
  mcpRequest: FUNCTION,
  error: FUNCTION,
};
const UNRECORDED: Names<UnrecordedRunsOptions> = { maxPerThread: COUNT, maxInAll: COUNT, maxRunMs: TIMEOUT };

const ofRunner = "give it to a runner of your own making, and that to runner";
const ofHandler = "give it to createRuntimeHandler";
/** Options of CopilotKit's service. */
const OF_SERVICE = (
  "intelligence memory generateThreadNames channels licenseToken telemetryId telemetryProperties exposeMemoryRoutes " +
  "maxReconnectMs maxRejoinMs lockTtlSeconds lockKeyPrefix lockHeartbeatIntervalSeconds"
).split(" ");
const ofService = "it is of CopilotKit's service, which this runtime has no part of: leave it out";

/** CopilotKit's options under other names here, and those that do not exist. */
const ELSEWHERE: Elsewhere = {
  ...LIMITS_ELSEWHERE,
  ...HOOKS_ELSEWHERE,
  ...Object.fromEntries(OF_SERVICE.map((name) => [name, ofService])),
  onConcurrentRun: ofRunner,
  maxQueuedRuns: ofRunner,
  locks: ofRunner,
  openChannel: ofRunner,
  store: ofRunner,
  cors: ofHandler,
  basePath: ofHandler,
  endpoint: "give it to createRuntimeHandler, as basePath",
  mode: ofHandler,
  openGenerativeUI: "its middleware is used by agents: agent.use(…)",
  middleware: "write beforeRequestMiddleware, afterRequestMiddleware",
  onError: "write metrics: { error }",
  actions: "write agents",
  remoteEndpoints: "write agents",
  identifyUser: "write beforeRequestMiddleware, which may refuse whoever it does not know",
};

/** Options of the runner that the runtime creates; refused beside a given runner. */
const OF_MADE_RUNNER = [
  "dbName",
  "encryption",
  "user",
  "stopGraceMs",
  "maxRunMs",
  "limits",
  "eventLimits",
  "recordInput",
  "openTimeoutMs",
  "memoryFallback",
] as const;

/** Checks that need nothing opened. @throws RunnerError `invalid-input` */
export function checkRuntimeOptions(options: AgentRuntimeOptions, { isServer = false } = {}): void {
  checkNames(options, NAMES, { of: "AgentRuntime", elsewhere: ELSEWHERE, isRequired: true });
  checkLimits(options.limits);
  if (options.runner !== undefined) {
    const unheeded = OF_MADE_RUNNER.find((name) => options[name] !== undefined);
    if (unheeded !== undefined) {
      const message = `AgentRuntime has a runner, which does not heed the option ${unheeded}: give it to the runner`;
      throw invalidInput(unheeded, message);
    }
  }
  if (!isServer) checkSyncBeside(options);
  eventLimits(options.eventLimits);
  checkAgentSettings(options);
  checkAgentPolicies(options.agentPolicies, options.sync !== undefined);
  checkNames(options.unrecordedRuns, UNRECORDED, { of: "AgentRuntime", within: "unrecordedRuns" });
  const { metrics } = options;
  // An instance of a user's class may have other fields.
  const isOpen = typeof metrics === "object" && metrics?.constructor !== Object;
  checkNames(metrics, METRICS, { of: "AgentRuntime", within: "metrics", isOpen });
}

/** What a device does alone must not reach the others. */
function checkSyncBeside({ sync, limits, runner }: AgentRuntimeOptions): void {
  if (sync === undefined) return;
  checkSync(sync);
  if (runner !== undefined) {
    throw invalidInput("sync", "AgentRuntime cannot have sync and runner together yet: leave one of them out");
  }
  const other = Object.keys(limits ?? {}).find((name) => name !== "maxThreads");
  if (other !== undefined) {
    const message = `limits.${other} cannot be used with sync: a thread is on a device whole, or not at all`;
    throw invalidInput("limits", `${message}. Use limits.maxThreads`);
  }
  if (limits?.maxThreads !== undefined && sync.keep !== "opened") {
    throw invalidInput(
      "sync.keep",
      'limits.maxThreads needs sync.keep to be "opened": else what leaves this device comes back at once',
    );
  }
}

/** Bounds of unrecorded runs: suggestions and requests of MCP servers' user interfaces. */
export interface UnrecordedRunsOptions {
  /** At once in a thread; more are answered with 429. Default 16. */
  readonly maxPerThread?: number;
  /** At once in all threads; more are answered with 429. Default 100. */
  readonly maxInAll?: number;
  /** How long each may take, in ms. Default: `maxRunMs` of the runner, at most 5 minutes. */
  readonly maxRunMs?: number;
}

/** See `onDisconnect` of {@link AgentRuntimeOptions}. */
export type OnDisconnect = "continue" | "stop";

/** What an {@link AgentRuntime} is made with: its agents, where their runs are kept, and who may do what. */
export interface AgentRuntimeOptions extends RunnerHomeOptions {
  /** See {@link AgentsConfig}. Each run gets a clone. */
  readonly agents: AgentsConfig;
  readonly beforeRequestMiddleware?: BeforeRequestMiddleware;
  readonly afterRequestMiddleware?: AfterRequestMiddleware;
  readonly filterEvent?: FilterEvent;
  readonly transcriptionService?: TranscriptionService;
  /** Lets agents show A2UI surfaces. */
  readonly a2ui?: A2UIOptions;
  /** Gives agents the tools of MCP servers that come with a user interface. */
  readonly mcpApps?: McpAppsOptions;
  readonly unrecordedRuns?: UnrecordedRunsOptions;
  /**
   * Keeps the threads in step with those of other devices. Default: they are on this device only. The code for it is
   * loaded where it is used.
   */
  readonly sync?: SyncOptions;
  /** What the runtime does about the runs of single agents. */
  readonly agentPolicies?: AgentPolicies;
  /** Whether this host has a network. Default: what the browser says; always, where it says nothing. */
  readonly network?: Network;
  readonly forwardHeaders?: ForwardHeadersOptions;
  /** Sends a comment on an HTTP stream silent for this long, so that no proxy ends it. Default 15; 0: never. */
  readonly sseKeepAliveIntervalSeconds?: number;
  /**
   * Ends an HTTP stream whose reader takes nothing for this long while output is pending. Default 60; 0: never. Streams
   * relayed for a page are exempt: a sleeping page costs at most one window.
   */
  readonly readerTimeoutSeconds?: number;
  /**
   * What becomes of a run whose reader over HTTP leaves before its end. Default `continue`: another reader may connect.
   * The header `AG-UI-On-Disconnect` of a run's request says it for that run.
   */
  readonly onDisconnect?: OnDisconnect;
  /** The longest body of a request, in bytes. Default 4 MB; a larger one is answered with 413. */
  readonly maxBodyBytes?: number;
  readonly metrics?: RuntimeMetrics;
  /** What is printed of requests and runs. Default: nothing. */
  readonly debug?: boolean | DebugOptions;
}
