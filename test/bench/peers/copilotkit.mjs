// Imported where test/bench/peers/node_modules is installed. CopilotKit's runner with the client that it brings.
export { AbstractAgent } from "@ag-ui/client";
export { InMemoryAgentRunner } from "@copilotkit/runtime/v2";
export { Observable } from "rxjs";
