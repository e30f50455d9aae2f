import type { RunAgentInput } from "@ag-ui/client";
import { mcpRequestOf } from "./mcp-requests.js";

/** A request of CopilotKit's suggestion engine: its thread is made up and must not be kept. */
export function isSuggestion({ forwardedProps }: RunAgentInput): boolean {
  const props = forwardedProps as { readonly toolChoice?: { readonly function?: { readonly name?: unknown } } } | null;
  return props?.toolChoice?.function?.name === "copilotkitSuggest";
}

/** It runs beside its thread, and is in no log. */
export const isUnrecorded = (input: RunAgentInput): boolean => mcpRequestOf(input) !== undefined || isSuggestion(input);
