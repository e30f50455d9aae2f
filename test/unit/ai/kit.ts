import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { verifyEvents, type BaseEvent, type Message, type RunAgentInput } from "@ag-ui/client";
import type { AGUIEvent } from "@ag-ui/core";
import type { LanguageModel } from "ai";
import { aiAgent, type AiAgentOptions } from "ag-ui-local-runtime/ai";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import type { HostedRun } from "../../../src/run/hosted.js";
import { Fold } from "../../../src/run/fold.js";
import { modelServer, type ModelServer } from "../../openai/server.js";
import { collect, rebuild } from "../runner/plain-kit.js";

/** The server of a test file. */
export function servedModel(): { readonly server: ModelServer; readonly model: LanguageModel } {
  let server: ModelServer;
  beforeAll(async () => void (server = await modelServer()));
  beforeEach(() => server.reset());
  afterAll(() => server.close());
  return {
    get server() {
      return server;
    },
    get model() {
      return modelAt(server.url);
    },
  };
}

export const modelAt = (baseURL: string, apiKey?: string): LanguageModel =>
  createOpenAICompatible({ name: "scripted", baseURL, includeUsage: true, ...(apiKey !== undefined && { apiKey }) })(
    "scripted",
  );

export const asks = (...messages: (string | Message)[]): Message[] =>
  messages.map((message, at) =>
    typeof message === "string" ? { id: `u${at}`, role: "user", content: message } : message,
  );

let runs = 0;

export const inputOf = (messages: Message[], more: Partial<RunAgentInput> = {}): RunAgentInput => ({
  threadId: "t",
  runId: `run-${++runs}`,
  messages,
  tools: [],
  context: [],
  state: {},
  ...more,
});

export interface Ran {
  readonly events: AGUIEvent[];
  readonly messages: Message[];
  readonly state: unknown;
  /** The last event. */
  readonly end: AGUIEvent;
}

/** Runs an agent once. Whatever it emits must pass the verifier, and rebuild with AG-UI's client what our fold has. */
export async function runOf(
  options: AiAgentOptions,
  input: RunAgentInput,
  more: { readonly headers?: Record<string, string>; readonly hosted?: HostedRun } = {},
): Promise<Ran> {
  const agent = Object.assign(aiAgent(options).clone(), more);
  const events = (await collect(agent.run(input).pipe(verifyEvents()))) as AGUIEvent[]; // as an aiAgent makes them
  return { ...(await replayed(events, input)), events, end: events.at(-1)! };
}

/** Messages and state behind the events, equal by both reducers. */
export async function replayed(
  events: readonly BaseEvent[],
  { messages, state }: RunAgentInput,
): Promise<{ messages: Message[]; state: unknown }> {
  const fold = new Fold({ messages, state, interrupts: [] });
  for (const event of structuredClone(events)) fold.apply(event);
  const folded = fold.share();
  const rebuilt = await rebuild(events, structuredClone(messages));
  expect(rebuilt.messages).toEqual(folded.messages);
  return folded;
}

export const typesOf = (events: readonly AGUIEvent[]): string[] => {
  const types: string[] = [];
  // Deltas that follow one another count once.
  for (const { type } of events) if (types.at(-1) !== type) types.push(type);
  return types;
};
