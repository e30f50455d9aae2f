import { describe, expect, test } from "vitest";
import type { Checkpoint } from "../../../src/checkpoint/checkpoint.js";
import type { LocalCheckpointStore } from "../../../src/checkpoint/checkpoint-store.js";
import { filling } from "./filling.js";
import { checkpoint } from "./kit.js";

/** The laws of {@link LocalCheckpointStore} on what deletes, forks and saves under a condition, and on what it refuses. */
export function describeCheckpointChanges(open: () => LocalCheckpointStore): void {
  const { listed, filled, five } = filling(open);

  describe("delete and deleteRun", () => {
    test("a deleted one is nowhere any more, and the one before it is the newest", async () => {
      const store = await five();
      await store.delete("e");
      expect(await store.get("e")).toBeNull();
      expect(await store.latest("run")).toMatchObject({ id: "d" });
      expect(await store.load("run", "node")).toMatchObject({ id: "d" });
      expect(await listed(store, "graph")).toEqual(["d", "c", "b", "a"]);
    });

    test("what is not there is deleted silently", async () => {
      const store = await filled(checkpoint("a"));
      await expect(store.delete("b")).resolves.toBeUndefined();
      await store.delete("a");
      await expect(store.delete("a")).resolves.toBeUndefined();
      expect(await store.deleteRun("run")).toBe(0);
    });

    test("deleteRun deletes the run and no other", async () => {
      const store = await five();
      await store.save(checkpoint("x", { runId: "run2" }));
      expect(await store.deleteRun("run")).toBe(5);
      expect(await store.latest("run")).toBeNull();
      expect(await store.get("a")).toBeNull();
      expect(await listed(store, "graph")).toEqual(["x"]);
    });

    test("deleteRun deletes also what takes several transactions", async () => {
      const store = open();
      await Promise.all(Array.from({ length: 300 }, (_, n) => store.save(checkpoint(`${n}`, { timestamp: n }))));
      expect(await store.deleteRun("run")).toBe(300);
      expect(await store.list("graph")).toEqual([]);
    });
  });

  describe("fork", () => {
    test("copies the checkpoint into a run of its own, and leaves it as it is", async () => {
      const store = await filled(checkpoint("a"));
      const before = Date.now();
      const runId = await store.fork("a");
      const forked = await store.latest(runId);
      expect(forked).toEqual({
        ...checkpoint("a"),
        id: forked!.id,
        runId,
        timestamp: forked!.timestamp,
        forkedFrom: { checkpointId: "a", runId: "run" },
      });
      expect(new Set([forked!.id, runId, "a", "run"]).size).toBe(4);
      expect(forked!.timestamp).toBeGreaterThanOrEqual(before);
      expect(await store.get("a")).toEqual(checkpoint("a"));
      expect(await store.latest("run")).toEqual(checkpoint("a"));
      expect((await store.list("graph", { runId }))[0]).toMatchObject({ forkedFrom: { checkpointId: "a" } });
    });

    const state = (scratch: unknown): Checkpoint["state"] => ({ ...checkpoint("a").state, scratch });

    test.each([
      ["named keys come in and others stay", { a: 1, b: 2 }, { b: 3, c: 4 }, { a: 1, b: 3, c: 4 }],
      ["objects under a key are taken whole", { a: { x: 1, y: 2 } }, { a: { y: 3 } }, { a: { y: 3 } }],
      ["arrays are taken whole", { a: [1, 2, 3] }, { a: [9] }, { a: [9] }],
      ["null is a value", { a: 1, b: 2 }, { a: null }, { a: null, b: 2 }],
      ["undefined is a value too", { a: 1 }, { a: undefined }, { a: undefined }],
      ["an empty patch changes nothing", { a: 1 }, {}, { a: 1 }],
      ["a partition that is null is replaced", null, { a: 1 }, { a: 1 }],
      ["a partition that is text is replaced", "text", { a: 1 }, { a: 1 }],
      ["a partition that is an array is replaced", [1, 2], { a: 1 }, { a: 1 }],
      ["a partition that is a Map is replaced", new Map([["a", 1]]), { a: 1 }, { a: 1 }],
      ["a partition that was never set is replaced", undefined, { a: 1 }, { a: 1 }],
      ["null in place of a partition replaces it", { a: 1 }, null, null],
      ["an array in place of a partition replaces it", { a: 1 }, [1], [1]],
      ["a number in place of a partition replaces it", { a: 1 }, 0, 0],
      ["a partition that is undefined is not named", { a: 1 }, undefined, { a: 1 }],
    ])("patchState: %s", async (_, scratch, patch, expected) => {
      const store = await filled(checkpoint("a", { state: state(scratch) }));
      const forked = await store.latest(await store.fork("a", { scratch: patch }));
      expect(forked!.state).toStrictEqual(state(expected));
      expect(await store.get("a")).toStrictEqual(checkpoint("a", { state: state(scratch) }));
    });

    test("patchState reaches each of the four partitions and nothing else", async () => {
      const store = await filled(checkpoint("a"));
      const given = {
        input: { patched: 1 },
        scratch: { patched: 2 },
        artifacts: { patched: 3 },
        diagnostics: { memoryReads: 4 },
        visitedNodes: ["not", "me"],
        memory: { reads: () => "not me" },
      };
      const forked = await store.latest(await store.fork("a", given));
      expect(forked!.state).toEqual({
        input: { topic: "tides", patched: 1 },
        scratch: { at: "a", patched: 2 },
        artifacts: { patched: 3 },
        diagnostics: { ...checkpoint("a").state.diagnostics, memoryReads: 4 },
      });
      expect(forked!.visitedNodes).toEqual(["node"]);
    });

    test("a fork of a missing checkpoint is a typed error, and nothing is written", async () => {
      const store = open();
      await expect(store.fork("missing")).rejects.toMatchObject({
        code: "unknown-checkpoint",
        details: { checkpointId: "missing" },
      });
      expect(await store.list("graph")).toEqual([]);
    });

    test("two forks of one checkpoint are two runs", async () => {
      const store = await filled(checkpoint("a"));
      const [one, two] = await Promise.all([store.fork("a"), store.fork("a")]);
      expect(one).not.toBe(two);
      expect(await store.list("graph")).toHaveLength(3);
    });
  });

  describe("lineage", () => {
    /** Run 1 with a and b; run 2 forked from a, run 3 from what run 2 saved. */
    async function family() {
      const store = await filled(checkpoint("a"), checkpoint("b", { timestamp: 2_000 }));
      const run2 = await store.fork("a");
      await store.save(checkpoint("c", { runId: run2, timestamp: Date.now() + 10_000 }));
      const run3 = await store.fork("c");
      return { store, run2, run3, last: (await store.latest(run3))!.id };
    }

    const steps = async (store: LocalCheckpointStore, id: string) =>
      (await store.lineage(id)).map(({ checkpointId, metadata }) => `${checkpointId}${metadata ? "" : " (gone)"}`);

    test("is the checkpoint, what its run was forked from, and so on", async () => {
      const { store, run2, run3, last } = await family();
      expect(await store.lineage(last)).toMatchObject([
        { checkpointId: last, runId: run3, metadata: { id: last, forkedFrom: { checkpointId: "c" } } },
        { checkpointId: "c", runId: run2, metadata: { id: "c" } },
        { checkpointId: "a", runId: "run", metadata: { id: "a" } },
      ]);
      expect(await steps(store, "b")).toEqual(["b"]);
    });

    test("goes on over checkpoints that were deleted, as long as their runs have others", async () => {
      const { store, run2, last } = await family();
      const root = (await store.list("graph", { runId: run2 })).find(({ forkedFrom }) => forkedFrom !== undefined);
      await store.delete(root!.id);
      expect(await steps(store, last)).toEqual([last, "c", "a"]);
      await store.save(checkpoint("d", { runId: run2, timestamp: Date.now() }));
      await store.delete("c");
      await store.delete("a");
      expect(await steps(store, last)).toEqual([last, "c (gone)", "a (gone)"]);
    });

    test("ends at a run of which nothing is left", async () => {
      const { store, run2, last } = await family();
      await store.deleteRun(run2);
      expect(await steps(store, last)).toEqual([last, "c (gone)"]);
    });

    test("forgets what a run came from when its last checkpoint is deleted", async () => {
      const store = await filled(checkpoint("a"));
      const runId = await store.fork("a");
      await store.delete((await store.latest(runId))!.id);
      await store.save(checkpoint("b", { runId }));
      expect(await steps(store, "b")).toEqual(["b"]);
    });

    test("forgets what a run came from when its last checkpoint becomes another run's", async () => {
      const store = await filled(checkpoint("a"));
      const runId = await store.fork("a");
      const root = (await store.latest(runId))!;
      await store.save(checkpoint(root.id));
      await store.save(checkpoint("b", { runId }));
      expect(await steps(store, "b")).toEqual(["b"]);
    });

    test("of a checkpoint that is not there is empty", async () => {
      expect(await open().lineage("missing")).toEqual([]);
    });

    test("metadata, which are not encrypted, hold nothing of an origin but its ids", async () => {
      const forkedFrom = { checkpointId: "a", runId: "run", why: "private" };
      const store = await filled(checkpoint("a"), checkpoint("b", { runId: "fork", forkedFrom }));
      expect(await store.get("b")).toMatchObject({ forkedFrom });
      const origin = { checkpointId: "a", runId: "run" };
      expect((await store.list("graph", { runId: "fork" }))[0]?.forkedFrom).toEqual(origin);
      expect((await store.lineage("b"))[1]).toEqual({ ...origin, metadata: expect.anything() });
    });

    test("comes to an end though runs say that they come from one another", async () => {
      const store = await filled(
        checkpoint("a", { runId: "1", forkedFrom: { checkpointId: "b", runId: "2" } }),
        checkpoint("b", { runId: "2", forkedFrom: { checkpointId: "a", runId: "1" } }),
      );
      expect(await steps(store, "a")).toEqual(["a", "b"]);
    });
  });

  describe("saveIf", () => {
    test("saves where the newest is the one that is expected", async () => {
      const store = open();
      expect(await store.saveIf(checkpoint("a"), null)).toMatchObject({ is: "saved", latest: { id: "a" } });
      expect(await store.saveIf(checkpoint("b"), "a")).toMatchObject({ is: "saved", latest: { id: "b" } });
      expect(await store.get("b")).toEqual(checkpoint("b"));
    });

    test("writes nothing where it is another one, and says which", async () => {
      const store = await filled(checkpoint("a"), checkpoint("b"));
      for (const expected of [null, "a", "missing"])
        expect(await store.saveIf(checkpoint("c"), expected)).toMatchObject({ is: "conflict", latest: { id: "b" } });
      expect(await store.saveIf(checkpoint("c", { runId: "new" }), "b")).toEqual({ is: "conflict", latest: null });
      expect(await listed(store, "graph")).toEqual(["b", "a"]);
    });

    test("of many at once that expect the same, one is saved", async () => {
      const store = await filled(checkpoint("a"));
      const ends = await Promise.all(
        Array.from({ length: 8 }, (_, n) => store.saveIf(checkpoint(`${n}`, { timestamp: 2_000 }), "a")),
      );
      expect(ends.filter(({ is }) => is === "saved")).toHaveLength(1);
      expect(await store.list("graph")).toHaveLength(2);
    });

    test("lets one continue from a checkpoint also where a clock was set back", async () => {
      const store = await filled(checkpoint("a"));
      for (const id of ["b", "c"]) {
        const older = checkpoint(id, { timestamp: 500 });
        expect(await store.saveIf(older, "a")).toMatchObject({ is: "conflict", latest: { id: "a", timestamp: 1_000 } });
      }
      expect(await store.saveIf(checkpoint("b"), "a")).toMatchObject({ is: "saved", latest: { id: "b" } });
      expect(await store.saveIf(checkpoint("c"), "a")).toMatchObject({ is: "conflict", latest: { id: "b" } });
      expect(await listed(store, "graph")).toEqual(["b", "a"]);
    });

    test("may write the newest anew", async () => {
      const store = await filled(checkpoint("a"));
      expect(await store.saveIf(checkpoint("a", { visitedNodes: [] }), "a")).toMatchObject({ is: "saved" });
      expect(await store.get("a")).toMatchObject({ visitedNodes: [] });
    });
  });

  describe("prune", () => {
    test.each([
      ["keep", { keep: 2 }, ["e", "d"]],
      ["keep 0, but not the last one", { keep: 0 }, ["e"]],
      ["keep 0, even the last one", { keep: 0, evenLast: true }, []],
      ["keep more than there are", { keep: 9 }, ["e", "d", "c", "b", "a"]],
      ["olderThan", { olderThan: 2_000 }, ["e", "d", "c"]],
      ["olderThan all, but not the last one", { olderThan: 9_000 }, ["e"]],
      ["olderThan all, even the last one", { olderThan: 9_000, evenLast: true }, []],
      ["both, where fewer are old", { keep: 1, olderThan: 2_000 }, ["e", "d", "c"]],
      ["both, where more are kept", { keep: 4, olderThan: 9_000 }, ["e", "d", "c", "b"]],
    ])("%s", async (_, query, left) => {
      const store = await five();
      expect(await store.prune(query)).toBe(5 - left.length);
      expect(await listed(store, "graph")).toEqual(left);
    });

    test("goes through all runs, or through one", async () => {
      const store = await five();
      const other = (id: string) => checkpoint(id, { runId: "other", graphId: "other" });
      for (const id of ["x", "y"]) await store.save(other(id));
      expect(await store.prune({ keep: 1, runId: "other" })).toBe(1);
      expect(await listed(store, "other")).toEqual(["y"]);
      expect(await store.list("graph")).toHaveLength(5);
      await store.save(other("z"));
      expect(await store.prune({ keep: 1 })).toBe(5);
      expect([await listed(store, "graph"), await listed(store, "other")]).toEqual([["e"], ["z"]]);
    });

    test("keeps as many as it is told to, however many these are", async () => {
      const store = await five();
      expect(await store.prune({ keep: 2 ** 40 })).toBe(0);
      expect(await store.prune({ keep: Number.MAX_SAFE_INTEGER, runId: "run" })).toBe(0);
    });

    test("prunes also what takes several transactions", async () => {
      const store = open();
      const many = Array.from({ length: 300 }, (_, n) => checkpoint(`${n}`, { timestamp: n, runId: "long" }));
      // Few of the runs have anything that goes.
      const runs = Array.from({ length: 300 }, (_, n) => checkpoint(`run ${n}`, { runId: `run ${n}` }));
      const last = [checkpoint("z1", { runId: "zz" }), checkpoint("z2", { runId: "zz" })];
      await Promise.all([...many, ...runs, ...last].map((it) => store.save(it)));
      expect(await store.prune({ keep: 5 })).toBe(295);
      expect(await store.prune({ keep: 1 })).toBe(5);
      expect(await store.latest("long")).toMatchObject({ id: "299" });
      expect(await store.list("graph")).toHaveLength(302);
    });

    test("what a run was forked from goes with the last of it", async () => {
      const store = await filled(checkpoint("a"));
      const runId = await store.fork("a");
      await store.prune({ keep: 0, evenLast: true, runId });
      await store.save(checkpoint("b", { runId }));
      expect(await store.lineage("b")).toHaveLength(1);
    });
  });

  describe("what cannot be kept", () => {
    const broken: readonly [string, unknown, string][] = [
      ["no object", "text", "checkpoint"],
      ["nothing", undefined, "checkpoint"],
      ["an empty id", { ...checkpoint("a"), id: "" }, "checkpoint.id"],
      ["an id that is no text", { ...checkpoint("a"), id: 1 }, "checkpoint.id"],
      ["no graphId", { ...checkpoint("a"), graphId: undefined }, "checkpoint.graphId"],
      ["no runId", { ...checkpoint("a"), runId: null }, "checkpoint.runId"],
      ["no nodeId", { ...checkpoint("a"), nodeId: 5 }, "checkpoint.nodeId"],
      ["a timestamp of NaN", { ...checkpoint("a"), timestamp: NaN }, "checkpoint.timestamp"],
      ["an endless timestamp", { ...checkpoint("a"), timestamp: Infinity }, "checkpoint.timestamp"],
      ["a timestamp that is text", { ...checkpoint("a"), timestamp: "2026" }, "checkpoint.timestamp"],
      ["no state", { ...checkpoint("a"), state: null }, "checkpoint.state"],
      ["a Map as its state", { ...checkpoint("a"), state: new Map([["scratch", 1]]) }, "checkpoint.state"],
      ["a Date as its state", { ...checkpoint("a"), state: new Date(0) }, "checkpoint.state"],
      ["bytes as its state", { ...checkpoint("a"), state: new Uint8Array(2) }, "checkpoint.state"],
      ["a Map of results", { ...checkpoint("a"), nodeResults: new Map([["n", {}]]) }, "checkpoint.nodeResults"],
      ["a result that is a Date", { ...checkpoint("a"), nodeResults: { n: new Date(0) } }, "checkpoint.nodeResults"],
      ["a Set as its snapshot", { ...checkpoint("a"), memorySnapshot: new Set([1]) }, "checkpoint.memorySnapshot"],
      ["results that are no objects", { ...checkpoint("a"), nodeResults: { n: 1 } }, "checkpoint.nodeResults"],
      ["visited nodes that are no texts", { ...checkpoint("a"), visitedNodes: [1] }, "checkpoint.visitedNodes"],
      ["no pending edges", { ...checkpoint("a"), pendingEdges: undefined }, "checkpoint.pendingEdges"],
      ["a snapshot that is none", { ...checkpoint("a"), memorySnapshot: 1 }, "checkpoint.memorySnapshot"],
      ["an origin that is none", { ...checkpoint("a"), forkedFrom: {} }, "checkpoint.forkedFrom"],
    ];

    test.each(broken)("a checkpoint with %s is refused, and what was there stays", async (_, given, field) => {
      const store = await filled(checkpoint("a"));
      const refusal = { code: "invalid-input", details: { field } };
      // Whoever calls from JavaScript may give anything.
      await expect(store.save(given as Checkpoint)).rejects.toMatchObject(refusal);
      await expect(store.saveIf(given as Checkpoint, "a")).rejects.toMatchObject(refusal);
      expect(await store.get("a")).toEqual(checkpoint("a"));
      expect(await listed(store, "graph")).toEqual(["a"]);
    });

    test("a value that cannot be cloned is refused by its name", async () => {
      const store = await filled(checkpoint("a"));
      const given = checkpoint("b");
      given.state.scratch = { fine: 1, deep: { callback: () => 1 } };
      const refusal = { code: "invalid-input", details: { field: "checkpoint.state.scratch.deep.callback" } };
      await expect(store.save(given)).rejects.toMatchObject(refusal);
      given.state.scratch = { list: [Symbol("s")] };
      await expect(store.save(given)).rejects.toMatchObject({ details: { field: "checkpoint.state.scratch.list" } });
      given.state.scratch = {
        get out(): never {
          throw new Error("mine");
        },
      };
      await expect(store.save(given)).rejects.toMatchObject({ details: { field: "checkpoint.state.scratch.out" } });
      expect(await listed(store, "graph")).toEqual(["a"]);
    });

    test("a revoked Proxy is refused by its name, wherever it is", async () => {
      const store = await filled(checkpoint("a"));
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      const places: readonly [unknown, string][] = [
        [proxy, "checkpoint"],
        [{ ...checkpoint("b"), state: proxy }, "checkpoint.state"],
        [
          { ...checkpoint("b"), state: { ...checkpoint("b").state, scratch: { it: proxy } } },
          "checkpoint.state.scratch.it",
        ],
        [{ ...checkpoint("b"), nodeResults: { n: proxy } }, "checkpoint.nodeResults.n"],
      ];
      for (const [given, field] of places) {
        const refusal = { code: "invalid-input", details: { field } };
        await expect(store.save(given as Checkpoint)).rejects.toMatchObject(refusal);
      }
      const patched = { code: "invalid-input", details: { field: "patchState" } };
      await expect(store.fork("a", proxy)).rejects.toMatchObject(patched);
      await expect(store.list("graph", proxy)).rejects.toMatchObject({ details: { field: "query" } });
      expect(await listed(store, "graph")).toEqual(["a"]);
    });

    test("a Map, a Date and bytes inside a partition are kept as they are", async () => {
      const scratch = { map: new Map([["a", new Date(0)]]), bytes: new Uint8Array([1, 2]) };
      const store = await filled(checkpoint("a"));
      await store.save(checkpoint("a", { state: { ...checkpoint("a").state, input: new Map([[1, 2]]), scratch } }));
      const { state } = (await store.get("a"))!;
      expect(state).toMatchObject({ input: new Map([[1, 2]]), scratch });
    });

    test("a patch that cannot be cloned, or is none, is refused, and nothing is written", async () => {
      const store = await filled(checkpoint("a"));
      await expect(store.fork("a", { scratch: { f: () => 1 } })).rejects.toMatchObject({
        code: "invalid-input",
        details: { field: "patchState.scratch.f" },
      });
      for (const none of ["text", new Map([["scratch", 1]]), [1]])
        await expect(store.fork("a", none as never)).rejects.toMatchObject({ code: "invalid-input" });
      expect(await listed(store, "graph")).toEqual(["a"]);
    });

    test.each([
      ["limit", { limit: -1 }],
      ["limit", { limit: 1.5 }],
      ["limit", { limit: NaN }],
      ["limit", { limit: "5" }],
      ["runId", { runId: 5 }],
      ["before", { before: "a" }],
      ["before", { before: { timestamp: NaN } }],
      ["after", { after: { timestamp: 1, turn: -1 } }],
      ["query", null],
    ])("a list is refused for its %s: %j", async (field, query) => {
      const store = await filled(checkpoint("a"));
      await expect(store.list("graph", query as never)).rejects.toMatchObject({
        code: "invalid-input",
        details: { field },
      });
    });

    test.each([
      ["keep", {}],
      ["keep", { keep: -1 }],
      ["keep", { keep: 0.5 }],
      ["olderThan", { olderThan: NaN }],
      ["runId", { keep: 1, runId: 1 }],
      ["evenLast", { keep: 0, evenLast: "no" }],
      ["query", undefined],
    ])("a prune is refused for its %s: %j", async (field, query) => {
      const store = await filled(checkpoint("a"));
      await expect(store.prune(query as never)).rejects.toMatchObject({ code: "invalid-input", details: { field } });
      expect(await listed(store, "graph")).toEqual(["a"]);
    });

    test("an id that is no text is refused by every call", async () => {
      const store = open();
      const none = 5 as never;
      const calls = [
        store.get(none),
        store.load(none),
        store.load("run", none),
        store.latest(none),
        store.list(none),
        store.delete(none),
        store.fork(none),
        store.saveIf(checkpoint("a"), none),
        store.deleteRun(none),
        store.lineage(none),
      ];
      for (const end of await Promise.allSettled(calls))
        expect(end).toMatchObject({ status: "rejected", reason: { code: "invalid-input" } });
    });
  });

  test("what is asked of a closed store is refused", async () => {
    const store = await filled(checkpoint("a"));
    await store.close();
    const calls = [
      store.save(checkpoint("b")),
      store.saveIf(checkpoint("b"), "a"),
      store.get("a"),
      store.load("run"),
      store.latest("run"),
      store.list("graph"),
      store.delete("a"),
      store.fork("a"),
      store.deleteRun("run"),
      store.prune({ keep: 1 }),
      store.lineage("a"),
    ];
    for (const end of await Promise.allSettled(calls))
      expect(end).toMatchObject({ status: "rejected", reason: { code: "closed" } });
  });
}
