import { enforceEvents, verifyEvents } from "@ag-ui/client";
import { type BaseEvent, type ContentPart, EventType, type Message, type RunAgentInput } from "@ag-ui/core";
import { EventSchemas } from "@ag-ui/core/schemas";
import fastJsonPatch, { type Operation } from "fast-json-patch";
import { from } from "rxjs";
import { expect } from "vitest";
import { hashText } from "../../../documents/files.js";
import { fileMessage } from "../../../documents/message.js";
import type { DocumentCache } from "../../../documents/prepare.js";
import { reader } from "../../../reader/reader.js";
import type { ReaderState } from "../../../reader/state.js";

export interface Outcome {
  readonly events: readonly BaseEvent[];
  readonly answer: string;
  readonly reasoning: string;
  readonly state: ReaderState;
  readonly steps: readonly string[];
  readonly calls: readonly { readonly name: string; readonly args: unknown; readonly result: unknown }[];
}

/** A thread with Reader: keeps files, messages and state from run to run. Every run is checked against the protocol. */
export class Thread {
  readonly files = new Map<string, string>();
  readonly messages: Message[] = [];
  readonly cache: DocumentCache = new Map();
  state: unknown;
  #runs = 0;

  async file(name: string, text: string, type: string): Promise<ContentPart> {
    const id = await hashText(text);
    this.files.set(id, text);
    const [part] = fileMessage("", { id, name, type, size: text.length });
    if (!part) throw new Error("No part");
    return part;
  }

  /** Adds a user message and runs. */
  async send(text: string, ...parts: ContentPart[]): Promise<Outcome> {
    const content: ContentPart[] = [...(text === "" ? [] : [{ type: "text" as const, text }]), ...parts];
    this.messages.push({ id: `user-${this.#runs}`, role: "user", content });
    return this.run();
  }

  async run(): Promise<Outcome> {
    const input = this.input();
    const events: BaseEvent[] = [];
    for await (const event of reader(input, { signal: new AbortController().signal }, this.tools())) events.push(event);
    return this.#outcome(input, events);
  }

  input(): RunAgentInput {
    const runId = `run-${++this.#runs}`;
    return { threadId: "thread", runId, messages: [...this.messages], state: this.state, tools: [], context: [] };
  }

  tools() {
    return {
      pace: 0,
      cache: this.cache,
      load: (id: string) => {
        const text = this.files.get(id);
        return text === undefined ? Promise.reject(new Error("The file is gone.")) : Promise.resolve({ text });
      },
    };
  }

  async #outcome(input: RunAgentInput, events: BaseEvent[]): Promise<Outcome> {
    await expectValid(input, events);
    const state = stateAfter(input.state, events);
    const outcome: Outcome = {
      events,
      answer: joined(events, EventType.TEXT_MESSAGE_CONTENT),
      reasoning: joined(events, EventType.REASONING_MESSAGE_CONTENT),
      state: state as ReaderState,
      steps: events.filter(({ type }) => type === EventType.STEP_STARTED).map(({ stepName }) => stepName as string),
      calls: callsOf(events),
    };
    this.state = state;
    this.messages.push({ id: `${input.runId}-answer`, role: "assistant", content: outcome.answer });
    return outcome;
  }
}

/** Fails where the run, opened and closed as the runtime does it, is not a valid AG-UI 1.0 sequence. */
export async function expectValid(input: RunAgentInput, events: readonly BaseEvent[]): Promise<void> {
  const { threadId, runId } = input;
  const run: BaseEvent[] = [
    { type: EventType.RUN_STARTED, threadId, runId },
    ...events,
    { type: EventType.RUN_FINISHED, threadId, runId },
  ];
  for (const event of run) expect(EventSchemas.safeParse(event).error, JSON.stringify(event)).toBeUndefined();
  const accepted: BaseEvent[] = [];
  // The client brings its own rxjs, of the same shape.
  const checked$ = verifyEvents(false)(enforceEvents(false)(from(run) as never));
  await new Promise<void>((resolve, reject) => {
    checked$.subscribe({ next: (event) => accepted.push(event), error: reject, complete: resolve });
  });
  expect(accepted).toEqual(run);
  expect(JSON.parse(JSON.stringify(events))).toEqual(events);
}

export function stateAfter(before: unknown, events: readonly BaseEvent[]): unknown {
  let state: unknown = structuredClone(before);
  for (const event of events) {
    if (event.type === EventType.STATE_SNAPSHOT) state = structuredClone(event.snapshot);
    if (event.type === EventType.STATE_DELTA) {
      const delta = structuredClone(event.delta) as Operation[];
      state = fastJsonPatch.applyPatch(state, delta, true, true, true).newDocument;
    }
  }
  return state;
}

function joined(events: readonly BaseEvent[], type: EventType): string {
  return events
    .filter((event) => event.type === type)
    .map(({ delta }) => delta as string)
    .join("");
}

function callsOf(events: readonly BaseEvent[]): Outcome["calls"] {
  return events
    .filter(({ type }) => type === EventType.TOOL_CALL_START)
    .map(({ toolCallId, toolCallName }) => {
      const own = events.filter((event) => event.toolCallId === toolCallId);
      const args = joined(own, EventType.TOOL_CALL_ARGS);
      const result = own.find(({ type }) => type === EventType.TOOL_CALL_RESULT)?.content;
      return {
        name: toolCallName as string,
        args: JSON.parse(args) as unknown,
        result: JSON.parse(result as string) as unknown,
      };
    });
}

/** The only document of a state. */
export function onlyDocument(state: ReaderState): ReaderState["documents"][string] {
  const [document, ...more] = Object.values(state.documents);
  if (!document || more.length > 0) throw new Error("Not one document");
  return document;
}
