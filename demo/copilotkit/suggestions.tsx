import { useConfigureSuggestions } from "@copilotkit/react-core/v2";

/** Before the first message some of the page's own, later those of the agent. */
export function Suggestions() {
  useConfigureSuggestions({
    available: "before-first-message",
    suggestions: ["markdown", "weather", "transfer"].map((message) => ({ title: `Show ${message}`, message })),
  });
  useConfigureSuggestions({
    instructions: "Suggest what else this demo can show.",
    providerAgentId: "assistant",
    available: "after-first-message",
  });
  return null;
}
