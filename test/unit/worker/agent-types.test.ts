import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test } from "vitest";
import { defineAgent } from "../../../src/worker/define-agent.js";

const { TEXT_MESSAGE_START, TEXT_MESSAGE_CONTENT, TOOL_CALL_START } = EventType;

/** The type check of this file is the test: each line below an `@ts-expect-error` must not compile. */
const AGENTS = [
  defineAgent(async function* ({ runId }) {
    yield { type: TEXT_MESSAGE_START, messageId: runId, role: "assistant" };
    yield { type: TEXT_MESSAGE_CONTENT, messageId: runId, delta: "typed" };
  }),
  // @ts-expect-error a misspelt field
  defineAgent(async function* () {
    yield { type: TEXT_MESSAGE_START, messagId: "m", role: "assistant" };
  }),
  // @ts-expect-error a field of the wrong type
  defineAgent(async function* () {
    yield { type: TEXT_MESSAGE_CONTENT, messageId: "m", delta: 1 };
  }),
  // @ts-expect-error a field that is missing
  defineAgent(async function* () {
    yield { type: TOOL_CALL_START, toolCallId: "c" };
  }),
  // @ts-expect-error no event
  defineAgent(async function* () {
    yield "hello";
  }),
  // @ts-expect-error an event of unknown fields, where it is not said
  defineAgent(async function* () {
    yield { type: TEXT_MESSAGE_START, messageId: "m" } as BaseEvent;
  }),
  // Handed on from another agent: it is said.
  defineAgent<BaseEvent>(async function* () {
    yield { type: TEXT_MESSAGE_START, messageId: "m" } as BaseEvent;
  }),
];

test("the types of agent functions know the events", () => {
  expect(AGENTS).toHaveLength(7);
});
