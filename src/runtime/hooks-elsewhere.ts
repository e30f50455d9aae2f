import type { Elsewhere } from "../run/options.js";

/** CopilotKit's handlers take hooks; here the runtime has middlewares, which every way in goes through. */
export const HOOKS_ELSEWHERE: Elsewhere = {
  hooks:
    "what hooks.onRequest and hooks.onBeforeHandler do, beforeRequestMiddleware of AgentRuntime does (it may refuse); " +
    "hooks.onResponse is its afterRequestMiddleware, hooks.onError its metrics: { error }",
};
