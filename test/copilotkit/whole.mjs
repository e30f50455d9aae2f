// Imported where test/copilotkit/node_modules is installed. CopilotKit's runtime, and its front end without a framework.
export { CopilotKitCore } from "@copilotkit/core";
export { CopilotRuntime, InMemoryAgentRunner } from "@copilotkit/runtime/v2";
export { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";
