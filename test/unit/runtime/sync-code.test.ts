import { filter, firstValueFrom } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { freshDb, quiet } from "../runner/kit.js";
import { MemoryServer, MemorySpace } from "../sync/memory-space.js";

vi.mock(import("../../../src/sync/start.js"), async (original) => {
  const real = await original();
  const startSync = vi.fn(real.startSync);
  startSync.mockRejectedValueOnce(new RunnerError("outdated", {}, { message: "Part of the code could not be loaded" }));
  return { ...real, startSync };
});

test("code that cannot be loaded at an offline start is loaded once there is a network: devices are in step", async () => {
  const listeners: (() => void)[] = [];
  const network = { isOnline: true, onChange: (listener: () => void) => void listeners.push(listener) };
  const space = new MemorySpace(new MemoryServer());
  const host = serveRuntime({
    dbName: freshDb(),
    agents: {},
    sync: { space, device: "Phone" },
    network,
    logger: quiet,
  });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    runtime.close();
    await host.close();
  });
  const synced = (is: string) =>
    firstValueFrom(runtime.status$.pipe(filter((status) => "sync" in status && status.sync?.is === is)));
  expect(await synced("offline")).toMatchObject({ sync: { message: "Part of the code could not be loaded" } });
  listeners.forEach((changed) => changed());
  expect(await synced("online")).toMatchObject({ sync: { is: "online" } });
});
