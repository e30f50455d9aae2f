import "fake-indexeddb/auto";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { onTestFinished } from "vitest";
import { serveOnLoopback } from "./integrations/mcp-server.js";
import { describeTranscription } from "./integrations/transcription.suite.js";

describeTranscription("transcription, in Node");

describeTranscription("transcription, over a socket", async (handler) => {
  const server = await serveOnLoopback(createNodeHandler(handler));
  onTestFinished(() => server.close());
  return server.origin;
});
