import { checkKind, checkNames, OBJECT } from "../run/options.js";
import { AI_TOOL_NAMES, type AiAgentOptions, type AiTools } from "./options.js";

/** @throws RunnerError `invalid-input` */
export function checkTools(tools: AiTools | undefined): void {
  for (const [name, tool] of Object.entries(tools ?? {})) {
    const within = `tools.${name}`;
    checkKind(within, tool, OBJECT);
    // Tools of the AI SDK have an inputSchema, and options of their own.
    if ("inputSchema" in tool) continue;
    checkNames(tool, AI_TOOL_NAMES, { of: "aiAgent", within, elsewhere: { handler: "it is called execute" } });
    checkKind(`${within}.parameters`, tool.parameters, AI_TOOL_NAMES.parameters);
  }
}

/** Names of the tools that may run twice for one call. */
export const repeatableIn = (
  tools: AiTools | undefined,
  { repeatableTools = [] }: Pick<AiAgentOptions, "repeatableTools">,
): readonly string[] => [
  ...repeatableTools,
  ...Object.entries(tools ?? {}).flatMap(([name, tool]) =>
    "repeatable" in tool && tool.repeatable === true ? [name] : [],
  ),
];
