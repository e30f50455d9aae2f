// app/api/agents/[[...path]]/route.ts
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { runtime } from "./runtime.js";

const handler = createRuntimeHandler({ runtime, basePath: "/api/agents" });

export { handler as DELETE, handler as GET, handler as HEAD, handler as OPTIONS, handler as PATCH, handler as POST };
