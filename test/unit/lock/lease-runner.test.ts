import { expect, onTestFinished, test, vi } from "vitest";
import { EventType } from "@ag-ui/client";
import { leaseLocks } from "../../../src/lock/lease-locks.js";
import type { Channel, OpenChannel } from "../../../src/platform/channel.js";
import type { Clock } from "../../../src/platform/clock.js";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";
import { leaseDbName } from "../../../src/platform/names.js";
import type { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  fastClock,
  freshDb,
  inputOf,
  makeRunner,
  rebuild,
  replay,
  silent,
} from "../runner/kit.js";

interface LeaseHost {
  readonly runner: IndexedDBAgentRunner;
  /** It neither hears nor says anything from now on, and its timers stand still; its agents' code goes on. */
  freeze(): void;
}

/** A host without Web Locks, in a world that is twenty times as fast. */
function leaseHost(dbName: string, openChannel: OpenChannel): LeaseHost {
  const fast = fastClock(20);
  let frozen = false;
  const channels: Channel[] = [];
  const clock: Clock = {
    ...fast,
    after: async (ms, signal) => {
      await fast.after(ms, signal);
      if (frozen && signal?.aborted !== true) await new Promise(() => undefined);
    },
  };
  const options = {
    dbName,
    clock,
    openChannel: (name: string) => {
      const channel = openChannel(name);
      channels.push(channel);
      return channel;
    },
  };
  const locks = leaseLocks(options);
  // The runner lets go first: hooks run from the last one back.
  onTestFinished(() => locks.close());
  return {
    runner: makeRunner({ ...options, locks, stopGraceMs: 50 }),
    freeze: () => {
      frozen = true;
      for (const channel of channels) channel.close();
    },
  };
}

function twoHosts(): [LeaseHost, LeaseHost] {
  const [dbName, open] = [freshDb(), inProcessChannels()];
  return [leaseHost(dbName, open), leaseHost(dbName, open)];
}

test("without Web Locks a run of another host is refused at once, and the next run is not (L5)", async () => {
  const [{ runner: one }, { runner: other }] = twoHosts();
  const first = collect(one.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r1") }));
  await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(true));
  const refused = collect(other.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r2") }));
  await expect(refused).rejects.toMatchObject({
    code: "thread-busy",
    message: "Thread already running",
    details: { runId: "r1" },
  });
  await other.stop({ threadId: "t", runId: "r1" });
  expect((await first).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  await collect(other.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", "r3") }));
  expect((await rebuild(await replay(one, "t"))).messages.at(-1)).toMatchObject({ content: counted(3) });
});

test("without Web Locks a dead host's run is settled as broken, and what it still does is not written (L6, L9)", async () => {
  const [dying, { runner: survivor }] = twoHosts();
  let thaw!: () => void;
  const thawed = new Promise<void>((resolve) => (thaw = resolve));
  const cutOff = collect(
    dying.runner.run({
      threadId: "t",
      agent: agentOf(counter(20, (step) => (step === 10 ? thawed : undefined))),
      input: inputOf("t", "r"),
    }),
  );
  await vi.waitFor(async () => expect(await survivor.isRunning({ threadId: "t" })).toBe(true));
  const busy = collect(survivor.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "early") }));
  await expect(busy).rejects.toMatchObject({ code: "thread-busy" });
  dying.freeze();
  await vi.waitFor(async () => expect(await survivor.isRunning({ threadId: "t" })).toBe(false));
  await collect(survivor.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
  thaw();
  expect((await cutOff).at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "RUN_BROKEN" });
  const { messages } = await rebuild(await replay(survivor, "t"));
  expect(messages.map(({ id, content }) => [id, content])).toEqual([
    ["r-u", "from r-u"],
    ["r-a", counted(10)],
    ["next-u", "from next-u"],
    ["next-a", counted(2)],
  ]);
});

test("without Web Locks the leases of a runner that closed are gone (L9)", async () => {
  const [{ runner }] = twoHosts();
  void collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") })).catch(() => undefined);
  await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
  await runner.close();
  const db = await new Promise<IDBDatabase>((resolve) => {
    const opening = indexedDB.open(leaseDbName(runner.dbName));
    opening.onsuccess = () => resolve(opening.result);
  });
  onTestFinished(() => db.close());
  const left = await new Promise((resolve) => {
    const counting = db.transaction("leases").objectStore("leases").count();
    counting.onsuccess = () => resolve(counting.result);
  });
  expect(left).toBe(0);
});
