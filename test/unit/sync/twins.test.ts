import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { SyncDatabase } from "../../../src/sync/sync-database.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, counter, fastClock, freshDb, gated, quiet } from "../runner/kit.js";
import { until } from "../waiting/kit.js";
import { device, eventually } from "./kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";
import { ask, runOf, type Tab } from "./servers-kit.js";

/*
 * Two devices with one id: a profile was copied, or restored on another machine.
 */

/** The name of a database whose device has the id `one`. */
async function ofDeviceOne(): Promise<string> {
  const dbName = freshDb();
  const database = new SyncDatabase(dbName, systemClock);
  await database.prepare();
  await database.device("one");
  await database.close();
  return dbName;
}

test(
  "of two devices with one id one takes another one, and a run of either is on both, once",
  { timeout: 60_000 },
  async () => {
    const server = new MemoryServer();
    const { gate, letOn } = gated();
    const agents = { slow: agentOf(counter(3, (step) => (step === 1 ? gate : undefined))) };
    const make = async (name: string): Promise<Tab> => {
      const dbName = await ofDeviceOne();
      const sync = { space: () => new MemorySpace(server), device: name };
      const host = serveRuntime({ dbName, agents, sync, logger: quiet });
      const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
      onTestFinished(async () => {
        await runtime.close();
        await host.close();
      });
      return runtime;
    };
    const [first, second] = [await make("First"), await make("Second")];
    const statusOf = (runtime: Tab) => {
      let last: { readonly ids: readonly string[]; readonly isCurrent: boolean } = { ids: [], isCurrent: false };
      const watching = runtime.status$.subscribe((status) => {
        if (!("sync" in status) || status.sync === undefined) return;
        last = { ids: status.sync.devices.map(({ id }) => id), isCurrent: status.sync.isCurrent };
      });
      onTestFinished(() => watching.unsubscribe());
      return () => last;
    };
    const [ofFirst, ofSecond] = [statusOf(first), statusOf(second)];
    for (const status of [ofFirst, ofSecond]) {
      await until(() => expect(status()).toMatchObject({ isCurrent: true, ids: { length: 2 } }));
      expect(new Set(status().ids).size).toBe(2);
      expect(status().ids).toContain("one");
    }
    const running = ask(first, "slow", "t", "r1");
    await until(async () => expect(await runOf(second, "t", "r1")).toMatchObject({ status: "running" }));
    await expect(ask(second, "slow", "t", "r2")).rejects.toMatchObject({ code: "thread-busy" });
    letOn();
    await running;
    await until(async () => expect(await runOf(second, "t", "r1")).toMatchObject({ status: "finished" }));
    expect(server.entries.length).toBeLessThan(20);
  },
);

test("a device that cannot take another id at once does so later", async () => {
  const server = new MemoryServer();
  const make = async (name: string) => device(server, name, { dbName: await ofDeviceOne(), clock: fastClock(50) });
  const devices = [await make("First"), await make("Second")];
  for (const { database } of devices) vi.spyOn(database, "set").mockRejectedValueOnce(new Error("planted"));
  await eventually(async () => {
    const ids = await Promise.all(devices.map(({ database }) => database.device("made")));
    expect(new Set(ids).size).toBe(2);
  });
});
