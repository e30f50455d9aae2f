import { transformChunks, type BaseEvent } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import fc from "fast-check";
import { from } from "rxjs";
import { describe, expect, test } from "vitest";
import { times } from "../property.js";
import { compact } from "../../../src/run/compact-events.js";
import { closingEvents } from "../../../src/run/finalize.js";
import { OpenConstructTracker } from "../../../src/run/open-constructs.js";
import { check, custom, failed, finished, many, read, runsOf, started } from "./compact-kit.js";
import { mustBeValid } from "./reference.js";
import { streams, THREAD_ID, type Stream } from "./streams.js";

/** Repeats some of the events that may be repeated as often as one likes, some with fields of their own. */
function thicken(events: readonly BaseEvent[], choices: readonly number[]): BaseEvent[] {
  const types: readonly string[] = [
    EventType.TEXT_MESSAGE_CONTENT,
    EventType.REASONING_MESSAGE_CONTENT,
    EventType.TOOL_CALL_ARGS,
    EventType.STATE_DELTA,
    EventType.ACTIVITY_DELTA,
    EventType.ACTIVITY_SNAPSHOT,
    EventType.MESSAGES_SNAPSHOT,
  ];
  return events.flatMap((event, n) => {
    const choice = choices[n % choices.length]!;
    if (!types.includes(event.type)) return [event];
    const again: BaseEvent[] = many((choice % 3) + 1, () => structuredClone(event));
    if (choice > 15) again.push({ ...structuredClone(event), rawEvent: { n } });
    if (choice > 12) again.push({ ...structuredClone(event), metadata: { [`k${choice % 3}`]: n } });
    return again;
  });
}

interface Log extends Stream {
  readonly runs: number;
}

/** A thread of one to four runs; `open`: the last may have no end. */
const logs: fc.Arbitrary<Log> = fc
  .array(fc.tuple(streams(50), fc.nat(4), fc.array(fc.nat(18), { minLength: 7, maxLength: 13 })), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => {
    const events = parts.flatMap(([stream, how, choices], n) => {
      const runId = `run${n}`;
      const [first, ...rest] = stream.events;
      const run = [{ ...first!, runId }, ...thicken(rest, choices)];
      if (how === 0) return [...run, failed];
      if (how === 1 && n === parts.length - 1) return run;
      const tracker = new OpenConstructTracker(new Set());
      for (const event of run) tracker.note(event);
      let made = 0;
      const interrupts = [{ id: `i${n}`, reason: "ask" }];
      const terminal = finished(runId, how === 2 ? { type: "interrupt", interrupts } : undefined);
      const ids = (): string => `made-up-${n}-${made++}`;
      const status = "finished" as const;
      return [...run, ...closingEvents(tracker.snapshot(), { status, threadId: THREAD_ID, runId, terminal, ids })];
    });
    return { base: parts[0]![0].base, events, runs: parts.length };
  });

/** With an end, which the last run may lack. */
function ended(events: readonly BaseEvent[]): readonly BaseEvent[] {
  const last = events[events.length - 1]!.type;
  return last === EventType.RUN_FINISHED || last === EventType.RUN_ERROR ? events : [...events, failed];
}

const chunkLists: fc.Arbitrary<BaseEvent[]> = fc
  .array(fc.record({ kind: fc.nat(4), id: fc.nat(1), delta: fc.constantFrom("a", "b", "\ud83d", "\ude00") }), {
    minLength: 1,
    maxLength: 25,
  })
  .map((choices) =>
    choices.map(({ kind, id, delta }): BaseEvent => {
      if (kind === 0) return { type: EventType.TOOL_CALL_CHUNK, toolCallId: `c${id}`, toolCallName: "f", delta };
      if (kind === 1) return { type: EventType.REASONING_MESSAGE_CHUNK, messageId: `r${id}`, delta };
      if (kind === 2) return custom(delta);
      return { type: EventType.TEXT_MESSAGE_CHUNK, messageId: `m${id}`, delta };
    }),
  );

/** The events with their chunk events expanded, as `@ag-ui/client` does. */
function expanded(events: readonly BaseEvent[]): BaseEvent[] {
  const all: BaseEvent[] = [];
  transformChunks()(from(events)).subscribe((event) => all.push(event));
  return all;
}

const KEPT: readonly string[] = Object.values(EventType).filter((type) => /^(CUSTOM|RAW|STEP|SUBAGENT)/.test(type));

describe("compact", () => {
  test("readers end each run with the same messages, state and interrupts, in a valid log (L2, L3, L4)", async () => {
    await fc.assert(
      fc.asyncProperty(logs, async ({ base, events, runs }) => {
        await mustBeValid(events);
        const compacted = await check(events, base);
        expect(runsOf(compacted)).toHaveLength(runs);
        expect(compacted.length).toBeLessThanOrEqual(events.length);
        await mustBeValid([...ended(compacted), ...events]);
        const kept = (of: readonly BaseEvent[]): BaseEvent[] => of.filter(({ type }) => KEPT.includes(type));
        expect(kept(compacted)).toEqual(kept(events));
        const raw = (of: readonly BaseEvent[]): unknown[] => of.flatMap(({ rawEvent }) => rawEvent ?? []);
        expect(raw(compacted)).toEqual(raw(events));
      }),
      times(300),
    );
  });

  test("what follows, and a part of a thread, are as good as before (L2, L3, L4)", async () => {
    await fc.assert(
      fc.asyncProperty(logs, fc.nat(120), fc.nat(3), async ({ base, events, runs }, cut, run) => {
        const at = Math.max(1, cut % events.length);
        const followed = [...compact(events.slice(0, at), base), ...events.slice(at)];
        await mustBeValid(followed);
        expect((await read(followed, base)).at(-1)).toEqual((await read(events, base)).at(-1));

        const later = runsOf(events).slice(run % runs);
        const before = runsOf(events)
          .slice(0, run % runs)
          .flat();
        await check(later.flat(), before.length === 0 ? base : (await read(before, base)).at(-1)!);
      }),
      times(120),
    );
  });

  test("chunk events are what they expand to (L2, L3)", async () => {
    await fc.assert(
      fc.asyncProperty(chunkLists, async (chunks) => {
        const events = [started(), ...chunks, finished()];
        expect(compact(events)).toEqual(await check(expanded(events)));
      }),
      times(200),
    );
    const broken: BaseEvent = { type: EventType.TEXT_MESSAGE_CHUNK, delta: "a" };
    expect(() => compact([started(), broken])).toThrow("messageId");
  });
});
