/**
 * Agents of models, on the Vercel AI SDK, which is loaded at the first run.
 *
 * @module ag-ui-local-runtime/ai
 */
export { aiAgent, aiTool } from "./ai-agent.js";
export { stateTools, type StateTools } from "./state-tools.js";
export type {
  AiAgentOptions,
  AiRun,
  AiSchema,
  AiSdkTool,
  AiSettings,
  AiSystemRun,
  AiTool,
  AiToolRun,
  AiTools,
} from "./options.js";
export { isRetryable, type ModelErrorCode } from "../run/run-error-codes.js";
export { oneAtATime } from "./one-at-a-time.js";
export { tabModel, type TabModelOptions } from "./tab-model.js";
export {
  promptApiModel,
  type PromptApiModel,
  type PromptApiModelOptions,
  type PromptApiStatus,
} from "./prompt-api-model.js";
export type {
  PromptApi,
  PromptApiContent,
  PromptApiCreateOptions,
  PromptApiExpected,
  PromptApiMessage,
  PromptApiOptions,
  PromptApiSession,
} from "./prompt-api.js";
