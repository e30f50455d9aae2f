import { deleteDB } from "idb";
import { firstValueFrom } from "rxjs";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { natsSpace } from "../../../src/sync/nats/nats-space.js";
import type { SpaceFrame } from "../../../src/sync/space.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, counter, fastClock, freshDb } from "../runner/kit.js";
import { device, eventually, inStep, MemoryServer, passes, say, started, withKey } from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/*
 * What keeps a device in step begins anew: when its database is unlocked, when it takes another id, after a failure.
 */

/** Once it is closed it never connects again: each read ends at once. */
class ClosingSpace extends MemorySpace {
  isClosed = false;
  reads = 0;

  override async *read(...of: Parameters<MemorySpace["read"]>): AsyncGenerator<SpaceFrame, void> {
    this.reads++;
    if (!this.isClosed) return yield* super.read(...of);
    // A test that ran in microtasks alone would never end.
    if (this.reads > 1_000) await systemClock.after(Infinity, of[1]);
  }

  override async close(): Promise<void> {
    this.isClosed = true;
    await super.close();
  }
}

test("a space that was closed is read now and then, and keeps nobody busy (L13)", async () => {
  const space = new ClosingSpace(new MemoryServer());
  await space.close();
  started({ space: () => space, device: "Phone" });
  await eventually(() => expect(space.reads).toBeGreaterThan(0));
  await passes(50);
  expect(space.reads).toBeLessThan(10);
});

test("a Space object stays open while the database is locked, and is closed with the runner", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(1)));
  const encryption = new Encryption();
  const space = new ClosingSpace(server);
  const { runner, over, isInStep, tells } = started({ space, device: "Laptop" }, { encryption });
  await encryption.unlock(fastKey);
  await isInStep();
  await encryption.lock();
  await tells({ is: "offline", message: expect.stringContaining("locked") });
  await say(phone, "t", "r2", agentOf(counter(1)));
  await encryption.unlock(fastKey);
  await isInStep();
  const runs = async () => (await runner.listRuns("t")).map(({ runId }) => runId);
  await eventually(async () => expect(await runs()).toEqual(["r2", "r1"]));
  expect(space.isClosed).toBe(false);
  await runner.close();
  await over;
  expect(space.isClosed).toBe(true);
});

test.each([false, true])("what fails when the space is made is tried again (encrypted: %s)", async (isEncrypted) => {
  const server = new MemoryServer();
  let tries = 0;
  const space = (): MemorySpace => {
    if (++tries <= 2) throw new Error("planted");
    return new MemorySpace(server);
  };
  const its = { clock: fastClock(20), ...(isEncrypted && withKey()) };
  const { told, isInStep } = started({ space, device: "Phone" }, its);
  await isInStep();
  expect(told[0]).toEqual({ is: "offline", message: "planted", isCurrent: false, devices: [] });
  expect(tries).toBe(3);
});

test("options of a space that are not valid are refused, and not tried again", async () => {
  let tries = 0;
  const space = () => natsSpace({ servers: [`ws://x/${++tries}`], space: "no name" });
  const { over, tells } = started({ space, device: "Phone" }, { clock: fastClock(20) });
  await expect(over).rejects.toMatchObject({ code: "invalid-input" });
  await tells({ is: "refused", message: expect.stringContaining("space") });
  expect(tries).toBe(1);
});

test("a deletion that was made since the database was deleted is told after the next restart", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(1)));
  const encryption = new Encryption();
  const dbName = freshDb();
  const space = new MemorySpace(server);
  const { runner, isInStep, tells } = started({ space, device: "Laptop" }, { encryption, dbName });
  await encryption.unlock(fastKey);
  const has = () => eventually(async () => expect(await runner.getThread("t")).toMatchObject({ runCount: 1 }));
  await has();
  const deleted = firstValueFrom(runner.deleted$);
  await deleteDB(dbName);
  await deleted;
  await encryption.unlock(fastKey);
  await isInStep();
  await has();
  space.connect(false);
  expect(await runner.deleteThread("t")).toBe(true);
  await eventually(async () => expect(await runner.getThread("t")).toBeUndefined());
  await encryption.lock();
  await tells({ message: expect.stringContaining("locked") });
  await encryption.unlock(fastKey);
  space.connect(true);
  await isInStep();
  await eventually(async () => expect(await phone.runner.getThread("t")).toBeUndefined());
});
