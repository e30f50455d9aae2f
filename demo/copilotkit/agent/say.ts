import type { AGUIEvent } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";

/** Between two pieces of an answer, in ms: as a model would stream it. */
const PAUSE_MS = 20;

export const pause = (ms = PAUSE_MS): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Streams a text, word by word, until it is stopped. */
export async function* say(messageId: string, text: string, signal: AbortSignal): AsyncGenerator<AGUIEvent> {
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  for (const delta of text.split(/(?<=\s)/)) {
    if (signal.aborted) return;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
    await pause();
  }
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
}

/** Streams what the agent thinks before it answers. */
export async function* think(messageId: string, text: string): AsyncGenerator<AGUIEvent> {
  yield { type: EventType.REASONING_START, messageId };
  yield { type: EventType.REASONING_MESSAGE_START, messageId, role: "reasoning" };
  for (const delta of text.split(/(?<=\s)/)) {
    yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta };
    await pause();
  }
  yield { type: EventType.REASONING_MESSAGE_END, messageId };
  yield { type: EventType.REASONING_END, messageId };
}

/** Calls a tool; the arguments stream in pieces. */
export async function* call(toolCallId: string, toolCallName: string, args: object): AsyncGenerator<AGUIEvent> {
  yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName };
  for (const delta of JSON.stringify(args).match(/.{1,8}/gs) ?? []) {
    yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta };
    await pause();
  }
  yield { type: EventType.TOOL_CALL_END, toolCallId };
}
