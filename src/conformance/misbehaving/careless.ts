import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { expectSame } from "../expect.js";
import { answerId, say } from "../good-agents.js";
import { scriptedAgent } from "../scripted-agent.js";
import { agents, answer, SAID } from "./agent.js";

/** How many deltas come at once. */
const MANY = 10_000;

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) frozen(inner);
  }
  return value;
}

/** Agents that keep to the protocol and trip runners up all the same. */
export const CARELESS = agents([
  {
    name: "patch-on-input-state",
    does: "patches the state that it was given, without a snapshot of it",
    state: { list: ["given"], said: "only in the input" },
    ends: EventType.RUN_FINISHED,
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        emit(say.started(input));
        await Promise.resolve();
        emit({ type: EventType.STATE_DELTA, delta: [{ op: "add", path: "/list/-", value: "patched" }] });
        emit(say.finished(input));
      }),
    check: ({ view }) => {
      const expected = { list: ["given", "patched"], said: "only in the input" };
      expectSame(view.state, expected, "a delta must apply to the state that the run was given, also on replay");
    },
  },
  {
    name: "mutates-its-events",
    does: "changes its events after it has emitted them",
    ends: EventType.RUN_FINISHED,
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        const value = { as: "emitted" };
        const snapshot = { as: "emitted" };
        emit(say.started(input), { type: EventType.CUSTOM, name: "note", value }, say.state(snapshot));
        value.as = "changed later";
        snapshot.as = "changed later";
        await Promise.resolve();
        emit(say.finished(input));
      }),
    check: ({ events, replay, view }) => {
      const values = (of: readonly BaseEvent[]): unknown[] =>
        of.filter((event) => event.type === EventType.CUSTOM).map((event) => event["value"]);
      const rule = "an event must be recorded as it was emitted";
      expectSame(values(replay), [{ as: "emitted" }], `${rule}: CUSTOM on replay`);
      expectSame(values(events), [{ as: "emitted" }], `${rule}: CUSTOM as the subscriber is handed it`);
      expectSame(view.state, { as: "emitted" }, `${rule}: STATE_SNAPSHOT on replay`);
    },
  },
  {
    name: "mutates-its-input",
    does: "changes the messages and the state that it was given",
    ends: EventType.RUN_FINISHED,
    keeps: SAID,
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        emit(say.started(input));
        for (const message of input.messages) if (message.role === "user") message.content = "words in your mouth";
        input.messages.push({ id: "made-up", role: "user", content: "never said" });
        if (typeof input.state === "object" && input.state !== null) Object.assign(input.state, { list: "gone" });
        await Promise.resolve();
        emit(...answer(input), say.finished(input));
      }),
  },
  {
    name: "frozen-events",
    does: "emits events that nobody can change",
    ends: EventType.RUN_FINISHED,
    keeps: SAID,
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        for (const event of [say.started(input), ...answer(input)]) {
          emit(frozen(event));
          await Promise.resolve();
        }
        emit(frozen(say.finished(input)));
      }),
  },
  {
    name: "ten-thousand-deltas",
    does: "emits 10,000 deltas at once",
    ends: EventType.RUN_FINISHED,
    keeps: "x".repeat(MANY),
    make: () =>
      scriptedAgent(({ input, emit }) => {
        const id = answerId(input);
        emit(say.started(input), say.textStart(id));
        for (let n = 0; n < MANY; n++) emit(say.text(id, "x"));
        emit(say.textEnd(id), say.finished(input));
      }),
  },
]);
