import { Subject, throwError } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime, type ThreadsApi } from "../../../../src/client/connect-runtime.js";
import { RuntimeStores, storesOf } from "../../../../src/client/store/runtime-stores.js";
import { ThreadListStore, type ThreadListOptions } from "../../../../src/client/store/thread-list-store.js";
import { FrontendTools } from "../../../../src/client/tools/frontend-tools.js";
import { RunnerError } from "../../../../src/run/errors.js";
import { byPlace } from "../../../../src/run/thread-order.js";
import type { ThreadChange, ThreadListQuery, ThreadSummary } from "../../../../src/wire/shapes.js";
import { serveRuntime } from "../../../../src/worker/serve-runtime.js";
import { agentOf, collect, counter, inputOf, makeRunner } from "../../runner/kit.js";

function host() {
  const runner = makeRunner();
  const served = serveRuntime({ runner, agents: { counter: agentOf(counter(1)), other: agentOf(counter(1)) } });
  const runtime = connectRuntime({ hosts: { page: async () => served.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await served.close();
  });
  const run = (threadId: string, agentId = "counter") =>
    collect(
      runtime.runner().run({ threadId, agent: { agentId }, input: inputOf(threadId, `${threadId}-${Math.random()}`) }),
    );
  const open = (options?: ThreadListOptions) => {
    const store = new ThreadListStore(runtime, options);
    const stop = store.subscribe(() => undefined);
    onTestFinished(stop);
    return { store, stop, ids: () => store.getSnapshot().threads.map(({ threadId }) => threadId) };
  };
  return { runner, runtime, run, open };
}

test("an empty list is ready; threads come, change, are archived and deleted", async () => {
  const { runtime, run, open } = host();
  const { store, ids } = open();
  expect(store.getSnapshot().status).toBe("loading");
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", threads: [], hasMore: false }));
  await run("a");
  await run("b");
  await vi.waitFor(() => expect(ids()).toEqual(["b", "a"]));
  await runtime.threads.rename("a", "first");
  await vi.waitFor(() => expect(store.getSnapshot().threads.map(({ title }) => title)).toContain("first"));
  const archive = open({ archived: true });
  await vi.waitFor(() => expect(archive.store.getSnapshot().status).toBe("ready"));
  await runtime.threads.archive("a");
  await vi.waitFor(() => expect([ids(), archive.ids()]).toEqual([["b"], ["a"]]));
  await runtime.threads.archive("a", false);
  await vi.waitFor(() => expect([[...ids()].sort(), archive.ids()]).toEqual([["a", "b"], []]));
  await runtime.threads.delete("b");
  await vi.waitFor(() => expect(ids()).toEqual(["a"]));
});

test("pages: older threads come where they are asked for, what changes meanwhile is there once", async () => {
  const { run, open } = host();
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) await run(name);
  const { store, ids } = open({ limit: 2 });
  await vi.waitFor(() => expect(store.getSnapshot().status).toBe("ready"));
  expect(ids()).toEqual(["e", "d"]);
  const loading = store.loadMore();
  expect(store.getSnapshot().isLoadingMore).toBe(true);
  await Promise.all([loading, store.loadMore(), run("c")]);
  await vi.waitFor(() => expect(ids()[0]).toBe("c"));
  while (store.getSnapshot().hasMore) await store.loadMore();
  await vi.waitFor(() => expect(ids()).toEqual(["c", "e", "d", "b", "a"]));
  await store.loadMore();
  expect(store.getSnapshot()).toMatchObject({ hasMore: false, isLoadingMore: false });
});

test("a thread of the part that was not read does not come into the middle of the list", async () => {
  const { run, open, runtime } = host();
  for (const name of ["a", "b", "c"]) await run(name);
  const { store, ids } = open({ limit: 2 });
  await vi.waitFor(() => expect(ids()).toEqual(["c", "b"]));
  await runtime.threads.pin("a");
  await runtime.threads.pin("b");
  await vi.waitFor(() => expect(store.getSnapshot().threads.at(-1)).toMatchObject({ threadId: "b", pinned: true }));
  expect(ids().slice(0, 2)).toEqual(["c", "b"]);
});

test("one agent's threads alone", async () => {
  const { run, open } = host();
  const { ids } = open({ agentId: "other" });
  await run("a");
  await run("b", "other");
  await run("c", "other");
  await vi.waitFor(() => expect(ids()).toEqual(["c", "b"]));
});

test("a list that cannot be read says why, and is read again", async () => {
  const { runner, run, open } = host();
  await run("a");
  const list = vi.spyOn(runner, "listThreads").mockRejectedValue(new RunnerError("storage-lost"));
  const { store, ids } = open();
  await vi.waitFor(() =>
    expect(store.getSnapshot()).toMatchObject({ status: "failed", error: { code: "storage-lost" } }),
  );
  list.mockRestore();
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", error: undefined }));
  expect(ids()).toEqual(["a"]);
});

test("stores are shared as long as somebody holds them", async () => {
  const { runtime } = host();
  const stores = new RuntimeStores(runtime);
  const thread = stores.thread({ threadId: "t", agentId: "counter" });
  expect(stores.thread({ threadId: "t", agentId: "counter" })).toBe(thread);
  expect(stores.thread({ threadId: "t", agentId: "counter", messageLimit: 5 })).not.toBe(thread);
  expect(stores.thread({ threadId: "u", agentId: "counter" })).not.toBe(thread);
  const tools = new FrontendTools();
  const withTools = stores.thread({ threadId: "t", agentId: "counter", tools });
  expect(withTools).not.toBe(thread);
  expect(stores.thread({ threadId: "t", agentId: "counter", tools })).toBe(withTools);
  expect(stores.thread({ threadId: "t", agentId: "counter", tools: stores.tools })).toBe(thread);
  const list = stores.threadList();
  expect(stores.threadList({ archived: false })).toBe(list);
  expect(stores.threadList({ archived: true })).not.toBe(list);
});

test("a function connects once for all that show its threads, and again when its connection has been closed", async () => {
  const connect = vi.fn(() => host().runtime);
  const stores = storesOf(connect);
  expect(storesOf(connect)).toBe(stores);
  expect(connect).toHaveBeenCalledTimes(1);
  await stores.runtime.close();
  const next = storesOf(connect);
  expect(next.runtime).not.toBe(stores.runtime);
  expect(storesOf(connect)).toBe(next);
  expect(connect).toHaveBeenCalledTimes(2);
  expect(storesOf(next.runtime)).toBe(storesOf(next.runtime));
});

describe("pages and changes", () => {
  const summary = (threadId: string, updatedAt: number, title = threadId): ThreadSummary => ({
    threadId,
    title,
    createdAt: 0,
    updatedAt,
    runCount: 1,
    archived: false,
    pinned: false,
  });

  /** A list of two threads per page; `meanwhile` is called while a page is on its way. */
  function listing(all: ThreadSummary[], meanwhile = (_n: number): void => undefined) {
    const changes$ = new Subject<ThreadChange>();
    let n = 0;
    const list = async ({ before, limit = 50 }: ThreadListQuery = {}) => {
      const page = all.filter((it) => typeof before !== "object" || byPlace(before, it) < 0).slice(0, limit);
      meanwhile(n++);
      return page;
    };
    const threads = { list, watch: () => changes$ } as unknown as ThreadsApi;
    const store = new ThreadListStore({ threads }, { limit: 2 });
    onTestFinished(store.subscribe(() => undefined));
    const titles = () => store.getSnapshot().threads.map(({ title }) => title);
    return { store, changes$, titles };
  }

  test("threads of one millisecond are all there", async () => {
    const { store, titles } = listing(["d", "c", "b", "a"].map((id) => summary(id, 5)).concat(summary("e", 4)));
    await vi.waitFor(() => expect(titles()).toEqual(["d", "c"]));
    while (store.getSnapshot().hasMore) await store.loadMore();
    expect(titles()).toEqual(["d", "c", "b", "a", "e"]);
  });

  test("a list that is read again, by the next host, keeps the pages that were loaded", async () => {
    const all = ["a", "b", "c", "d", "e", "f"].map((id, n) => summary(id, 9 - n));
    const { store, titles, changes$ } = listing(all);
    await vi.waitFor(() => expect(titles()).toEqual(["a", "b"]));
    await store.loadMore();
    all.splice(1, 1);
    changes$.next({ type: "anew" });
    await vi.waitFor(() => expect(titles()).not.toContain("b"));
    expect(titles().slice(0, 3)).toEqual(["a", "c", "d"]);
    while (store.getSnapshot().hasMore) await store.loadMore();
    all.splice(0, 1);
    changes$.next({ type: "anew" });
    await vi.waitFor(() => expect(titles()).toEqual(["c", "d", "e", "f"]));
    expect(store.getSnapshot().hasMore).toBe(false);
  });

  test("a thread that is renamed while its page is read has its new name", async () => {
    const all = [summary("a", 4), summary("b", 3), summary("c", 2), summary("d", 1)];
    const { store, titles, changes$ } = listing(all, (n) => {
      if (n !== 1) return;
      all.splice(2, 2, summary("c", 2, "renamed"));
      changes$.next({ type: "changed", thread: all[2]! });
      changes$.next({ type: "deleted", threadId: "d" });
    });
    await vi.waitFor(() => expect(titles()).toEqual(["a", "b"]));
    await store.loadMore();
    expect(titles()).toEqual(["a", "b", "renamed"]);
    while (store.getSnapshot().hasMore) await store.loadMore();
    expect(titles()).toEqual(["a", "b", "renamed"]);
  });

  test("where nothing is allowed, one request after the other is made, ever less often", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const asked: string[] = [];
    const refuse = (what: string) => {
      asked.push(what);
      return new RunnerError("refused");
    };
    const threads = {
      list: async () => Promise.reject(refuse("list")),
      watch: () => throwError(() => refuse("watch")),
    } as unknown as ThreadsApi;
    const store = new ThreadListStore({ threads });
    onTestFinished(store.subscribe(() => undefined));
    // 0, 1, 3, 7, 15, 31, 61 s
    await vi.advanceTimersByTimeAsync(62_000);
    expect(asked).toEqual(Array.from({ length: 7 }, () => ["watch", "list"]).flat());
    expect(store.getSnapshot()).toMatchObject({ status: "failed", error: { code: "refused" } });
  });

  test("where changes are not told, the list is read from time to time, and then they are", async () => {
    let isAllowed = false;
    let lists = 0;
    const changes$ = new Subject<ThreadChange>();
    const threads = {
      list: async () => (lists++, []),
      watch: () => (isAllowed ? changes$ : throwError(() => new RunnerError("refused"))),
    } as unknown as ThreadsApi;
    const store = new ThreadListStore({ threads });
    onTestFinished(store.subscribe(() => undefined));
    await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", error: { code: "refused" } }));
    isAllowed = true;
    await vi.waitFor(() => expect(lists).toBe(2));
    changes$.next({ type: "changed", thread: summary("a", 1) });
    await vi.waitFor(() =>
      expect(store.getSnapshot()).toMatchObject({ error: undefined, threads: [{ threadId: "a" }] }),
    );
  });
});
