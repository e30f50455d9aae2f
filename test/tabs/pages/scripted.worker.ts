import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { type AgentContext, defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";

// The worker's name is "<database>" or "<database>#<anything>": several workers on one database.
const dbName = self.name.split("#")[0] || "scripted";

/** What a test asks of an agent, as the JSON text of the last user message. */
interface Order {
  /** How many deltas. */
  n?: number;
  /** Pause before each, in ms; 0: none. */
  everyMs?: number;
  /** Half way it lets nothing else of its context run for so long, in ms. */
  blockMs?: number;
}

function orderOf({ messages }: RunAgentInput): Order {
  const { content } = messages.findLast(({ role }) => role === "user") ?? {};
  try {
    return typeof content === "string" ? (JSON.parse(content) as Order) : {};
  } catch {
    return {};
  }
}

const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;) continue;
}

function* say(messageId: string, text: string): Generator<BaseEvent> {
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: text } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
}

/** "0 1 2 …", a number in each delta. */
async function* count(input: RunAgentInput, { signal }: AgentContext): AsyncGenerator<BaseEvent> {
  const { n = 10, everyMs = 0, blockMs = 0 } = orderOf(input);
  const messageId = `numbers-${input.runId}`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  for (let i = 0; i < n && !signal.aborted; i++) {
    if (everyMs > 0) await pause(everyMs, signal);
    if (i === n >> 1) block(blockMs);
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: i === 0 ? "0" : ` ${i}` } as BaseEvent;
  }
  yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
}

/** The last user message, back. */
async function* echo(input: RunAgentInput): AsyncGenerator<BaseEvent> {
  const { content } = input.messages.findLast(({ role }) => role === "user") ?? {};
  yield* say(`echo-${input.runId}`, String(content));
}

/** Throws with an open message. */
async function* fail(input: RunAgentInput): AsyncGenerator<BaseEvent> {
  const messageId = `half-${input.runId}`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "as far as here" } as BaseEvent;
  throw new Error("the script broke");
}

/** Says nothing until it is stopped. */
async function* silent(_input: RunAgentInput, { signal }: AgentContext): AsyncGenerator<BaseEvent> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  yield* [];
}

/** Says one word, then neither ends nor listens. */
async function* stubborn(input: RunAgentInput): AsyncGenerator<BaseEvent> {
  yield* say(`word-${input.runId}`, "no");
  await new Promise(() => undefined);
}

serveRuntime({
  agents: {
    count: defineAgent(count),
    echo: defineAgent(echo),
    fail: defineAgent(fail),
    silent: defineAgent(silent),
    stubborn: defineAgent(stubborn),
  },
  dbName,
});
