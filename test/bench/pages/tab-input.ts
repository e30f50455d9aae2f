import type { Message, RunAgentInput } from "@ag-ui/client";

/** What agents of the bench are asked with. */
export const inputOf = (
  threadId: string,
  runId: string,
  forwardedProps: Readonly<Record<string, number>>,
  messages: Message[] = [],
): RunAgentInput => ({ threadId, runId, messages, tools: [], context: [], forwardedProps, state: {} });
