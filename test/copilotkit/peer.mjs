// Imported where test/copilotkit/node_modules is installed. CopilotKit's runner with the client that it brings.
export { AbstractAgent } from "@ag-ui/client";
export { InMemoryAgentRunner } from "@copilotkit/runtime/v2";
export { Observable } from "rxjs";
