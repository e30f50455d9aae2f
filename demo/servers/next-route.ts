// app/api/agents/[[...path]]/route.ts
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { runtime } from "./runtime.js";

// The names it is reached by. Without them, pages of the internet reach it by a name that points at this machine.
const allowedHosts = ["localhost", "127.0.0.1", "::1"];
const handler = createRuntimeHandler({ runtime, basePath: "/api/agents", allowedHosts });

export { handler as DELETE, handler as GET, handler as HEAD, handler as OPTIONS, handler as PATCH, handler as POST };
