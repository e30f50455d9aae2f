import type { AGUIEvent, RunAgentInput } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";
import { call, pause, say, think } from "./say.js";

const MARKDOWN = `## What this page runs on

The **agent** is a generator in a worker of your browser:

| part | where |
| --- | --- |
| agent | SharedWorker |
| history | IndexedDB |

1. No server.
2. No network.

\`\`\`ts
yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
\`\`\`
`;

interface Asked {
  readonly input: RunAgentInput;
  readonly signal: AbortSignal;
  /** Of the answer's message. */
  readonly id: string;
  /** The last message of the user. */
  readonly text: string;
}

/** By the first word of a message: what the agent does to show one thing that CopilotKit has. */
const SHOWN: Readonly<Record<string, (asked: Asked) => AsyncGenerator<AGUIEvent>>> = {
  async *markdown({ id, signal }) {
    yield* think(`${id}-thoughts`, "The user wants to see Markdown. A heading, a table, a list and some code will do.");
    yield* say(id, MARKDOWN, signal);
  },
  async *weather({ id, signal }) {
    const toolCallId = `${id}-weather`;
    yield* call(toolCallId, "getWeather", { city: "Lisbon" });
    await pause(300);
    const content = JSON.stringify({ city: "Lisbon", degrees: 21, sky: "sunny" });
    yield { type: EventType.TOOL_CALL_RESULT, messageId: `${id}-result`, toolCallId, content };
    yield* say(id, "It is 21 degrees and sunny in Lisbon.", signal);
  },
  async *colour({ id }) {
    yield* call(`${id}-colour`, "setColour", { colour: "#cfe8dc" });
  },
  async *book({ id }) {
    yield* call(`${id}-book`, "confirmBooking", { flight: "LIS 17:40", price: 120 });
  },
  async *seat({ id }) {
    yield* call(`${id}-seat`, "pickSeat", { flight: "LIS 17:40" });
  },
  async *pay({ id }) {
    yield* call(`${id}-pay`, "pay", { amount: 120 });
  },
  async *results({ id, input, signal }) {
    const results = input.messages.filter(({ role }) => role === "tool");
    yield* say(id, `Results of tools that I was given: ${results.length}.`, signal);
  },
  async *chart({ id }) {
    yield* call(`${id}-chart`, "showChart", { title: "Visitors", values: [3, 7, 4, 9, 6] });
  },
  async *progress({ id, signal }) {
    const messageId = `${id}-activity`;
    const steps = ["Read", "Compare", "Write"];
    yield { type: EventType.ACTIVITY_SNAPSHOT, messageId, activityType: "progress", content: { steps, done: 0 } };
    for (let done = 1; done <= steps.length; done++) {
      await pause(150);
      const change = { op: "replace" as const, path: "/done", value: done };
      yield { type: EventType.ACTIVITY_DELTA, messageId, activityType: "progress", patch: [change] };
    }
    yield* say(id, "All three steps are done.", signal);
  },
  async *count({ id, input, signal }) {
    const { count = 0 } = (input.state ?? {}) as { readonly count?: number };
    if (input.state === undefined || !("count" in input.state)) {
      yield { type: EventType.STATE_SNAPSHOT, snapshot: { count } };
    }
    yield { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "/count", value: count + 1 }] };
    yield* say(id, `I counted from ${count} to ${count + 1}.`, signal);
  },
  async *transfer({ id, input }) {
    yield* say(id, "A transfer needs your approval.", new AbortController().signal);
    const interrupt = { id: `${id}-approval`, reason: "approval", message: "Transfer 100 euros to Ada?" };
    const { threadId, runId } = input;
    yield {
      type: EventType.RUN_FINISHED,
      threadId,
      runId,
      outcome: { type: "interrupt", interrupts: [interrupt] },
    };
  },
  async *pause({ id, signal }) {
    yield* say(id, "This takes a decision.", signal);
    yield { type: EventType.CUSTOM, name: "on_interrupt", value: { question: "Go on?" } };
  },
  async *slow({ id, signal }) {
    yield* say(id, `I say it slowly, ${"word by word, and on, ".repeat(60)}until the end.`, signal);
  },
  /** Until it is stopped. */
  async *endless({ id, signal }) {
    yield* say(id, "word by word, and on, ".repeat(20_000), signal);
  },
  async *fail({ id, signal }) {
    yield* say(id, "This will not", signal);
    throw new Error("The model is out of paper.");
  },
};

const toolNameOf = (input: RunAgentInput, toolCallId: string): string | undefined =>
  input.messages
    .flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
    .find(({ id }) => id === toolCallId)?.function.name;

/** The agent of the demo: no model, no network. What it does is said by the first word of the last message. */
export async function* answer(input: RunAgentInput, { signal }: { signal: AbortSignal }): AsyncGenerator<AGUIEvent> {
  const { messages, resume, forwardedProps } = input;
  const id = crypto.randomUUID();
  const last = messages.at(-1);
  const given = forwardedProps as
    { toolChoice?: { function?: { name?: string } }; command?: { resume?: unknown } } | undefined;
  if (given?.toolChoice?.function?.name === "copilotkitSuggest") {
    const suggestions = ["weather", "chart"].map((message) => ({ title: `Now ${message}`, message }));
    return yield* call(`${id}-suggest`, "copilotkitSuggest", { suggestions });
  }
  const answered = resume?.[0];
  if (answered !== undefined) {
    const approved = answered.status === "resolved" && (answered.payload as { approved?: boolean }).approved === true;
    return yield* say(id, approved ? "Transferred." : "Nothing was transferred.", signal);
  }
  if (given?.command?.resume !== undefined) {
    return yield* say(id, `Decided: ${String(given.command.resume)}.`, signal);
  }
  if (last?.role === "tool") {
    const name = toolNameOf(input, last.toolCallId);
    return yield* say(id, `${name ?? "A tool"} said: ${String(last.content)}.`, signal);
  }
  const text = String(messages.findLast(({ role }) => role === "user")?.content ?? "");
  const [word = ""] = text.toLowerCase().split(/\s/);
  // "constructor" is a word that somebody may say.
  const shown = Object.hasOwn(SHOWN, word) ? SHOWN[word] : undefined;
  if (shown !== undefined) return yield* shown({ input, signal, id, text });
  yield* say(id, `You said: ${text}. Try one of: ${Object.keys(SHOWN).join(", ")}.`, signal);
}
