import { Observable } from "rxjs";
import { createServer, type ViteDevServer } from "vite";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { memoryHomesKey } from "../../../src/platform/names.js";
import { InMemoryAgentRunner, resetInMemoryStore } from "../../../src/runner/in-memory-agent-runner.js";
import { isSameDatabase } from "../../../src/run/epochs.js";
import { newMemoryHome, sharedMemoryHome } from "../../../src/runner/memory-home.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  framesUntil,
  gated,
  inputOf,
  makeMemoryRunner,
  replay,
  silent,
  stubborn,
  textOf,
} from "./kit.js";

const run = (runner: InMemoryAgentRunner, runId: string, agent = agentOf(counter(3))) =>
  collect(runner.run({ threadId: "t", agent, input: inputOf("t", runId) }));

test("two memories share no epoch: what a reader had of the one says nothing of the other (L2)", () => {
  const random = vi.spyOn(Math, "random");
  onTestFinished(() => random.mockRestore());
  const [one, other] = [0.25, 0.5].map((drawn) => {
    random.mockReturnValueOnce(drawn);
    return newMemoryHome().data.epoch;
  }) as [number, number];
  expect(isSameDatabase(one + 1, one + 2)).toBe(true);
  expect(isSameDatabase(one + 1, other + 1)).toBe(false);
});

/** Counts those that listen to a channel of this store. */
function countListeners(dbName: string): () => number {
  const home = sharedMemoryHome(dbName);
  const { openChannel } = home;
  let listeners = 0;
  const spy = vi.spyOn(home, "openChannel").mockImplementation((name) => {
    const channel = openChannel(name);
    const messages$ = new Observable<unknown>((subscriber) => {
      listeners++;
      subscriber.add(() => listeners--);
      return channel.messages$.subscribe(subscriber);
    });
    return { ...channel, messages$ };
  });
  onTestFinished(() => spy.mockRestore());
  return () => listeners;
}

describe("an in-memory runner hears the others while it has something to hear for (L15)", () => {
  const dbName = "hearing";

  test("an idle one does not, also after reads; one with a live run does, until it has ended", async () => {
    const listeners = countListeners(dbName);
    const runner = makeMemoryRunner({ dbName });
    await runner.opened;
    expect(listeners()).toBe(0);
    const live = run(runner, "r0", agentOf(silent));
    // From the call on: whoever claims the thread next must be answered.
    expect(listeners()).toBe(1);
    await vi.waitFor(async () => expect(await runner.getRunEvents("r0")).toHaveLength(2));
    expect(listeners()).toBe(1);
    await runner.stop({ threadId: "t", runId: "r0" });
    await live;
    await vi.waitFor(() => expect(listeners()).toBe(0));
    await Promise.all([runner.listThreads(), runner.listRuns("t"), replay(runner, "t")]);
    await vi.waitFor(() => expect(listeners()).toBe(0));
  });

  test("one that refuses a run, or that was asked for a run it has, lets go as well", async () => {
    const listeners = countListeners(dbName);
    const [one, other] = [makeMemoryRunner({ dbName }), makeMemoryRunner({ dbName })];
    const live = run(one, "r0", agentOf(silent));
    await vi.waitFor(async () => expect(await one.getRunEvents("r0")).toHaveLength(2));
    await expect(run(other, "r1")).rejects.toMatchObject({ code: "thread-busy" });
    expect(() => void run(one, "r2")).toThrow(expect.objectContaining({ code: "thread-busy" }));
    const again = run(one, "r0", agentOf(silent));
    await vi.waitFor(() => expect(listeners()).toBe(1));
    await other.stop({ threadId: "t", runId: "r0" });
    await Promise.all([live, again]);
    await vi.waitFor(() => expect(listeners()).toBe(0));
  });

  test("a follower and a watcher of the list do, until they leave; each is told what others run", async () => {
    const listeners = countListeners(dbName);
    const [one, other] = [makeMemoryRunner({ dbName }), makeMemoryRunner({ dbName })];
    const changes: unknown[] = [];
    const watching = other.watchThreads().subscribe((change) => changes.push(change));
    // The run lasts until the follower has begun to read it; a run that is over is shown as history.
    const { gate, letOn } = gated();
    const following = framesUntil(other, { threadId: "t", follow: true }, ({ type }) => {
      if (type !== "idle") letOn();
      return type === "settled";
    });
    expect(listeners()).toBe(1);
    await run(one, "r0", agentOf(counter(1, () => gate)));
    await vi.waitFor(() => expect(changes).toContainEqual(expect.objectContaining({ type: "changed" })));
    expect((await following).at(-1)).toMatchObject({ type: "settled", status: "finished" });
    await vi.waitFor(() => expect(listeners()).toBe(1));
    watching.unsubscribe();
    await vi.waitFor(() => expect(listeners()).toBe(0));
  });
});

describe("in-memory runners of one process", () => {
  test("are one: what one ran the others show, and a thread is busy for all", async () => {
    const [one, other] = [makeMemoryRunner(), makeMemoryRunner()];
    await run(one, "r0");
    expect(textOf(await replay(other, "t"))).toBe(counted(3));
    const live = run(one, "r1", agentOf(silent));
    await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(true));
    await expect(run(other, "r2")).rejects.toMatchObject({ code: "thread-busy", details: { runId: "r1" } });
    await other.stop({ threadId: "t" });
    await live;
  });

  test("neither deleting nor replacing the global splits the store", async () => {
    const one = makeMemoryRunner();
    await run(one, "r0");
    const scope = globalThis as unknown as Record<symbol, unknown>;
    expect(Reflect.deleteProperty(scope, memoryHomesKey)).toBe(false);
    expect(Reflect.set(scope, memoryHomesKey, {})).toBe(false);
    const other = makeMemoryRunner();
    await run(other, "r1");
    expect((await one.listRuns("t")).map(({ runId }) => runId)).toEqual(["r1", "r0"]);
  });

  test("of one name are one, of different names share nothing", async () => {
    const [one, same, other] = ["guarded", "guarded", "public"].map((dbName) => makeMemoryRunner({ dbName }));
    await run(one!, "r0");
    expect(textOf(await replay(same!, "t"))).toBe(counted(3));
    expect(await replay(other!, "t")).toEqual([]);
    expect(await other!.listThreads()).toEqual([]);
    const live = run(one!, "r1", agentOf(silent));
    await vi.waitFor(async () => expect(await same!.isRunning({ threadId: "t" })).toBe(true));
    expect(await other!.isRunning({ threadId: "t" })).toBe(false);
    expect(await other!.stop({ threadId: "t" })).toBe(false);
    await run(other!, "r1");
    await other!.destroy();
    expect((await one!.listRuns("t")).map(({ runId, status }) => `${runId} ${status}`)).toEqual([
      "r1 running",
      "r0 finished",
    ]);
    await resetInMemoryStore("public");
    expect(await one!.isRunning({ threadId: "t" })).toBe(true);
    await resetInMemoryStore("guarded");
    expect((await live).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  });

  test.each([{ dbName: "" }, { store: "own" as "isolated" }])("a store of no name or kind is none: %o", (options) => {
    expect(() => new InMemoryAgentRunner(options)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  });

  test("an isolated store is nobody else's", async () => {
    const shared = makeMemoryRunner();
    const isolated = [1, 2].map(() => new InMemoryAgentRunner({ store: "isolated" }));
    onTestFinished(async () => void (await Promise.all(isolated.map((runner) => runner.close()))));
    await run(shared, "r");
    for (const runner of isolated) expect(await replay(runner, "t")).toEqual([]);
    await run(isolated[0]!, "other");
    expect(await isolated[1]!.listThreads()).toEqual([]);
    expect((await shared.listRuns("t")).map(({ runId }) => runId)).toEqual(["r"]);
  });

  test("resetInMemoryStore ends what is live and forgets everything; the runners go on", async () => {
    const runner = makeMemoryRunner();
    await run(runner, "r0");
    const live = run(runner, "r1", stubborn());
    await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
    await resetInMemoryStore();
    expect((await live).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
    expect(await runner.listThreads()).toEqual([]);
    expect(await replay(runner, "t")).toEqual([]);
    expect(textOf(await run(runner, "r0"))).toBe(counted(3));
    expect((await runner.listRuns("t")).map(({ runId }) => runId)).toEqual(["r0"]);
  });

  test("resetInMemoryStore forgets what waits behind a live run, before that one ends", async () => {
    const runner = makeMemoryRunner();
    const live = run(runner, "live", stubborn());
    await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
    const outbox = await runner.outbox.get();
    const request = { threadId: "t", agentId: "a", runId: "waits", since: 0, kind: "run", request: {} } as const;
    expect(await outbox.add(request, inputOf("t", "waits"))).toBe("waits");
    const atEnd = live.then(() => outbox.store.waitingRuns("t"));
    await resetInMemoryStore();
    expect(await atEnd).toEqual([]);
    expect(await runner.waiting.list()).toEqual([]);
  });
});

describe("hot reload in a Vite server", () => {
  interface Page {
    readonly runner: InMemoryAgentRunner;
  }
  const PAGE = "/page.ts";

  /** A module of somebody's app, served as often as it is edited. */
  async function serve(): Promise<{ server: ViteDevServer; load: () => Promise<Page> }> {
    const source = new URL("../../../src/index.ts", import.meta.url).pathname;
    const server = await createServer({
      configFile: false,
      root: new URL("../../..", import.meta.url).pathname,
      logLevel: "error",
      server: { middlewareMode: true, ws: false, watch: null },
      appType: "custom",
      optimizeDeps: { noDiscovery: true },
      plugins: [
        {
          name: "page",
          resolveId: (id) => (id === PAGE ? id : undefined),
          load: (id) =>
            id === PAGE
              ? `import { InMemoryAgentRunner } from ${JSON.stringify(source)};
                 export const runner = new InMemoryAgentRunner({ stopGraceMs: 50 });`
              : undefined,
        },
      ],
    });
    onTestFinished(() => server.close());
    return { server, load: () => server.ssrLoadModule(PAGE) as unknown as Promise<Page> };
  }

  test("history is back, and a live run goes on: followed, busy for others, stopped from the new code", async () => {
    const { server, load } = await serve();
    const before = (await load()).runner;
    onTestFinished(() => before.close());
    await run(before, "r0");
    const live = run(before, "r1", agentOf(silent));
    await vi.waitFor(async () => expect(await before.getRunEvents("r1")).toHaveLength(2));

    server.moduleGraph.invalidateAll();
    const after = (await load()).runner;
    onTestFinished(() => after.destroy());
    expect(after.constructor).not.toBe(before.constructor);
    expect((await after.listRuns("t")).map(({ runId, status }) => `${runId} ${status}`)).toEqual([
      "r1 running",
      "r0 finished",
    ]);
    await expect(run(after, "r2")).rejects.toMatchObject({ code: "thread-busy", details: { runId: "r1" } });
    const following = collect(after.connect({ threadId: "t" }));
    expect(await after.stop({ threadId: "t", runId: "r1" })).toBe(true);
    expect((await live).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
    expect((await following).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
    expect(textOf(await run(after, "r2"))).toBe(counted(3));
    expect(textOf(await replay(before, "t"))).toBe(counted(3) + counted(3));
  });
});
