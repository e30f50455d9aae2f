import type { AgentsConfig } from "./agents.js";
import type { A2UIOptions, McpAppsOptions } from "./configure-agent.js";
import type { DebugOptions } from "./debug.js";
import type { ForwardHeadersOptions } from "./forward-headers.js";
import type { RuntimeMetrics } from "./metrics.js";
import type { AfterRequestMiddleware, BeforeRequestMiddleware, FilterEvent } from "./middleware.js";
import type { RunnerHomeOptions } from "./runner-home.js";
import type { TranscriptionService } from "./http/transcribe.js";

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
  readonly forwardHeaders?: ForwardHeadersOptions;
  /** A stream over HTTP that is silent for so long gets a comment, so that nothing on its way ends it. Default 15; 0: never. */
  readonly sseKeepAliveIntervalSeconds?: number;
  /** The longest body of a request, in bytes. Default 4 MB; a larger one is answered with 413. */
  readonly maxBodyBytes?: number;
  readonly metrics?: RuntimeMetrics;
  /** What is printed of requests and runs. Default: nothing. */
  readonly debug?: boolean | DebugOptions;
}
