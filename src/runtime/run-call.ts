import type { RunRequest } from "../wire/shapes.js";
import type { Call } from "./call-request.js";

/** A run as the request that would ask for it over HTTP. Its body has all that the run is made of, and nothing else. */
export function runCall({
  agentId,
  threadId,
  input,
  persistedInputMessages,
}: RunRequest): Pick<Call, "asked" | "method" | "path"> & { readonly body: object } {
  return {
    asked: { route: "agent/run", agentId, threadId, runId: input.runId },
    method: "POST",
    path: ["agent", agentId, "run"],
    body: { ...input, threadId, ...(persistedInputMessages !== undefined && { persistedInputMessages }) },
  };
}

/** What the after-middleware is shown of a stream. */
export const streamed = (): Response => new Response(null, { headers: { "content-type": "text/event-stream" } });
