import { describe, expect, test } from "vitest";
import type { Checkpoint } from "../../../src/checkpoint/checkpoint.js";
import type { LocalCheckpointStore } from "../../../src/checkpoint/checkpoint-store.js";
import { describeCheckpointChanges } from "./checkpoint-changes.suite.js";
import { filling } from "./filling.js";
import { checkpoint } from "./kit.js";

/** The laws of {@link LocalCheckpointStore}, for whichever store. */
export function describeCheckpointStore(name: string, open: () => LocalCheckpointStore): void {
  const { listed, filled, five } = filling(open);

  describe(name, () => {
    describe("save, get, load and latest", () => {
      test("what was saved is got as it was, with fields that nobody knows yet", async () => {
        const saved = {
          ...checkpoint("a"),
          memorySnapshot: { reads: [], pendingWrites: [{ type: "episodic", content: "x", scope: "session" }] },
          ofALaterVersion: [1],
        };
        const store = await filled(saved);
        expect(await store.get("a")).toEqual(saved);
        expect(await store.load("run")).toEqual(saved);
        expect(await store.load("run", "node")).toEqual(saved);
        expect(await store.latest("run")).toEqual(saved);
      });

      test("what is not there is null, and nothing is listed", async () => {
        const store = await filled(checkpoint("a"));
        for (const ask of [
          store.get("b"),
          store.load("b"),
          store.load("run", "b"),
          store.load("b", "node"),
          store.latest("b"),
        ])
          expect(await ask).toBeNull();
        expect(await store.list("b")).toEqual([]);
        expect(await store.list("graph", { runId: "b" })).toEqual([]);
      });

      test("the newest is that of the highest timestamp, whenever it was saved", async () => {
        const store = await five();
        expect(await store.latest("run")).toMatchObject({ id: "e" });
        expect(await listed(store, "graph")).toEqual(["e", "d", "c", "b", "a"]);
      });

      test("of one timestamp the one saved last is the newest, whatever its id", async () => {
        const store = await filled(checkpoint("b"), checkpoint("c"), checkpoint("a"));
        expect(await store.latest("run")).toMatchObject({ id: "a" });
        await store.save(checkpoint("b"));
        expect(await listed(store, "graph")).toEqual(["b", "a", "c"]);
      });

      test("saved a second time at one timestamp it is the newest of run, node and graph alike", async () => {
        const store = await filled(
          checkpoint("a"),
          checkpoint("of another graph", { graphId: "other" }),
          checkpoint("of another run", { runId: "other" }),
        );
        await store.save(checkpoint("a"));
        expect(await store.latest("run")).toMatchObject({ id: "a" });
        expect(await store.load("run", "node")).toMatchObject({ id: "a" });
        expect(await listed(store, "graph")).toEqual(["a", "of another run"]);
      });

      test("of one timestamp the one saved last is the run's newest also over several graphs", async () => {
        const store = await filled(
          checkpoint("a", { runId: "other" }),
          checkpoint("b"),
          checkpoint("c", { graphId: "other" }),
        );
        expect(await store.latest("run")).toMatchObject({ id: "c" });
        expect(await store.load("run", "node")).toMatchObject({ id: "c" });
      });

      test.each([
        ["before the epoch", -5],
        ["at the epoch", 0],
        ["in fractions of a ms", 0.25],
      ])("a timestamp %s is as good as another", async (_, timestamp) => {
        const store = await filled(
          checkpoint("a", { timestamp }),
          checkpoint("b", { timestamp: timestamp - 1 }),
          checkpoint("c", { timestamp }),
        );
        expect(await store.latest("run")).toMatchObject({ id: "c", timestamp });
        expect(await listed(store, "graph")).toEqual(["c", "a", "b"]);
      });

      test("load gives the newest of a node in a run, and of no other", async () => {
        const store = await filled(
          checkpoint("a", { nodeId: "one", timestamp: 1 }),
          checkpoint("b", { nodeId: "two", timestamp: 2 }),
          checkpoint("c", { nodeId: "one", timestamp: 3 }),
          checkpoint("d", { nodeId: "two", timestamp: 4, runId: "other" }),
        );
        expect(await store.load("run", "one")).toMatchObject({ id: "c" });
        expect(await store.load("run", "two")).toMatchObject({ id: "b" });
        expect(await store.load("other", "two")).toMatchObject({ id: "d" });
        expect(await store.load("other", "one")).toBeNull();
      });

      test("ids that only together look alike are not taken for one another", async () => {
        const store = await filled(
          checkpoint("1", { runId: "a", nodeId: "b,c" }),
          checkpoint("2", { runId: "a,b", nodeId: "c" }),
          checkpoint("3", { runId: 'a","b', nodeId: "c" }),
          checkpoint("4", { runId: "a", nodeId: 'b","c' }),
        );
        expect(await store.load("a", "b,c")).toMatchObject({ id: "1" });
        expect(await store.load("a,b", "c")).toMatchObject({ id: "2" });
        expect(await store.load("a", 'b","c')).toMatchObject({ id: "4" });
        expect(await listed(store, "graph", { runId: "a" })).toEqual(["4", "1"]);
      });

      test("one saved under the same id takes the place of the one before, in whichever run and graph it was", async () => {
        const store = await filled(checkpoint("a"), checkpoint("a", { graphId: "g", runId: "r", nodeId: "n" }));
        expect(await store.get("a")).toMatchObject({ graphId: "g", runId: "r", nodeId: "n" });
        expect(await store.latest("run")).toBeNull();
        expect(await store.load("run", "node")).toBeNull();
        expect(await listed(store, "graph")).toEqual([]);
        expect(await listed(store, "graph", { runId: "run" })).toEqual([]);
        expect(await listed(store, "g", { runId: "r" })).toEqual(["a"]);
      });
    });

    describe("copies", () => {
      test("what is changed after the call was made is not saved", async () => {
        const store = open();
        const given = checkpoint("a");
        const saving = store.save(given);
        given.visitedNodes.push("later");
        given.state.scratch = "later";
        given.timestamp = 9_000;
        await saving;
        expect(await store.get("a")).toEqual(checkpoint("a"));
        expect(await listed(store, "graph", { before: { timestamp: 5_000 } })).toEqual(["a"]);
      });

      test("what is changed in a copy that was handed out is changed nowhere else", async () => {
        const store = await filled(checkpoint("a"));
        await store.fork("a");
        for (const read of [() => store.get("a"), () => store.latest("run"), () => store.load("run", "node")]) {
          const copy = await read();
          copy!.state.scratch = "mine";
          copy!.visitedNodes.push("mine");
          expect(await read()).toEqual(checkpoint("a"));
        }
        for (const metadata of await store.list("graph")) {
          metadata.nodeId = "mine";
          if (metadata.forkedFrom !== undefined) metadata.forkedFrom.runId = "mine";
        }
        expect(JSON.stringify(await store.list("graph"))).not.toContain("mine");
        for (const { metadata } of await store.lineage("a")) metadata!.nodeId = "mine";
        expect(JSON.stringify(await store.lineage("a"))).not.toContain("mine");
        const result = await store.saveIf(checkpoint("b"), "a");
        result.latest!.nodeId = "mine";
        expect(JSON.stringify(await store.list("graph"))).not.toContain("mine");
      });

      test("what a patch holds is copied at the call", async () => {
        const store = await filled(checkpoint("a"));
        const scratch = { list: [1] };
        const forking = store.fork("a", { scratch });
        scratch.list.push(2);
        const forked = await store.latest(await forking);
        expect(forked?.state.scratch).toEqual({ at: "a", list: [1] });
      });

      test("Maps, Dates, BigInts, bytes and values that hold themselves are kept", async () => {
        const circle: Record<string, unknown> = { one: 1 };
        circle["self"] = circle;
        const scratch = {
          map: new Map([["a", new Date(5)]]),
          set: new Set([1n]),
          bytes: new Uint8Array([1, 2]),
          nothing: undefined,
          circle,
        };
        const state = { ...checkpoint("a").state, scratch };
        const store = await filled(checkpoint("a", { state }));
        const got = (await store.get("a"))!.state.scratch as typeof scratch;
        expect(got).toEqual(scratch);
        expect(got.circle["self"]).toBe(got.circle);
      });

      test("a key called __proto__ is a key like others, in states, results and patches", async () => {
        const hostile = JSON.parse('{"__proto__":{"polluted":1},"own":1}') as Record<string, unknown>;
        const results = JSON.parse(
          '{"__proto__":{"effectClass":"pure","output":1,"durationMs":1}}',
        ) as Checkpoint["nodeResults"];
        const store = await filled(
          checkpoint("a", { state: { ...checkpoint("a").state, scratch: hostile }, nodeResults: results }),
          checkpoint("__proto__", { runId: "__proto__", graphId: "constructor", nodeId: "toString" }),
        );
        const forked = await store.latest(await store.fork("a", { artifacts: hostile, scratch: hostile }));
        for (const part of [forked!.state.scratch, forked!.state.artifacts] as object[]) {
          expect(Object.getPrototypeOf(part)).toBe(Object.prototype);
          expect(Object.keys(part)).toContain("__proto__");
        }
        expect(Object.keys(forked!.nodeResults)).toEqual(["__proto__"]);
        expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
        expect(await store.load("__proto__", "toString")).toMatchObject({ graphId: "constructor" });
        expect(await listed(store, "constructor")).toEqual(["__proto__"]);
        expect(await store.load("hasOwnProperty")).toBeNull();
      });
    });

    describe("list", () => {
      test("gives metadata alone", async () => {
        const store = await filled(
          checkpoint("a"),
          checkpoint("b", { timestamp: 2_000, memorySnapshot: { reads: [], pendingWrites: [] } }),
        );
        const [b, a] = await store.list("graph");
        const { turn: _, ...rest } = a!;
        expect(rest).toEqual({
          id: "a",
          runId: "run",
          graphId: "graph",
          nodeId: "node",
          timestamp: 1_000,
          stateSize: expect.any(Number) as number,
          hasMemorySnapshot: false,
        });
        expect(b).toMatchObject({ id: "b", hasMemorySnapshot: true });
      });

      test("says about how large a state is", async () => {
        const withText = (length: number): Checkpoint["state"] => ({
          ...checkpoint("a").state,
          artifacts: { text: "x".repeat(length) },
        });
        const store = await filled(
          checkpoint("small", { state: withText(10), timestamp: 2 }),
          checkpoint("large", { state: withText(100_010), timestamp: 1 }),
        );
        const [small, large] = await store.list("graph");
        expect(large!.stateSize - small!.stateSize).toBe(100_000);
      });

      test("is of one graph, and of one run where it is asked for", async () => {
        const store = await filled(
          checkpoint("a"),
          checkpoint("b", { runId: "other" }),
          checkpoint("c", { graphId: "other" }),
        );
        expect(await listed(store, "graph")).toEqual(["b", "a"]);
        expect(await listed(store, "graph", { runId: "run" })).toEqual(["a"]);
        expect(await listed(store, "other", { runId: "run" })).toEqual(["c"]);
        expect(await listed(store, "graph", { runId: undefined, limit: undefined })).toEqual(["b", "a"]);
      });

      test.each([
        [0, []],
        [1, ["e"]],
        [3, ["e", "d", "c"]],
        [5, ["e", "d", "c", "b", "a"]],
        [2 ** 40, ["e", "d", "c", "b", "a"]],
        [Infinity, ["e", "d", "c", "b", "a"]],
      ])("a limit of %d gives so many of the newest", async (limit, expected) => {
        const store = await five();
        expect(await listed(store, "graph", { limit })).toEqual(expected);
        expect(await listed(store, "graph", { limit, runId: "run" })).toEqual(expected);
      });

      test.each([1, 2, 3, 5, 9])("pages of %d read back from the newest are together all", async (limit) => {
        const store = await five();
        for (const query of [{ limit }, { limit, runId: "run" }]) {
          const all: string[] = [];
          for (let page = await store.list("graph", query); page.length > 0;) {
            all.push(...page.map(({ id }) => id));
            page = await store.list("graph", { ...query, before: page.at(-1) });
          }
          expect(all).toEqual(["e", "d", "c", "b", "a"]);
        }
      });

      test.each([1, 2, 3, 5, 9])("pages of %d read on from the oldest are together all", async (limit) => {
        const store = await five();
        const all: string[] = ["a"];
        for (let after = (await store.list("graph")).at(-1); ;) {
          const page = await store.list("graph", { limit, after });
          if (page.length === 0) break;
          all.unshift(...page.map(({ id }) => id));
          after = page[0];
        }
        expect(all).toEqual(["e", "d", "c", "b", "a"]);
      });

      test("a page is found though the checkpoint that it is asked from was deleted", async () => {
        const store = await five();
        const [, , c] = await store.list("graph");
        await store.delete("c");
        expect(await listed(store, "graph", { before: c })).toEqual(["b", "a"]);
        expect(await listed(store, "graph", { after: c })).toEqual(["e", "d"]);
      });

      test.each(["deleted", "saved anew elsewhere", "pruned"])(
        "a page read on from the newest has what was saved since, though the newest was %s (L2)",
        async (how) => {
          const store = await filled(checkpoint("a"), checkpoint("b"));
          const [b] = await store.list("graph");
          if (how === "deleted") await store.delete("b");
          else if (how === "pruned") await store.deleteRun("run");
          else await store.save(checkpoint("b", { timestamp: 500 }));
          await store.save(checkpoint("c"));
          expect(await listed(store, "graph", { after: b })).toEqual(["c"]);
          expect(await listed(store, "graph", { after: b, limit: 1, runId: "run" })).toEqual(["c"]);
        },
      );

      test("a place without a turn is all of its timestamp", async () => {
        const store = await five();
        expect(await listed(store, "graph", { before: { timestamp: 2_000 } })).toEqual(["b", "a"]);
        expect(await listed(store, "graph", { after: { timestamp: 2_000 } })).toEqual(["e"]);
        expect(await listed(store, "graph", { after: { timestamp: 1_000 }, limit: 1 })).toEqual(["c"]);
      });

      test("between two places the newest come first, and nothing is between the wrong way round", async () => {
        const store = await five();
        const [e, , , , a] = await store.list("graph");
        expect(await listed(store, "graph", { before: e, after: a })).toEqual(["d", "c", "b"]);
        expect(await listed(store, "graph", { before: e, after: a, limit: 2 })).toEqual(["d", "c"]);
        expect(await listed(store, "graph", { before: a, after: e })).toEqual([]);
        expect(await listed(store, "graph", { before: a, after: a })).toEqual([]);
      });
    });

    describeCheckpointChanges(open);
  });
}
