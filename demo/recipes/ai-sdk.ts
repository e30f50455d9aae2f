// Vercel AI SDK UI on the runtime: `useChat({ chat, resume: true })` with a
// `chat = new Chat({ id: threadId, transport: runtimeTransport(runtime, "poet") })` that the app keeps for the thread.
// The thread in the browser's log is the truth: what `useChat` holds beside it is sent only as far as it is new.
import type { BaseEvent, ContentPart, Message, RunStartedEvent, UserMessage } from "@ag-ui/core";
import { EventType, type AGUIEvent } from "@ag-ui/core";
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { RunnerError, type RuntimeConnection } from "ag-ui-local-runtime/client";
import { tap, type Observable } from "rxjs";

const dynamic = true as const;

/** How often pages have asked to read on, by thread. */
const readings = new Map<string, number>();

/**
 * Runs an agent of the host for `useChat`; the chat's id is the thread's. A stop of the chat stops the run, closing the page
 * does not. `useChat` stops a chat that it has made itself when its component is unmounted.
 */
export function runtimeTransport(runtime: RuntimeConnection, agentId: string): ChatTransport<UIMessage> {
  const runner = runtime.runner();
  return {
    // The stream of a run that a page comes back to begins with its first event.
    resumeStreamIsReplay: true,
    async sendMessages({ chatId: threadId, messages, abortSignal }) {
      const runId = crypto.randomUUID();
      // A question that the thread has with the same text is answered anew, with other text it was edited.
      const question = messages.findLast(({ role }) => role === "user");
      const events$ = runner.run({
        threadId,
        agent: { agentId },
        input: {
          threadId,
          runId,
          messages: question === undefined ? [] : [userMessageOf(question)],
          tools: [],
          context: [],
          state: {},
        },
      });
      const stop = (): void => void runner.stop({ threadId, runId }).catch(() => undefined);
      if (abortSignal?.aborted === true) stop();
      abortSignal?.addEventListener("abort", stop, { once: true });
      return streamOf(events$);
    },
    async reconnectToStream({ chatId: threadId, abortSignal }) {
      readings.set(threadId, (readings.get(threadId) ?? 0) + 1);
      let live: { readonly threadId: string; readonly runId?: string } = { threadId };
      const stop = (): void => {
        const before = readings.get(threadId);
        // A chat that reads on anew, as under StrictMode, aborts too, right before it asks: that is not meant for the run.
        queueMicrotask(() => {
          if (readings.get(threadId) === before) void runner.stop(live).catch(() => undefined);
        });
      };
      abortSignal?.addEventListener("abort", stop, { once: true });
      if (!(await runner.isRunning({ threadId }))) return null;
      const events$ = runner.connect({ threadId, agentId, replay: "last-run" });
      const named = tap((event: BaseEvent) => {
        if (event.type === EventType.RUN_STARTED) live = { threadId, runId: (event as RunStartedEvent).runId };
      });
      return streamOf(events$.pipe(named));
    },
  };
}

/** All of a thread for `useChat({ messages })`, which loads no earlier page when somebody scrolls up. */
export async function uiMessagesIn({ threads }: RuntimeConnection, threadId: string): Promise<UIMessage[]> {
  const all: Message[] = [];
  for (;;) {
    const [first] = all;
    const page = await threads.messages(threadId, { limit: 500, ...(first !== undefined && { before: first.id }) });
    all.unshift(...page.messages);
    if (!page.earlier) return uiMessagesOf(all);
  }
}

/** Messages of a thread for `useChat({ messages })`: a question and all that answers it are one message each. */
export function uiMessagesOf(messages: readonly Message[]): UIMessage[] {
  const shown: UIMessage[] = [];
  const answerFor = (id: string): UIMessage["parts"] => {
    if (shown.at(-1)?.role !== "assistant") shown.push({ id, role: "assistant", parts: [] });
    return shown.at(-1)!.parts;
  };
  for (const message of messages) {
    if (message.role === "user") shown.push({ id: message.id, role: "user", parts: partsOf(message.content) });
    if (message.role === "reasoning") answerFor(message.id).push({ type: "reasoning", text: message.content });
    if (message.role === "assistant") {
      const parts = answerFor(message.id);
      if (message.content) parts.push({ type: "text", text: String(message.content) });
      for (const { id: toolCallId, function: call } of message.toolCalls ?? []) {
        const input = parsed(call.arguments);
        parts.push({ type: "dynamic-tool", toolName: call.name, toolCallId, state: "input-available", input });
      }
    }
    if (message.role === "tool") {
      for (const part of shown.at(-1)?.parts ?? []) {
        if (part.type !== "dynamic-tool" || part.toolCallId !== message.toolCallId) continue;
        Object.assign(part, { state: "output-available", output: message.content });
      }
    }
  }
  return shown;
}

function streamOf(events$: Observable<BaseEvent>): ReadableStream<UIMessageChunk> {
  const chunksOf = chunker();
  let reading: { unsubscribe(): void } | undefined;
  return new ReadableStream({
    start(controller) {
      reading = events$.subscribe({
        // Their schema was checked by the runtime.
        next: (event) => chunksOf(event as AGUIEvent).forEach((chunk) => controller.enqueue(chunk)),
        // A refusal fails the call, as a server's would.
        error: (error: unknown) => controller.error(RunnerError.is(error) ? new Error(error.message) : error),
        complete: () => controller.close(),
      });
    },
    // Whoever leaves ends no run.
    cancel: () => reading?.unsubscribe(),
  });
}

/** Turns the events of one run into the chunks of one message. */
function chunker(): (event: AGUIEvent) => UIMessageChunk[] {
  let isStarted = false;
  /** Ids of the texts that are answers: an agent may also write down what a person said. */
  const answers = new Set<string>();
  const calls = new Map<string, { readonly toolName: string; text: string }>();
  /** Data that came before anything whose id is the answer's: with another id the page would show the answer twice. */
  const held: UIMessageChunk[] = [];
  const begun = (messageId: string, ...chunks: UIMessageChunk[]): UIMessageChunk[] => {
    const start: UIMessageChunk[] = isStarted ? [] : [{ type: "start", messageId }, ...held];
    isStarted = true;
    return [...start, ...chunks];
  };
  return (event) => {
    switch (event.type) {
      case EventType.TEXT_MESSAGE_START: {
        const { messageId: id, role = "assistant" } = event;
        if (role !== "assistant") return [];
        answers.add(id);
        return begun(id, { type: "text-start", id });
      }
      case EventType.TEXT_MESSAGE_CONTENT:
        return answers.has(event.messageId) ? [{ type: "text-delta", id: event.messageId, delta: event.delta }] : [];
      case EventType.TEXT_MESSAGE_END:
        return answers.has(event.messageId) ? [{ type: "text-end", id: event.messageId }] : [];
      case EventType.REASONING_MESSAGE_START:
        return begun(event.messageId, { type: "reasoning-start", id: event.messageId });
      case EventType.REASONING_MESSAGE_CONTENT:
        return [{ type: "reasoning-delta", id: event.messageId, delta: event.delta }];
      case EventType.REASONING_MESSAGE_END:
        return [{ type: "reasoning-end", id: event.messageId }];
      case EventType.TOOL_CALL_START: {
        const { toolCallId, toolCallName: toolName } = event;
        calls.set(toolCallId, { toolName, text: "" });
        return begun(event.parentMessageId ?? toolCallId, { type: "tool-input-start", toolCallId, toolName, dynamic });
      }
      case EventType.TOOL_CALL_ARGS: {
        const call = calls.get(event.toolCallId);
        if (call !== undefined) call.text += event.delta;
        return [{ type: "tool-input-delta", toolCallId: event.toolCallId, inputTextDelta: event.delta }];
      }
      case EventType.TOOL_CALL_END: {
        const { toolName = "", text = "" } = calls.get(event.toolCallId) ?? {};
        return [{ type: "tool-input-available", toolCallId: event.toolCallId, toolName, input: parsed(text), dynamic }];
      }
      case EventType.TOOL_CALL_RESULT:
        return [{ type: "tool-output-available", toolCallId: event.toolCallId, output: event.content, dynamic }];
      case EventType.CUSTOM: {
        const data: UIMessageChunk = { type: `data-${event.name}`, data: event.value };
        if (isStarted) return [data];
        held.push(data);
        return [];
      }
      case EventType.RUN_ERROR:
        return begun(crypto.randomUUID(), { type: "error", errorText: event.message });
      case EventType.RUN_FINISHED:
        return begun(event.runId, event.outcome?.type === "cancelled" ? { type: "abort" } : { type: "finish" });
      default:
        return [];
    }
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function userMessageOf({ id, parts }: UIMessage): UserMessage {
  const content = parts.flatMap((part): ContentPart[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type !== "file") return [];
    const type = (["image", "audio", "video"] as const).find((known) => part.mediaType.startsWith(`${known}/`));
    return [{ type: type ?? "document", source: { type: "url", value: part.url, mimeType: part.mediaType } }];
  });
  const [only] = content;
  return { id, role: "user", content: content.length === 1 && only?.type === "text" ? only.text : content };
}

const partsOf = (content: UserMessage["content"]): UIMessage["parts"] =>
  typeof content === "string"
    ? [{ type: "text", text: content }]
    : content.flatMap((part): UIMessage["parts"] => {
        if (part.type === "text") return [{ type: "text", text: part.text }];
        const { source } = part;
        const mediaType = ("mimeType" in source && source.mimeType) || "application/octet-stream";
        const url = source.type === "data" ? `data:${mediaType};base64,${source.value}` : source.value;
        return [{ type: "file", mediaType, url }];
      });
