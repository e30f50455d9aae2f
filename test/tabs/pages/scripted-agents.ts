import { type AbstractAgent, type BaseEvent, HttpAgent, type RunAgentInput } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { type AgentContext, defineAgent } from "ag-ui-local-runtime/worker";
import { Notes } from "./scripted-notes.js";
import { letGo } from "./scripted-hold.js";
import { Permits } from "./scripted-permits.js";

/** What a test asks of an agent, as the JSON text of the last user message. */
interface Order {
  /** How many deltas. */
  n?: number;
  /** Pause before each, in ms; 0: none. */
  everyMs?: number;
  /** A pause only before every so-manieth. Default 1. */
  burst?: number;
  /** A state of so many kilobytes before each burst, in place of the one before. */
  stateKb?: number;
  /** So many numbers only once the page has permitted them (`lab.permit`), as often as it takes. */
  permitted?: number;
  /** Before this number it waits for as long as a page holds the thread (`lab.hold`). */
  heldAt?: number;
  /** Half way it lets nothing else of its context run for so long, in ms. */
  blockMs?: number;
  kilobytes?: number;
  /** Where the agent `server` is. */
  url?: string;
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
  const { n = 10, everyMs = 0, burst = 1, stateKb, permitted, heldAt, blockMs = 0 } = orderOf(input);
  const messageId = `numbers-${input.runId}`;
  const permits = permitted === undefined ? undefined : new Permits(input.threadId);
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  for (let i = 0; i < n && !signal.aborted; i++) {
    if (everyMs > 0 && i % burst === 0) await pause(everyMs, signal);
    if (stateKb !== undefined && i % burst === 0) {
      yield { type: EventType.STATE_SNAPSHOT, snapshot: { i, ballast: "x".repeat(stateKb * 1_024) } } as BaseEvent;
    }
    if (permitted !== undefined && i % permitted === 0) await permits?.next(signal);
    if (i === heldAt) await letGo(input.threadId, signal);
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

/** Says one word, then nothing while a page holds the thread, then completes without an end of its own. */
async function* late(input: RunAgentInput, { signal }: AgentContext): AsyncGenerator<BaseEvent> {
  yield* say(`late-${input.runId}`, "soon");
  await letGo(input.threadId, signal);
}

/** Throws with an open message. */
async function* fail(input: RunAgentInput): AsyncGenerator<BaseEvent> {
  const messageId = `half-${input.runId}`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "as far as here" } as BaseEvent;
  throw new Error("the script broke");
}

/** As `count`, with so many kilobytes beside each number. */
async function* fill(input: RunAgentInput, context: AgentContext): AsyncGenerator<BaseEvent> {
  const value = "x".repeat((orderOf(input).kilobytes ?? 10) * 1_024);
  for await (const event of count(input, context)) {
    yield event;
    if (event.type === EventType.TEXT_MESSAGE_CONTENT)
      yield { type: EventType.CUSTOM, name: "ballast", value } as BaseEvent;
  }
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

/** As `count`, and notes when it starts, with every number and when it ends. */
const noting = (notes: Notes) =>
  async function* (input: RunAgentInput, context: AgentContext): AsyncGenerator<BaseEvent> {
    const { threadId, runId } = input;
    const execution = crypto.randomUUID();
    const note = (is: "started" | "going" | "ended"): Promise<void> => notes.add({ is, threadId, runId, execution });
    await note("started");
    for await (const event of count(input, context)) {
      await note("going");
      yield event;
    }
    await note("ended");
  };

/** An agent on the server that the last user message names. */
const server = new HttpAgent({
  url: "unused",
  fetch: (_url, request) => fetch(orderOf(JSON.parse(String(request.body)) as RunAgentInput).url ?? "", request),
});

/** Answers with `fetch` and throws what that throws. */
async function* fetching(input: RunAgentInput, { signal }: AgentContext): AsyncGenerator<BaseEvent> {
  yield* say(`word-${input.runId}`, "so far");
  // The server never answers to the end.
  const response = await fetch(orderOf(input).url ?? "", { method: "POST", body: "{}", signal });
  await response.text();
}

/** Asks, and waits for an answer, which it repeats. */
async function* asker({ threadId, runId, resume }: RunAgentInput): AsyncGenerator<BaseEvent> {
  const said: unknown = resume?.[0]?.payload;
  if (typeof said === "string") return yield* say(`answer-${said}`, said);
  yield* say(`asks-${runId}`, "May I?");
  const interrupts = [{ id: "question", reason: "may I?" }];
  yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
}

/** The agents of all test workers. `noted` writes into a database of its own beside `dbName`. */
export const scriptedAgents = (dbName: string): Record<string, AbstractAgent> => ({
  count: defineAgent<BaseEvent>(count),
  noted: defineAgent<BaseEvent>(noting(new Notes(dbName))),
  asker: defineAgent<BaseEvent>(asker),
  echo: defineAgent<BaseEvent>(echo),
  fill: defineAgent<BaseEvent>(fill),
  late: defineAgent<BaseEvent>(late),
  fail: defineAgent<BaseEvent>(fail),
  silent: defineAgent<BaseEvent>(silent),
  stubborn: defineAgent<BaseEvent>(stubborn),
  server,
  fetching: defineAgent<BaseEvent>(fetching),
});
