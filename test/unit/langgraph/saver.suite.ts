import { compareChannelVersions, INTERRUPT, JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import { describe, expect, onTestFinished, test } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import {
  checkpointOf,
  countsOf,
  freshName,
  listOf,
  metadataOf,
  nextId,
  opened,
  put,
  rawOf,
  sealLength,
  storedBytes,
  threadConfig,
  valuesOf,
} from "./kit.js";

/** What a saver owes beyond LangGraph's own laws, on whichever IndexedDB is there. */
export function describeSaver(name: string): void {
  describe(name, () => {
    test("two savers on one database see what either has saved", async () => {
      const dbName = freshName();
      const one = opened(dbName);
      const other = opened(dbName);
      const first = await put(one, threadConfig("t"), checkpointOf({ a: 1 }));
      await other.putWrites(first, [["a", 2]], "task");
      const second = await put(other, first, checkpointOf({ a: 2 }, 2));
      expect(await one.getTuple(threadConfig("t"))).toEqual(await other.getTuple(second));
      expect((await one.getTuple(second))?.parentConfig).toEqual(first);
      expect((await one.getTuple(first))?.pendingWrites).toEqual([["task", "a", 2]]);
    });

    test("two savers that save at once lose nothing", async () => {
      const dbName = freshName();
      const savers = [opened(dbName), opened(dbName)];
      const saving = Array.from({ length: 40 }, (_, n) =>
        put(savers[n % 2]!, threadConfig(`t${n % 4}`), checkpointOf({ n })),
      );
      await Promise.all(saving);
      const all = await listOf(savers[0]!.list({}));
      expect(all.map((tuple) => Number(valuesOf(tuple)?.["n"])).toSorted((a, b) => a - b)).toEqual([
        ...Array(40).keys(),
      ]);
    });

    test("what was saved is there after the database was closed and opened again", async () => {
      const dbName = freshName();
      const before = opened(dbName);
      const config = await put(before, threadConfig("t"), checkpointOf({ text: "kept", map: new Map([["k", 1]]) }));
      await before.putWrites(config, [["text", "pending"]], "task", "path");
      const tuple = await before.getTuple(config);
      await before.close();
      await expect(before.getTuple(config)).rejects.toMatchObject({ code: "closed" });
      expect(await opened(dbName).getTuple(threadConfig("t"))).toEqual(tuple);
    });

    test("a channel's value is stored once for all checkpoints that have it", async () => {
      const dbName = freshName();
      const saver = opened(dbName);
      let parent = threadConfig("t");
      for (let step = 0; step < 10; step++) {
        const checkpoint = checkpointOf({ large: "x".repeat(1_000), step });
        checkpoint.channel_versions = { large: 1, step: step + 1 };
        const newVersions = step === 0 ? { large: 1, step: 1 } : { step: step + 1 };
        parent = await saver.put(parent, checkpoint, metadataOf(step), newVersions);
      }
      expect(await countsOf(dbName)).toEqual({ checkpoints: 10, values: 11, writes: 0 });
      const bodies = await (await rawOf(dbName)).getAll("checkpoints");
      expect(Math.max(...bodies.map(({ checkpoint }) => storedBytes(checkpoint)!.byteLength))).toBeLessThan(1_000);
      const all = await listOf(saver.list(threadConfig("t")));
      expect(all.map(valuesOf)).toEqual(
        Array.from({ length: 10 }, (_, n) => ({ large: "x".repeat(1_000), step: 9 - n })),
      );
    });

    test("two branches that count alike keep their own values, and so does what follows them", async () => {
      const saver = opened();
      const root = await put(saver, threadConfig("t"), checkpointOf({ a: "root" }, 1));
      const left = await put(saver, root, checkpointOf({ a: "left" }, 2));
      const right = await put(saver, root, checkpointOf({ a: "right" }, 2));
      const follow = (parent: RunnableConfig, a: string): Promise<RunnableConfig> =>
        saver.put(parent, { ...checkpointOf({ a, b: 1 }), channel_versions: { a: 2, b: 3 } }, metadataOf(2), { b: 3 });
      const branches = [left, await follow(left, "left"), right, await follow(right, "right")];
      const values = await Promise.all(branches.map(async (config) => valuesOf(await saver.getTuple(config))?.["a"]));
      expect(values).toEqual(["left", "left", "right", "right"]);
    });

    test("a copy under another parent finds the values of its versions", async () => {
      const saver = opened();
      const root = await put(saver, threadConfig("t"), checkpointOf({ a: "root" }, 1));
      await put(saver, root, checkpointOf({ a: "child" }, 2));
      const copy = await saver.put(root, checkpointOf({ a: "child" }, 2), metadataOf(2), {});
      expect(valuesOf(await saver.getTuple(copy))).toEqual({ a: "child" });
    });

    test("versions grow, and no two branches are given the same", () => {
      const saver = opened();
      let version = saver.getNextVersion(undefined);
      for (let times = 0; times < 1_000; times++) {
        const [left, right] = [saver.getNextVersion(version), saver.getNextVersion(version)];
        expect(left).toBeGreaterThan(version);
        expect(left).not.toBe(right);
        version = left;
      }
    });

    test.each(["2.0.5", "9.0.5", "99", "0009.0.5", "text", ""])(
      "versions of another saver (%s) are followed by texts that LangGraph takes for later ones",
      async (other) => {
        const saver = opened();
        const config = await saver.put(
          threadConfig("t"),
          { ...checkpointOf({ a: 1 }), channel_versions: { a: other } } as never,
          metadataOf(0),
          { a: other } as never,
        );
        let version = (await saver.getTuple(config))!.checkpoint.channel_versions["a"]!;
        for (let times = 0; times < 30; times++) {
          const [left, right] = [saver.getNextVersion(version as never), saver.getNextVersion(version as never)];
          expect(compareChannelVersions(left, version)).toBe(1);
          expect(left).not.toBe(right);
          version = left;
        }
        const next = await saver.put(
          config,
          { ...checkpointOf({ a: 2 }), channel_versions: { a: version } } as never,
          metadataOf(1),
          { a: version } as never,
        );
        expect(valuesOf(await saver.getTuple(next))).toEqual({ a: 2 });
      },
    );

    test("what the graph does with its values after the call is not in what is saved", async () => {
      const saver = opened();
      const bytes = Uint8Array.of(1, 2, 3);
      const checkpoint = checkpointOf({ list: ["before"], bytes });
      const metadata = metadataOf(0);
      const saving = put(saver, threadConfig("t"), checkpoint);
      (checkpoint.channel_values["list"] as string[]).push("after");
      checkpoint.channel_versions["other"] = 9;
      bytes[0] = 9;
      metadata.step = 9;
      const config = await saving;
      const pending: [string, string[]][] = [["list", ["before"]]];
      const writing = saver.putWrites(config, pending, "task");
      pending[0]![1].push("after");
      await writing;
      const tuple = await saver.getTuple(config);
      expect(valuesOf(tuple)).toEqual({ list: ["before"], bytes: Uint8Array.of(1, 2, 3) });
      expect(tuple?.checkpoint.channel_versions).toEqual({ list: 1, bytes: 1 });
      expect(tuple?.pendingWrites).toEqual([["task", "list", ["before"]]]);
    });

    test("large values come back whole, and a view is stored without the buffer behind it", async () => {
      const dbName = freshName();
      const saver = opened(dbName);
      const text = "äx".repeat(2_500_000);
      const view = new Uint8Array(new ArrayBuffer(4_000_000), 1_000, 5).fill(7);
      const config = await put(saver, threadConfig("t"), checkpointOf({ text, view }));
      const values = valuesOf(await saver.getTuple(config));
      expect(values?.["text"] === text).toBe(true);
      expect(values?.["view"]).toEqual(Uint8Array.of(7, 7, 7, 7, 7));
      const raw = await (await rawOf(dbName)).getAll("values");
      const length = storedBytes(raw.find(({ channel }) => channel === "view")?.value)?.buffer.byteLength;
      expect(length).toBeGreaterThanOrEqual(5);
      expect(length).toBeLessThanOrEqual(5 + sealLength());
    });

    test("a task that is done again keeps what it wrote first; of LangGraph's own channels the last counts", async () => {
      const saver = opened();
      const config = await put(saver, threadConfig("t"), checkpointOf({}));
      await saver.putWrites(config, [["a", "first"]], "task");
      await saver.putWrites(config, [[INTERRUPT, "first"]], "task");
      await saver.putWrites(config, [["a", "second"], ["b", "new"]], "task"); // prettier-ignore
      await saver.putWrites(config, [[INTERRUPT, "second"]], "task");
      expect((await saver.getTuple(config))?.pendingWrites).toEqual([
        ["task", INTERRUPT, "second"],
        ["task", "a", "first"],
        ["task", "b", "new"],
      ]);
    });

    test("writes come in the order of their tasks' paths, then by task and place", async () => {
      const saver = opened();
      const config = await put(saver, threadConfig("t"), checkpointOf({}));
      const many = Array.from({ length: 12 }, (_, n): [string, number] => ["a", n]);
      await saver.putWrites(config, many, "task-a", "~2");
      await saver.putWrites(config, [["a", "late"]], "task-0", "~3");
      await saver.putWrites(config, [["a", "early"]], "task-z", "~1");
      await saver.putWrites(config, [["a", "input"]], "task-i");
      const writes = (await saver.getTuple(config))?.pendingWrites?.map(([, , value]) => value);
      expect(writes).toEqual(["input", "early", ...Array(12).keys(), "late"]);
    });

    test("writes may come before the checkpoint that they belong to", async () => {
      const saver = opened();
      const checkpoint = checkpointOf({ a: 1 });
      const config = { configurable: { ...threadConfig("t").configurable, checkpoint_id: checkpoint.id } };
      await saver.putWrites(config, [["a", 2]], "task");
      expect(await saver.getTuple(config)).toBeUndefined();
      await put(saver, threadConfig("t"), checkpoint);
      expect((await saver.getTuple(config))?.pendingWrites).toEqual([["task", "a", 2]]);
    });

    test("the same checkpoint ids in other namespaces and threads are other checkpoints", async () => {
      const saver = opened();
      // More than one page of them.
      const ids = Array.from({ length: 50 }, nextId);
      const places = ["t", "u"].flatMap((thread) =>
        ["", "child", "child|grandchild"].map((ns) => [thread, ns] as const),
      );
      for (const [thread, ns] of places) {
        await Promise.all(
          ids.map((id) => put(saver, threadConfig(thread, ns), checkpointOf({ at: [thread, ns] }, 1, id))),
        );
      }
      const seen = (config: RunnableConfig): Promise<unknown[]> =>
        listOf(saver.list(config)).then((tuples) =>
          tuples.map(({ config: { configurable: at } }) => [
            at?.["checkpoint_id"],
            at?.["thread_id"],
            at?.["checkpoint_ns"],
          ]),
        );
      const newestFirst = ids.toReversed();
      const spaces = ["", "child", "child|grandchild"].toReversed();
      expect(await seen(threadConfig("t", "child"))).toEqual(newestFirst.map((id) => [id, "t", "child"]));
      expect(await seen({ configurable: { thread_id: "t" } })).toEqual(
        newestFirst.flatMap((id) => spaces.map((ns) => [id, "t", ns])),
      );
      expect(await seen({})).toEqual(
        newestFirst.flatMap((id) => ["u", "t"].flatMap((thread) => spaces.map((ns) => [id, thread, ns]))),
      );
      expect(await seen({ configurable: { thread_id: "t", checkpoint_id: ids[7] } })).toEqual(
        spaces.map((ns) => [ids[7], "t", ns]),
      );
      expect(await seen({ configurable: { checkpoint_ns: "child" } })).toHaveLength(100);
      for (const [thread, ns] of places) {
        const tuple = await saver.getTuple({
          configurable: { ...threadConfig(thread, ns).configurable, checkpoint_id: ids[3] },
        });
        expect(valuesOf(tuple)).toEqual({ at: [thread, ns] });
      }
    });

    test("a list is cut by limit, before and what the metadata hold, nested values included", async () => {
      const saver = opened();
      const configs: RunnableConfig[] = [];
      for (let step = 0; step < 6; step++) {
        const metadata = { ...metadataOf(step), parents: { "": step % 2 === 0 ? "even" : "odd" } };
        configs.push(await saver.put(threadConfig("t"), checkpointOf({}), metadata, {}));
      }
      const steps = async (options: Parameters<typeof saver.list>[1]): Promise<unknown[]> =>
        (await listOf(saver.list(threadConfig("t"), options))).map(({ metadata }) => metadata?.step);
      expect(await steps({ limit: 0 })).toEqual([]);
      expect(await steps({ limit: 2 })).toEqual([5, 4]);
      expect(await steps({ before: configs[3]! })).toEqual([2, 1, 0]);
      expect(await steps({ before: configs[5]!, filter: { parents: { "": "odd" } } })).toEqual([3, 1]);
      expect(await steps({ filter: { parents: { "": "even" } }, limit: 2 })).toEqual([4, 2]);
      expect(await steps({ filter: { step: 3, source: "loop" } })).toEqual([3]);
      expect(await steps({ filter: { constructor: Object } })).toEqual([]);
      expect(await steps({ filter: { writes: undefined } })).toHaveLength(6);
    });

    test.each([
      ["maps", new Map([["a", 1]]), new Map([["a", 2]])],
      ["sets", new Set(["a"]), new Set(["b"])],
      ["regular expressions", /a/, /b/],
      ["bytes", new Uint8Array([1]), new Uint8Array([2])],
    ])("a filter tells %s in the metadata apart", async (_what, own, other) => {
      const saver = opened();
      await saver.put(threadConfig("t"), checkpointOf({}), { ...metadataOf(0), own } as never, {});
      const found = (filter: object) => listOf(saver.list(threadConfig("t"), { filter: { own: filter } }));
      expect(await found(own)).toHaveLength(1);
      expect(await found(other)).toEqual([]);
    });

    test("a thread that is deleted while it is listed ends the list, and nothing of it is left", async () => {
      const dbName = freshName();
      const saver = opened(dbName);
      for (let step = 0; step < 5; step++) {
        const config = await put(saver, threadConfig("t", step % 2 === 0 ? "" : "child"), checkpointOf({ step }));
        await saver.putWrites(config, [["a", step]], "task");
      }
      const seen: unknown[] = [];
      for await (const tuple of saver.list({ configurable: { thread_id: "t" } })) {
        seen.push(valuesOf(tuple));
        if (seen.length === 2) await saver.deleteThread("t");
      }
      expect(seen).toEqual([{ step: 4 }, { step: 3 }]);
      expect(await countsOf(dbName)).toEqual({ checkpoints: 0, values: 0, writes: 0 });
      await saver.deleteThread("t");
    });

    test("what is saved while its thread is deleted is there whole or not at all", async () => {
      const dbName = freshName();
      const [writer, remover] = [opened(dbName), opened(dbName)];
      await put(writer, threadConfig("kept"), checkpointOf({ a: "kept" }));
      let parent: Promise<RunnableConfig> = Promise.resolve(threadConfig("t"));
      const saving = Array.from({ length: 30 }, (_, n) => {
        const values = { n, text: `value ${n}` };
        const next = checkpointOf(values, n + 1);
        parent = parent.then((config) =>
          put(writer, config, next, n).catch((error: unknown) => {
            // The thread was deleted: it begins anew.
            if (!RunnerError.is(error, "unknown-thread")) throw error;
            return put(writer, threadConfig("t"), next, n);
          }),
        );
        return n % 10 === 9 ? parent.then(() => remover.deleteThread("t")) : parent;
      });
      await Promise.all([...saving, remover.deleteThread("t")]);
      for (const tuple of await listOf(writer.list({ configurable: { thread_id: "t" } }))) {
        const n = tuple.metadata?.step;
        expect(valuesOf(tuple)).toEqual({ n, text: `value ${n}` });
      }
      await remover.deleteThread("t");
      expect(await countsOf(dbName)).toEqual({ checkpoints: 1, values: 1, writes: 0 });
      expect(valuesOf(await writer.getTuple(threadConfig("kept")))).toEqual({ a: "kept" });
    });

    test("a graph whose thread was deleted under it is told, where it would go on without what it knew", async () => {
      const dbName = freshName();
      const saver = opened(dbName);
      const config = await put(saver, threadConfig("t"), checkpointOf({ a: 1, b: 1 }));
      await saver.deleteThread("t");
      const next = { ...checkpointOf({ a: 1, b: 2 }), channel_versions: { a: 1, b: 2 } };
      await expect(saver.put(config, next, metadataOf(1), { b: 2 })).rejects.toMatchObject({
        code: "unknown-thread",
        details: { threadId: "t" },
      });
      expect(await countsOf(dbName)).toEqual({ checkpoints: 0, values: 0, writes: 0 });
    });

    test("a graph whose thread was deleted under it brings nothing of it back, also where it changes everything", async () => {
      const dbName = freshName();
      const saver = opened(dbName);
      const config = await put(saver, threadConfig("t"), checkpointOf({ a: 1 }));
      await saver.deleteThread("t");
      const refused = { code: "unknown-thread", details: { threadId: "t" } };
      await expect(saver.putWrites(config, [["a", 2]], "task")).rejects.toMatchObject(refused);
      await expect(put(saver, config, checkpointOf({ a: 2 }, 2))).rejects.toMatchObject(refused);
      expect(await countsOf(dbName)).toEqual({ checkpoints: 0, values: 0, writes: 0 });
      // It may begin anew.
      expect(valuesOf(await saver.getTuple(await put(saver, threadConfig("t"), checkpointOf({ a: 3 }))))).toEqual({
        a: 3,
      });
    });

    test("a checkpoint that is deleted takes its writes with it, and its children keep what they have of it", async () => {
      const dbName = freshName();
      const saver = opened(dbName);
      const first = await put(saver, threadConfig("t"), checkpointOf({ a: 1, b: 1 }));
      const second = await saver.put(
        first,
        { ...checkpointOf({ a: 1, b: 2 }), channel_versions: { a: 1, b: 2 } },
        metadataOf(1),
        { b: 2 },
      );
      await saver.putWrites(first, [["a", 2]], "task");
      await saver.deleteCheckpoint(first);
      await saver.deleteCheckpoint(first);
      expect(await countsOf(dbName)).toMatchObject({ checkpoints: 1, writes: 0 });
      expect(valuesOf(await saver.getTuple(second))).toEqual({ a: 1, b: 2 });
      await expect(saver.deleteCheckpoint({})).rejects.toMatchObject({ code: "invalid-input" });
    });

    test("a thread whose name begins like another's is not deleted with it", async () => {
      const saver = opened();
      for (const thread of ["t", "t1", "t\u0000", "s"]) await put(saver, threadConfig(thread), checkpointOf({}));
      await saver.deleteThread("t");
      const left = (await listOf(saver.list({}))).map(({ config }) => config.configurable?.["thread_id"]);
      expect(left.toSorted()).toEqual(["s", "t\u0000", "t1"]);
    });

    test("names of prototypes are names like others", async () => {
      const saver = opened();
      const values = JSON.parse('{ "__proto__": "a", "constructor": "b", "toString": "c" }') as Record<string, string>;
      for (const thread of Object.keys(values)) {
        const config = await put(saver, threadConfig(thread, "__proto__"), checkpointOf(values));
        await saver.putWrites(config, [["__proto__", 1], ["constructor", 2], ["hasOwnProperty", 3]], "__proto__"); // prettier-ignore
        const tuple = await saver.getTuple(config);
        expect(Object.entries(valuesOf(tuple) ?? {}).toSorted()).toEqual(Object.entries(values).toSorted());
        expect(tuple?.pendingWrites).toEqual([
          ["__proto__", "__proto__", 1],
          ["__proto__", "constructor", 2],
          ["__proto__", "hasOwnProperty", 3],
        ]);
        const child = await put(saver, config, checkpointOf({}));
        const history = await saver.getDeltaChannelHistory({
          config: child,
          channels: ["__proto__", "hasOwnProperty"],
        });
        expect(Object.entries(history)).toEqual([
          ["__proto__", { seed: "a", writes: [["__proto__", "__proto__", 1]] }],
          ["hasOwnProperty", { writes: [["__proto__", "hasOwnProperty", 3]] }],
        ]);
      }
      expect(({} as Record<string, unknown>)["a"]).toBeUndefined();
    });

    test("the history of a channel is walked over many checkpoints, on its own branch only", async () => {
      const saver = opened();
      let config = await put(saver, threadConfig("t"), checkpointOf({ delta: ["seed"], other: 0 }));
      const expected: unknown[] = [];
      for (let step = 1; step <= 150; step++) {
        await saver.putWrites(config, [["delta", step], ["other", -step]], "task"); // prettier-ignore
        expected.push(["task", "delta", step]);
        const next = checkpointOf({ other: step }, step + 1);
        // A child that never got on.
        await put(saver, config, checkpointOf({ delta: ["stray"] }, step + 1));
        config = await put(saver, config, next);
      }
      const history = await saver.getDeltaChannelHistory({ config, channels: ["delta", "other", "none"] });
      expect(history["delta"]).toEqual({ seed: ["seed"], writes: expected });
      expect(history["other"]).toEqual({ seed: 149, writes: [["task", "other", -150]] });
      expect(history["none"]).toEqual({ writes: [] });
      expect(await saver.getDeltaChannelHistory({ config: {}, channels: ["a"] })).toEqual({ a: { writes: [] } });
    });

    test("the history of checkpoints that name each other as parents ends (L13)", async () => {
      const saver = opened();
      const at = (checkpoint_id: string) => ({ configurable: { thread_id: "t", checkpoint_id } });
      await put(saver, at("a"), checkpointOf({}, 1, "a"));
      await put(saver, at("d"), checkpointOf({}, 1, "b"));
      await put(saver, at("b"), checkpointOf({}, 1, "c"));
      await put(saver, at("c"), checkpointOf({}, 1, "d"));
      for (const id of ["a", "b", "c", "d"]) await saver.putWrites(at(id), [["x", id]], "task");
      const writesBefore = async (id: string) =>
        (await saver.getDeltaChannelHistory({ config: at(id), channels: ["x"] }))["x"]?.writes.map(
          ([, , value]) => value,
        );
      expect(await writesBefore("a")).toEqual([]);
      expect(await writesBefore("d")).toEqual(["b", "c"]);
    });

    const someId = nextId();
    /** LangGraph's own writes a text in place of what it cannot serialize. */
    class StrictSerializer extends JsonPlusSerializer {
      override async dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
        if (typeof value === "bigint") throw new TypeError("no");
        return super.dumpsTyped(value);
      }
    }
    const named = { configurable: { thread_id: "t", checkpoint_id: someId } };
    type Saver = ReturnType<typeof opened>;
    type WrongInput = [string, (saver: Saver) => Promise<unknown>];
    test.each<WrongInput>([
      ["thread_id", (saver) => put(saver, { configurable: { thread_id: 7 } }, checkpointOf({}))],
      ["thread_id", (saver) => put(saver, threadConfig(""), checkpointOf({}))],
      ["thread_id", (saver) => put(saver, {}, checkpointOf({}))],
      ["thread_id", (saver) => saver.getTuple({ configurable: { thread_id: ["t"] } })],
      ["thread_id", (saver) => saver.deleteThread("")],
      [
        "checkpoint_ns",
        (saver) => put(saver, { configurable: { thread_id: "t", checkpoint_ns: 0 } }, checkpointOf({})),
      ],
      [
        "checkpoint_id",
        (saver) => put(saver, { configurable: { thread_id: "t", checkpoint_id: {} } }, checkpointOf({})),
      ],
      ["checkpoint_id", (saver) => saver.putWrites(threadConfig("t"), [["a", 1]], "task")],
      ["checkpoint.id", (saver) => put(saver, threadConfig("t"), { ...checkpointOf({}), id: "" })],
      ["the version of channel a", (saver) => put(saver, threadConfig("t"), checkpointOf({ a: 1 }, NaN))],
      ["the value of channel a", (saver) => put(saver, threadConfig("t"), checkpointOf({ b: 1, a: 1n }))],
      ["the write to channel a", (saver) => saver.putWrites(named, [["b", 1], ["a", 1n]], "task")], // prettier-ignore
      ["taskPath", (saver) => saver.putWrites(named, [["a", 1]], "task", null as unknown as string)],
      ["a write's channel", (saver) => saver.putWrites(named, [[7 as unknown as string, 1]], "task")],
      ["taskId", (saver) => saver.putWrites(named, [["a", 1]], undefined as unknown as string)],
      ["limit", (saver) => listOf(saver.list({}, { limit: Number("x") }))],
      ["limit", (saver) => listOf(saver.list({}, { limit: null as never }))],
      ["limit", (saver) => listOf(saver.list({}, { limit: Symbol("5") as never }))],
      ["filter", (saver) => listOf(saver.list({}, { filter: null as never }))],
      ["filter", (saver) => listOf(saver.list({}, { filter: "source" as never }))],
      ["before", (saver) => listOf(saver.list({}, { before: "c" as never }))],
      ["options", (saver) => listOf(saver.list({}, null as never))],
      ["checkpoint", (saver) => saver.put(threadConfig("t"), undefined as never, {} as never, {})],
      ["metadata", (saver) => saver.put(threadConfig("t"), checkpointOf({}), null as never, {})],
      ["newVersions", (saver) => saver.put(threadConfig("t"), checkpointOf({}), {} as never, undefined as never)],
      ["metadata", (saver) => saver.put(threadConfig("t"), checkpointOf({}), [] as never, {})],
      ["metadata", (saver) => saver.put(threadConfig("t"), checkpointOf({}), new Map() as never, {})],
      ["checkpoint", (saver) => put(saver, threadConfig("t"), Object.assign(new Map(), checkpointOf({})) as never)],
      ["newVersions", (saver) => saver.put(threadConfig("t"), checkpointOf({}), metadataOf(0), [] as never)],
      ...[undefined, null, [], "1"].map((channel_versions): WrongInput => {
        const checkpoint = { ...checkpointOf({}), channel_versions } as never;
        return ["checkpoint.channel_versions", (saver) => saver.put(threadConfig("t"), checkpoint, metadataOf(0), {})];
      }),
      ...[null, [], "ab"].map((channel_values): WrongInput => {
        const checkpoint = { ...checkpointOf({}), channel_values } as never;
        return ["checkpoint.channel_values", (saver) => put(saver, threadConfig("t"), checkpoint)];
      }),
      ...[null, 7, "ab", {}].map((write): WrongInput => [
        "a write's channel",
        (saver) => saver.putWrites(named, [write] as never, "task"),
      ]),
      [
        "the checkpoint",
        (saver) => {
          saver.serde = { dumpsTyped: () => Promise.resolve(undefined as never), loadsTyped: () => undefined as never };
          return put(saver, threadConfig("t"), checkpointOf({}));
        },
      ],
      ["writes", (saver) => saver.putWrites(named, undefined as never, "task")],
      ["channels", (saver) => saver.getDeltaChannelHistory({ config: named, channels: "a" as never })],
    ])("a wrong %s is refused before anything is written", async (field, act) => {
      const dbName = freshName();
      await expect(act(opened(dbName, { serde: new StrictSerializer() }))).rejects.toMatchObject({
        name: "RunnerError",
        code: "invalid-input",
        details: { field },
      });
      await opened(dbName).getTuple(threadConfig("t"));
      expect(await countsOf(dbName)).toEqual({ checkpoints: 0, values: 0, writes: 0 });
    });

    test("another serializer is used for all that is stored, with the type that it gives", async () => {
      const dbName = freshName();
      const types: string[] = [];
      const serde = {
        dumpsTyped: async (value: unknown): Promise<[string, Uint8Array]> => {
          // A part of a large buffer.
          const buffer = new Uint8Array(100_000);
          const { written } = new TextEncoder().encodeInto(JSON.stringify([value]), buffer);
          return ["mine", buffer.subarray(0, written)];
        },
        loadsTyped: async (type: string, data: Uint8Array | string): Promise<unknown> => {
          types.push(type);
          return JSON.parse(new TextDecoder().decode(data as Uint8Array))[0];
        },
      };
      const saver = opened(dbName, { serde });
      const config = await put(saver, threadConfig("t"), checkpointOf({ a: 1 }));
      await saver.putWrites(config, [["a", 2]], "task");
      const tuple = await saver.getTuple(config);
      expect([valuesOf(tuple), tuple?.pendingWrites]).toEqual([{ a: 1 }, [["task", "a", 2]]]);
      expect(types).toEqual(["mine", "mine", "mine", "mine"]);
      const [stored] = await (await rawOf(dbName)).getAll("values");
      expect(storedBytes(stored?.value)?.buffer.byteLength).toBeLessThan(10 + sealLength());
      await expect(opened(dbName).getTuple(config)).rejects.toMatchObject({ code: "corrupt-record" });
    });

    test("storage that is switched off is told, and tried again at the next call (L10)", async () => {
      const saver = opened();
      const { open } = IDBFactory.prototype;
      onTestFinished(() => {
        IDBFactory.prototype.open = open;
      });
      IDBFactory.prototype.open = () => {
        throw new DOMException("The operation is insecure.", "SecurityError");
      };
      await expect(put(saver, threadConfig("t"), checkpointOf({}))).rejects.toMatchObject({
        code: "storage-unavailable",
      });
      IDBFactory.prototype.open = open;
      await put(saver, threadConfig("t"), checkpointOf({}));
    });
  });
}
