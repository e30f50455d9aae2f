import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { agentOf, collect, counter, eventsOfFrame, framesUntil, inputOf, PRESETS } from "../runner/kit.js";

/**
 * Values that are not JSON, as careless agents put them into their events, and how their run ends: what has no end, or
 * far more bytes as text than in memory, goes beyond the limits of an event.
 */
const VALUES: Readonly<Record<string, { readonly make: () => unknown; readonly status: "finished" | "errored" }>> = {
  "that holds itself": {
    status: "errored",
    make: () => {
      const loop: { self?: unknown; list: unknown[] } = { list: [] };
      loop.self = loop;
      loop.list.push(loop);
      return loop;
    },
  },
  "that holds one value in many places": {
    status: "errored",
    make: () => {
      let value: unknown = "x";
      for (let n = 0; n < 40; n++) value = [value, value];
      return value;
    },
  },
  "of many bytes": { status: "finished", make: () => new Uint8Array(2_000_000) },
};

describe.each(PRESETS)("%s", (_name, makeRunner) => {
  test.each(Object.keys(VALUES))(
    "an event with a value %s starves nobody, and the thread goes on (L7)",
    async (name) => {
      const runner = makeRunner();
      const { make, status } = VALUES[name]!;
      const value = make();
      const agent = agentOf(async function* (input, context) {
        yield { type: EventType.CUSTOM, name: "odd", value } as BaseEvent;
        yield { type: EventType.RAW, event: value } as BaseEvent;
        yield* counter(3)(input, context);
      });
      await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
      expect(await runner.getRun("r")).toMatchObject({ status });
      await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") }));
      const events = (await framesUntil(runner, { threadId: "t", replay: "events" })).flatMap(eventsOfFrame);
      expect(events.filter(({ type }) => type === EventType.CUSTOM).length).toBe(status === "finished" ? 1 : 0);
      expect(events.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "next" });
    },
  );
});
