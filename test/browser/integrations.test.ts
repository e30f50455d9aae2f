import { inject } from "vitest";
import { describeA2UI } from "../unit/runtime/integrations/a2ui.suite.js";
import { describeMcpApps } from "../unit/runtime/integrations/mcp-apps.suite.js";
import { describeTranscription } from "../unit/runtime/integrations/transcription.suite.js";

describeA2UI("a2ui, in the browser");

// The servers are of another origin than the page.
describeMcpApps("mcpApps, in the browser", () => inject("mcp"));

describeTranscription("transcription, in the browser");
