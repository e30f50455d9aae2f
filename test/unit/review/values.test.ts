import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { agentOf, collect, counter, eventsOfFrame, framesUntil, inputOf, PRESETS } from "../runner/kit.js";

/** Values that can be stored and are not JSON, as careless agents put them into their events. */
const VALUES: Readonly<Record<string, () => unknown>> = {
  "that holds itself": () => {
    const loop: { self?: unknown; list: unknown[] } = { list: [] };
    loop.self = loop;
    loop.list.push(loop);
    return loop;
  },
  "that holds one value in many places": () => {
    let value: unknown = "x";
    for (let n = 0; n < 40; n++) value = [value, value];
    return value;
  },
  "of many bytes": () => new Uint8Array(2_000_000),
};

describe.each(PRESETS)("%s", (_name, makeRunner) => {
  test.each(Object.keys(VALUES))(
    "an event with a value %s starves nobody, and the thread goes on (L7)",
    async (name) => {
      const runner = makeRunner();
      const value = VALUES[name]!();
      const agent = agentOf(async function* (input, context) {
        yield { type: EventType.CUSTOM, name: "odd", value } as BaseEvent;
        yield { type: EventType.RAW, event: value } as BaseEvent;
        yield* counter(3)(input, context);
      });
      await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
      expect(await runner.getRun("r")).toMatchObject({ status: "finished" });
      await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") }));
      const events = (await framesUntil(runner, { threadId: "t", replay: "events" })).flatMap(eventsOfFrame);
      expect(events.filter(({ type }) => type === EventType.CUSTOM).length).toBe(1);
    },
  );
});
