import { NEVER } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { EventType } from "@ag-ui/client";
import type { Channel, OpenChannel } from "../../../src/platform/channel.js";
import type { Clock } from "../../../src/platform/clock.js";
import { contextLocks } from "../../../src/platform/context-locks.js";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";
import { formerLeaseDbName, hostChannelName, livesChannelName } from "../../../src/platform/names.js";
import type { IndexedDBAgentRunner, IndexedDBAgentRunnerOptions } from "../../../src/runner/indexeddb-agent-runner.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  fastClock,
  framesUntil,
  freshDb,
  gated,
  inputOf,
  makeRunner,
  rebuild,
  replay,
  silent,
} from "../runner/kit.js";

interface Host {
  readonly runner: IndexedDBAgentRunner;
  /** It neither hears nor says anything from now on, and its timers stand still; its agents' code goes on. */
  freeze(): void;
}

/** A host without Web Locks, in a world that is twenty times as fast. */
function hostOn(dbName: string, openChannel: OpenChannel, given: IndexedDBAgentRunnerOptions = {}): Host {
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
  return {
    runner: makeRunner({ ...options, locks: contextLocks(options), stopGraceMs: 50, ...given }),
    freeze: () => {
      frozen = true;
      for (const channel of channels) channel.close();
    },
  };
}

function twoHosts(given?: IndexedDBAgentRunnerOptions): readonly [Host, Host] {
  const [dbName, open] = [freshDb(), inProcessChannels()];
  return [hostOn(dbName, open, given), hostOn(dbName, open, given)];
}

const isRunning = ({ runner }: Host): Promise<void> =>
  vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
const isFree = ({ runner }: Host): Promise<void> =>
  vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(false));

const run = ({ runner }: Host, runId: string, work = counter(2)) =>
  collect(runner.run({ threadId: "t", agent: agentOf(work), input: inputOf("t", runId) }));

const messagesOf = async ({ runner }: Host): Promise<unknown[]> =>
  (await rebuild(await replay(runner, "t"))).messages.map(({ id, content }) => [id, content]);

test("without Web Locks a run of another host is refused at once, and the next run is not (L5)", async () => {
  const [one, other] = twoHosts();
  const first = run(one, "r1", silent);
  await isRunning(other);
  await expect(run(other, "r2")).rejects.toMatchObject({
    code: "thread-busy",
    message: "Thread already running",
    details: { runId: "r1", holderId: one.runner.hostId },
  });
  await other.runner.stop({ threadId: "t", runId: "r1" });
  expect((await first).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  await run(other, "r3", counter(3));
  expect((await messagesOf(one)).at(-1)).toEqual(["r3-a", counted(3)]);
});

/** Both claim the thread, and find it free, before either writes its fence. */
function claimAtOnce(): IndexedDBAgentRunnerOptions {
  const { gate, letOn } = gated();
  let claimed = 0;
  return {
    atFailurePoint: async (point) => {
      if (point !== "claiming.locked") return;
      if (++claimed === 2) letOn();
      await gate;
    },
  };
}

test("without Web Locks the fence lets one of two in that found the thread free; the other is refused (L5, L6)", async () => {
  const both = twoHosts(claimAtOnce());
  const { gate, letOn } = gated();
  const started = vi.fn();
  const work = counter(5, (step) => {
    if (step === 0) started();
    return step === 2 ? gate : undefined;
  });
  const runs = both.map((host, n) => run(host, `r${n}`, work));
  const refused = await Promise.race(runs.map((outcome) => outcome.catch((error: unknown) => error)));
  letOn();
  const outcomes = await Promise.allSettled(runs);
  const winner = outcomes.findIndex(({ status }) => status === "fulfilled");
  expect(refused).toMatchObject({ code: "thread-busy", details: { runId: `r${winner}` } });
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(started).toHaveBeenCalledTimes(1);
  expect(await messagesOf(both[0])).toEqual([
    [`r${winner}-u`, `from r${winner}-u`],
    [`r${winner}-a`, counted(5)],
  ]);
});

test.each(["queue", "supersede"] as const)(
  "without Web Locks two that claim at once with the policy %s both get their turn, one after the other (L5, L7)",
  async (onConcurrentRun) => {
    const both = twoHosts({ ...claimAtOnce(), onConcurrentRun });
    const outcomes = await Promise.all(both.map((host, n) => run(host, `r${n}`)));
    const ends = outcomes.map((events) => events.at(-1));
    expect(ends.map((end) => end?.type)).toEqual([EventType.RUN_FINISHED, EventType.RUN_FINISHED]);
    const runs = await both[0].runner.listRuns("t");
    expect(runs.map(({ status }) => status)).not.toContain("broken");
    expect(runs).toHaveLength(2);
  },
);

test("without Web Locks the same run that two hosts send at once is executed once, for both (L5)", async () => {
  const both = twoHosts(claimAtOnce());
  const started = vi.fn();
  const work = counter(3, (step) => void (step === 0 && started()));
  const [one, other] = await Promise.all(both.map((host) => run(host, "r", work)));
  expect(one!.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "r" });
  expect(other!.at(-1)).toEqual(one!.at(-1));
  expect(started).toHaveBeenCalledTimes(1);
});

test("without Web Locks a dead host's run is settled as broken, and what it still does is not written (L6, L9)", async () => {
  const [dying, survivor] = twoHosts();
  const { gate: thawed, letOn: thaw } = gated();
  const cutOff = run(
    dying,
    "r",
    counter(20, (step) => (step === 10 ? thawed : undefined)),
  );
  await isRunning(survivor);
  await expect(run(survivor, "early")).rejects.toMatchObject({ code: "thread-busy" });
  dying.freeze();
  await isFree(survivor);
  await run(survivor, "next");
  thaw();
  expect((await cutOff).at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "RUN_BROKEN" });
  expect(await messagesOf(survivor)).toEqual([
    ["r-u", "from r-u"],
    ["r-a", counted(10)],
    ["next-u", "from next-u"],
    ["next-a", counted(2)],
  ]);
});

test("without Web Locks a host that starts finds what a dead one left, and settles it (L9)", async () => {
  const [dbName, open] = [freshDb(), inProcessChannels()];
  const dying = hostOn(dbName, open);
  void run(dying, "r", silent).catch(() => undefined);
  await vi.waitFor(async () => expect(await dying.runner.getRunEvents("r")).toHaveLength(2));
  dying.freeze();
  const next = hostOn(dbName, open);
  await isFree(next);
  await run(next, "next");
  expect(await next.runner.listRuns("t")).toMatchObject([{ runId: "next" }, { runId: "r", status: "broken" }]);
});

test("without Web Locks a follower notices the death of a host that it has not heard of (L9, L13)", async () => {
  const [dbName, open] = [freshDb(), inProcessChannels()];
  const dying = hostOn(dbName, open);
  const deaf: OpenChannel = (name) => {
    const channel = open(name);
    return name === hostChannelName(dbName) ? { ...channel, messages$: NEVER } : channel;
  };
  const follower = hostOn(dbName, deaf);
  await follower.runner.opened;
  void run(dying, "r", silent).catch(() => undefined);
  await vi.waitFor(async () => expect(await follower.runner.getRunEvents("r")).toHaveLength(2));
  const frames = framesUntil(follower.runner, { threadId: "t" });
  dying.freeze();
  expect(await frames).toContainEqual(expect.objectContaining({ type: "settled", status: "broken" }));
});

test("without Web Locks a living host's silent run is not ended by who follows it (L5, L9)", async () => {
  const [dbName, open] = [freshDb(), inProcessChannels()];
  const [holder, follower] = [hostOn(dbName, open), hostOn(dbName, open)];
  let asked = 0;
  open(livesChannelName).messages$.subscribe((message) => {
    if ((message as { type: string }).type === "who") asked++;
  });
  const first = run(holder, "r", silent);
  await isRunning(follower);
  const frames = framesUntil(follower.runner, { threadId: "t" });
  // It has looked into the silence several times by then.
  await vi.waitFor(() => expect(asked).toBeGreaterThan(5));
  expect(await follower.runner.isRunning({ threadId: "t" })).toBe(true);
  await follower.runner.stop({ threadId: "t", runId: "r" });
  expect((await first).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  expect((await frames).at(-1)).toEqual({ type: "end" });
});

test("without Web Locks a stop ends the run of a holder that is frozen, and it writes nothing when it wakes (L6, L7, L11)", async () => {
  const [frozen, other] = twoHosts();
  const { gate: thawed, letOn: thaw } = gated();
  const cutOff = run(
    frozen,
    "r",
    counter(20, (step) => (step === 10 ? thawed : undefined)),
  );
  await vi.waitFor(async () => expect(await other.runner.getRunEvents("r")).toHaveLength(12));
  frozen.freeze();
  expect(await other.runner.stop({ threadId: "t", runId: "r" })).toBe(true);
  await isFree(other);
  await run(other, "next");
  const before = await replay(other.runner, "t");
  thaw();
  expect((await cutOff).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  expect(await replay(other.runner, "t")).toEqual(before);
});

test("without Web Locks a host that ends says so, and its threads are free at once (L9)", async () => {
  const [one, other] = twoHosts();
  void run(one, "r", silent).catch(() => undefined);
  await isRunning(other);
  one.runner.letGo();
  await isFree(other);
  expect(await other.runner.listRuns("t")).toMatchObject([{ status: "broken" }]);
});

test("an earlier build that goes by leases breaks a run of this one at most: the log stays right (L6)", async () => {
  const [dbName, open] = [freshDb(), inProcessChannels()];
  const host = hostOn(dbName, open);
  // It takes the thread for its own where it has the lease, which nobody else asks for any more.
  const { contextOnly: _contextOnly, ...leases } = contextLocks({ openChannel: open });
  const former: Host = {
    runner: makeRunner({ dbName, openChannel: open, locks: leases }),
    freeze: () => undefined,
  };
  const { gate, letOn } = gated();
  const cutOff = run(
    host,
    "r",
    counter(20, (step) => (step === 10 ? gate : undefined)),
  );
  await vi.waitFor(async () => expect(await former.runner.getRunEvents("r")).toHaveLength(12));
  await run(former, "next");
  letOn();
  expect((await cutOff).at(-1)).toMatchObject({ code: "RUN_BROKEN" });
  expect(await messagesOf(host)).toEqual([
    ["r-u", "from r-u"],
    ["r-a", counted(10)],
    ["next-u", "from next-u"],
    ["next-a", counted(2)],
  ]);
  const live = run(former, "live", silent);
  await isRunning(host);
  await expect(run(host, "refused")).rejects.toMatchObject({ code: "thread-busy", details: { runId: "live" } });
  await former.runner.stop({ threadId: "t" });
  await live;
});

/** Makes the database of leases that an earlier build left. */
async function leaveLeases(dbName: string): Promise<void> {
  const opening = indexedDB.open(formerLeaseDbName(dbName), 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("leases");
  await new Promise((resolve) => (opening.onsuccess = resolve));
  opening.result.close();
}

const hasLeases = async (dbName: string): Promise<boolean> =>
  (await indexedDB.databases()).some(({ name }) => name === formerLeaseDbName(dbName));

test("leases that an earlier build left are deleted by the first start without Web Locks that meets no live run", async () => {
  const [dbName, open] = [freshDb(), inProcessChannels()];
  const holder = hostOn(dbName, open);
  await holder.runner.opened;
  const live = run(holder, "r", silent);
  await vi.waitFor(async () => expect(await holder.runner.getRunEvents("r")).toHaveLength(2));
  await leaveLeases(dbName);
  const deleting = vi.spyOn(indexedDB, "deleteDatabase");
  onTestFinished(() => deleting.mockRestore());
  const early = hostOn(dbName, open);
  await early.runner.opened;
  await expect(run(early, "refused")).rejects.toMatchObject({ code: "thread-busy" });
  expect(deleting).not.toHaveBeenCalled();
  await holder.runner.stop({ threadId: "t" });
  await live;
  const late = hostOn(dbName, open);
  await late.runner.opened;
  await vi.waitFor(async () => expect(await hasLeases(dbName)).toBe(false));
});

test("leases that an earlier build left go with the database", async () => {
  const [dbName, open] = [freshDb(), inProcessChannels()];
  const { runner } = hostOn(dbName, open);
  await runner.opened;
  await vi.waitFor(() => leaveLeases(dbName));
  await runner.destroy();
  expect(await hasLeases(dbName)).toBe(false);
});
