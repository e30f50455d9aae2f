// A graph of LangGraph.js as an agent of the worker:
//
//   const graph = new StateGraph(MessagesAnnotation)
//     .addNode("model", async ({ messages }, config) => ({ messages: await model.invoke(messages, config) }))
//     .addEdge(START, "model")
//     .compile({ checkpointer: new IndexedDBSaver({ dbName: "my-app" }) }); // of "ag-ui-local-runtime/langgraph"
//   export const agent = graphAgent(graph);
//
// What its models say streams into the thread; what its nodes write (`config.writer`) are AG-UI events: CUSTOM, STATE_DELTA,
// STEP_STARTED … The thread's messages are those of the graph's channel `messages`: what was edited or removed in a page is so in
// the graph. A run whose host died goes on at the node that was under way, where the agent's policy has `recovery: "auto"`.
//
// Its limits: of a question with pictures the graph is given the text. A message that a node keeps out of the stream (`nostream`)
// belongs into another channel. Tools of the page (`input.tools`) are not given to the graph.
import type { AbstractAgent } from "@ag-ui/client";
import { contentToText, type Event, EventType, type Message, type RunAgentInput } from "@ag-ui/core";
import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  isAIMessage,
  isHumanMessage,
  isSystemMessage,
  isToolMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { parsePartialJson } from "@langchain/core/output_parsers";
import type { RunnableConfig } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { Command, interrupt, type LangGraphRunnableConfig, type StateSnapshot } from "@langchain/langgraph/web";
import { defineAgent } from "ag-ui-local-runtime/worker";

/** What is needed of a compiled graph. It must have a checkpointer, and a channel `messages`. */
export interface MessagesGraph {
  getState(config: RunnableConfig): Promise<StateSnapshot>;
  stream(
    input: unknown,
    options: RunnableConfig & { streamMode: ["messages", "custom"]; durability: "sync" },
  ): Promise<AsyncIterable<unknown>>;
}

/**
 * Makes an agent of a graph. Load it late (`agents: { graph: async () => (await import("./graph.js")).agent }`): it is large.
 *
 * @param repeatableTools names of tools that may run twice for one call, where the host dies in the middle
 */
export const graphAgent = (graph: MessagesGraph, repeatableTools: readonly string[] = []): AbstractAgent =>
  defineAgent(
    async function* (input, { signal, attempt }): AsyncGenerator<Event> {
      const { threadId, runId } = input;
      const config = { configurable: { thread_id: threadId } };
      const { values, tasks } = await graph.getState(config);
      const held = (values as { messages?: BaseMessage[] }).messages ?? [];
      const asked = input.messages.findLastIndex(({ role }) => role === "user");
      const goesOn = attempt !== undefined && held.some(({ id }) => id === input.messages[asked]?.id);
      if (goesOn) {
        // The graph's answer so far replaces what was cut off.
        yield { type: EventType.MESSAGES_SNAPSHOT, messages: input.messages.slice(0, asked + 1) };
        for (const message of held.slice(held.findLastIndex(isHumanMessage) + 1)) yield* eventsOf(message);
      }
      const answers = answersTo(tasks, input.resume);
      const begins = goesOn ? null : { messages: changesOf(held, input.messages) };
      const chunks = await graph.stream(answers === undefined ? begins : new Command({ resume: answers }), {
        ...config,
        signal,
        streamMode: ["messages", "custom"],
        // A node begins when the end of the one before is stored.
        durability: "sync",
      });
      for await (const chunk of chunks as AsyncIterable<Streamed>) {
        if (chunk[0] === "custom") yield chunk[1];
        else yield* eventsOf(chunk[1][0]);
      }
      const interrupts = interruptsOf((await graph.getState(config)).tasks);
      const outcome = interrupts.length > 0 ? { type: "interrupt" as const, interrupts } : { type: "success" as const };
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome };
    },
    { continues: true, repeatableTools },
  );

/** What `streamMode: ["messages", "custom"]` gives, with nodes that write events. */
type Streamed = readonly ["custom", Event] | readonly ["messages", readonly [BaseMessage, unknown]];

function* eventsOf(message: BaseMessage): Generator<Event> {
  const messageId = message.id ?? "";
  if (isToolMessage(message)) {
    const { tool_call_id: toolCallId, text: content } = message;
    yield { type: EventType.TOOL_CALL_RESULT, messageId, toolCallId, content, role: "tool" };
  } else if (isAIMessage(message)) {
    if (message.text !== "") {
      yield { type: EventType.TEXT_MESSAGE_CHUNK, messageId, role: "assistant", delta: message.text };
    }
    const calls = AIMessageChunk.isInstance(message)
      ? (message.tool_call_chunks ?? [])
      : (message.tool_calls ?? []).map(({ id, name, args }) => ({ id, name, args: JSON.stringify(args) }));
    for (const { id, name, args } of calls) {
      const call = id ? { toolCallId: id, parentMessageId: messageId, ...(name && { toolCallName: name }) } : {};
      yield { type: EventType.TOOL_CALL_CHUNK, ...call, delta: args ?? "" };
    }
  }
}

/** What makes the graph's messages those of the thread. */
function changesOf(held: readonly BaseMessage[], messages: readonly Message[]): BaseMessage[] {
  const inThread = new Set(messages.map(({ id }) => id));
  const inGraph = new Map(held.map(({ id, text }) => [id, text]));
  const isNew = ({ id, role, content }: Message): boolean =>
    !inGraph.has(id) || (role === "user" && inGraph.get(id) !== contentToText(content));
  const gone = held.flatMap((one) =>
    one.id === undefined || isSystemMessage(one) || inThread.has(one.id) ? [] : [new RemoveMessage({ id: one.id })],
  );
  return [...gone, ...messages.filter(isNew).flatMap(langChainOf)];
}

function langChainOf(message: Message): BaseMessage[] {
  const { id, role } = message;
  if (role === "activity" || role === "reasoning") return [];
  const content = contentToText(message.content);
  if (role === "user") return [new HumanMessage({ id, content })];
  if (role === "tool") return [new ToolMessage({ id, content, tool_call_id: message.toolCallId })];
  if (role !== "assistant") return [new SystemMessage({ id, content })];
  const calls = (message.toolCalls ?? []).map(({ id: callId, function: { name, arguments: text } }) => ({
    id: callId,
    name,
    args: (parsePartialJson(text) ?? {}) as Record<string, unknown>,
  }));
  return [new AIMessage({ id, content, tool_calls: calls })];
}

type Tasks = StateSnapshot["tasks"];

/** What the graph waits for, as AG-UI has it. */
const interruptsOf = (tasks: Tasks) =>
  tasks.flatMap(({ interrupts }) =>
    interrupts.map(({ id = "", value }: { id?: string; value?: unknown }) => ({
      id,
      reason: "input_required",
      ...(typeof value === "string" ? { message: value } : { metadata: { value } }),
    })),
  );

/** The answers to what the graph waits for, by interrupt: the payload, or null where the answer is a refusal. */
function answersTo(tasks: Tasks, resume: RunAgentInput["resume"] = []): Record<string, unknown> | undefined {
  const open = new Set(interruptsOf(tasks).map(({ id }) => id));
  const answers = resume.filter(({ interruptId }) => open.has(interruptId));
  if (answers.length === 0) return undefined;
  return Object.fromEntries(
    answers.map(({ interruptId, status, payload }) => [interruptId, status === "resolved" ? payload : null]),
  );
}

let current: unknown;

// LangGraph's `interrupt` finds its task by AsyncLocalStorage, which no browser has. This is one for what runs without a pause.
AsyncLocalStorageProviderSingleton.initializeGlobalInstance({
  getStore: () => current,
  enterWith: (store) => void (current = store),
  run(store, callback) {
    const before = current;
    current = store;
    try {
      return callback();
    } finally {
      current = before;
    }
  },
});

/**
 * LangGraph's `interrupt`, in a browser and anywhere in a node: the run ends with an AG-UI interrupt, and the node runs again, from
 * its beginning, once `resume` answers it.
 *
 * @param config what the node is given as its second argument
 * @returns the payload of the answer; null where it was cancelled
 */
export const ask = <Answer>(config: LangGraphRunnableConfig, question: unknown): Answer | null =>
  AsyncLocalStorageProviderSingleton.runWithConfig(config, () => interrupt<unknown, Answer | null>(question));
