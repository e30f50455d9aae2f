import { forceCloseDatabase } from "fake-indexeddb";
import { deleteDB } from "idb";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { ThreadRun } from "../../../src/client/thread-run.js";
import type { RuntimeStatus, ThreadChange } from "../../../src/wire/shapes.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, collect, counted, counter, freshDb, inputOf, makeRunner, user } from "../runner/kit.js";
import { answerOf } from "./kit.js";

function openTab(dbName: string): RuntimeConnection {
  const host = serveRuntime({ agents: { counter: agentOf(counter(3)) }, dbName, stopGraceMs: 50 });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  return runtime;
}

/** What a tab is told of its thread, of all threads, and of its host. */
function told(runtime: RuntimeConnection) {
  const changes: ThreadChange[] = [];
  const seen: { run?: ThreadRun; status?: RuntimeStatus } = {};
  const agent = runtime.agent("counter", { threadId: "t" });
  agent.run$.subscribe((run) => (seen.run = run));
  runtime.status$.subscribe((status) => (seen.status = status));
  const watching = runtime.threads.watch().subscribe((change) => changes.push(change));
  onTestFinished(() => watching.unsubscribe());
  onTestFinished(agent.follow());
  return { agent, changes, seen };
}

const error = { code: "storage-deleted", message: expect.stringContaining("was deleted") };

/** Less than the time after which an idle follower looks by itself, and more than it takes on a loaded machine. */
const SOON = { timeout: 8_000 };

test("a database that is deleted while nobody runs is told to followers and watchers of every host, with the cause (L2, L10)", async () => {
  const dbName = freshDb();
  const tabs = [openTab(dbName), openTab(dbName)].map(told);
  const [{ agent }] = tabs as [ReturnType<typeof told>];
  agent.addMessage(user("u"));
  await agent.runAgent();
  for (const tab of tabs) {
    await vi.waitFor(() => expect(answerOf(tab.agent)).toBe(counted(3)));
    await vi.waitFor(() => expect(tab.changes.at(-1)).toMatchObject({ type: "changed" }));
  }

  await deleteDB(dbName);
  for (const tab of tabs) {
    await vi.waitFor(() => {
      expect(tab.agent.messages).toEqual([]);
      expect(tab.seen.run).toMatchObject({ is: "idle", gone: error });
      expect(tab.changes.find(({ type }) => type === "anew")).toMatchObject({ error });
      expect(tab.seen.status).toMatchObject({ is: "connected", error });
    }, SOON);
  }

  agent.addMessage(user("next"));
  await agent.runAgent();
  for (const tab of tabs) {
    await vi.waitFor(() => expect(tab.agent.messages.map(({ id }) => id)).toEqual(["next", expect.any(String)]), SOON);
    await vi.waitFor(() => expect(tab.seen.run).toMatchObject({ last: { status: "finished" } }));
    expect(tab.seen.run).not.toHaveProperty("gone");
  }
});

test("a thread that is deleted alone is told with its own cause", async () => {
  const runtime = openTab(freshDb());
  const tab = told(runtime);
  const other = runtime.agent("counter", { threadId: "t" });
  other.addMessage(user("u"));
  await other.runAgent();
  await vi.waitFor(() => expect(tab.seen.run).toMatchObject({ is: "idle", last: { status: "finished" } }));
  await runtime.threads.delete("t");
  const gone = { code: "unknown-thread", message: expect.stringContaining('"t"') };
  await vi.waitFor(() => expect(tab.seen.run).toMatchObject({ is: "idle", gone }), SOON);
  await vi.waitFor(() => expect(tab.agent.messages).toEqual([]));
  expect(tab.seen.status).not.toHaveProperty("error");
});

/** Connections that work on the database, as they come. */
function connectionsOf(dbName: string): ReadonlySet<IDBDatabase> {
  const found = new Set<IDBDatabase>();
  const { transaction } = IDBDatabase.prototype;
  const spy = vi.spyOn(IDBDatabase.prototype, "transaction").mockImplementation(function (
    this: IDBDatabase,
    ...request
  ) {
    if (this.name === dbName) found.add(this);
    return transaction.apply(this, request);
  });
  onTestFinished(() => spy.mockRestore());
  return found;
}

describe("a connection that is closed by force", () => {
  async function fallen(meanwhile: (dbName: string) => Promise<unknown>) {
    const dbName = freshDb();
    const connections = connectionsOf(dbName);
    const runner = makeRunner({ dbName });
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", "r") }));
    const changes: ThreadChange[] = [];
    const deleted = vi.fn();
    runner.watchThreads().subscribe((change) => changes.push(change));
    runner.deleted$.subscribe(deleted);
    const [connection] = connections;
    // As a browser that clears a site's data does it: nobody is asked before.
    connection!.close();
    await meanwhile(dbName);
    forceCloseDatabase(connection as never);
    await vi.waitFor(() => expect(changes.at(-1)?.type).toBe("anew"), SOON);
    return { runner, changes, deleted };
  }

  test("with the database is told as its deletion", async () => {
    const { runner, changes, deleted } = await fallen((dbName) => deleteDB(dbName));
    expect(changes).toMatchObject([{ type: "anew", error }]);
    expect(deleted).toHaveBeenCalledOnce();
    expect(await runner.getThreadMessages("t")).toEqual([]);
  });

  test("without it is told as no deletion, and costs nothing", async () => {
    const { runner, changes, deleted } = await fallen(async () => undefined);
    expect(changes).toEqual([{ type: "anew" }]);
    expect(deleted).not.toHaveBeenCalled();
    expect(await runner.getThreadMessages("t")).toHaveLength(2);
  });
});
