import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { agentOf, collect, freshDb, gated, inputOf, PRESETS, rebuild, replay, user } from "./kit.js";

const sets = (snapshot: unknown) =>
  agentOf(async function* () {
    yield { type: EventType.STATE_SNAPSHOT, snapshot };
  });

/** Computes its delta on the state that it is given. */
const counts = (gate: Promise<void> = Promise.resolve()) =>
  agentOf(async function* ({ state }) {
    await gate;
    const value = (state as { count: number }).count + 1;
    yield { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "/count", value }] };
  });

function run(runner: LocalAgentRunner, runId: string, agent = counts(), state: unknown = {}): Promise<BaseEvent[]> {
  return collect(runner.run({ threadId: "t", agent, input: inputOf("t", runId, [user(`${runId}-u`)], state) }));
}

const snapshots = (events: readonly BaseEvent[]): number =>
  events.filter(({ type }) => type === EventType.STATE_SNAPSHOT).length;

describe.each(PRESETS)(
  "%s: who asks for a run is given the state that it starts from, where it lacks it",
  (_name, makeRunner) => {
    test("an empty state: right after RUN_STARTED, for that reader and not in the log (L2, L4)", async () => {
      const runner = makeRunner({ dbName: freshDb() });
      await run(runner, "r1", sets({ count: 1 }));
      const events = await run(runner, "r2");
      expect(events.slice(0, 2)).toMatchObject([
        { type: EventType.RUN_STARTED },
        { type: EventType.STATE_SNAPSHOT, snapshot: { count: 1 } },
      ]);
      expect((await rebuild(events)).state).toEqual({ count: 2 });
      expect((await rebuild(await replay(runner, "t"))).state).toEqual({ count: 2 });
      const recorded = await runner.getRunEvents("r2", { threadId: "t" });
      expect(recorded.map(({ event }) => event.type)).not.toContain(EventType.STATE_SNAPSHOT);
      expect(await runner.getThreadState("t")).toEqual({ count: 2 });
    });

    test("a sender that has the state, or sets another one, is told once or not at all", async () => {
      const runner = makeRunner({ dbName: freshDb() });
      expect(
        snapshots(
          await run(
            runner,
            "r0",
            agentOf(async function* () {}),
          ),
        ),
      ).toBe(0);
      await run(runner, "r1", sets({ count: 1 }));
      const set = await run(runner, "r2", counts(), { count: 7 });
      expect([snapshots(set), (await rebuild(set)).state]).toEqual([1, { count: 8 }]);
      await run(runner, "r3", sets({}));
      expect(
        snapshots(
          await run(
            runner,
            "r4",
            agentOf(async function* () {}),
          ),
        ),
      ).toBe(0);
    });

    test("a state that is no object", async () => {
      const runner = makeRunner({ dbName: freshDb() });
      for (const state of [[1], "text", 0, false, null]) {
        await run(runner, `set ${String(state)}`, sets(state));
        const events = await run(
          runner,
          `read ${String(state)}`,
          agentOf(async function* () {}),
        );
        expect((await rebuild(events)).state).toEqual(state);
      }
    });

    test("each of those that ask for one run, during it and after it (L13)", async () => {
      const runner = makeRunner({ dbName: freshDb() });
      await run(runner, "r1", sets({ count: 1 }));
      const { gate, letOn } = gated();
      const asks = [run(runner, "r2", counts(gate)), run(runner, "r2", counts(gate), { count: 1 })];
      letOn();
      const [empty, whole] = await Promise.all(asks);
      expect((await rebuild(empty!)).state).toEqual({ count: 2 });
      expect([snapshots(empty!), snapshots(whole!)]).toEqual([1, 0]);
      expect(await run(runner, "r2")).toEqual(empty);
      expect(await run(runner, "r2", counts(), { count: 1 })).toEqual(whole);
    });

    test("the last run alone, for a reader that has nothing of the thread (L4)", async () => {
      const runner = makeRunner({ dbName: freshDb() });
      await run(runner, "r1", sets({ count: 1 }));
      await run(runner, "r2");
      const last = await collect(runner.connect({ threadId: "t", replay: "last-run" }));
      expect((await rebuild(last)).state).toEqual({ count: 2 });
    });

    test("a branch starts from what stood there", async () => {
      const runner = makeRunner({ dbName: freshDb() });
      await run(runner, "r1", sets({ count: 1 }));
      await run(runner, "r2", counts());
      const input = { ...inputOf("t", "r3", [user("r1-u"), user("r2-u", "edited")]) };
      const events = await collect(runner.run({ threadId: "t", agent: counts(), input }));
      expect((await rebuild(events)).state).toEqual({ count: 2 });
    });
  },
);
