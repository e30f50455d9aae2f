/**
 * Language models and agents on them.
 *
 * @module ag-ui-local-runtime/ai
 */
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
