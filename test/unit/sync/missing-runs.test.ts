import { expect, test, vi } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { EventType } from "@ag-ui/client";
import { decodeMessage, encodeMessage, type SpaceMessage } from "../../../src/sync/messages.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, counter, freshDb } from "../runner/kit.js";
import {
  BEGINS,
  bothHave,
  device,
  eventually,
  inStep,
  MemoryServer,
  pair,
  same,
  say,
  shown,
  tree,
  types,
} from "./kit.js";

/*
 * A run of which others have nothing, and what continues it.
 */

const lines = ({ messages }: Awaited<ReturnType<typeof shown>>): readonly string[] => messages.map(({ id }) => id);

test.for(["run", "chunks"] as const)(
  "what continues a run that cannot be read here (its %s) is on all devices",
  async (name) => {
    const { phone, laptop } = await bothHave("r1");
    phone.space.connect(false);
    await say(phone, "t", "r2", agentOf(counter(1)));
    await say(phone, "t", "r3", agentOf(counter(1)));
    const read = phone.store[name].bind(phone.store) as (...of: unknown[]) => Promise<never>;
    const failing = vi
      .spyOn(phone.store, name)
      .mockImplementation(async (threadId: string, runIndex: number, ...more: unknown[]) => {
        if (runIndex === 1) throw new RunnerError("corrupt-record", { threadId, store: "runs" });
        return read(threadId, runIndex, ...more);
      });
    phone.space.connect(true);
    const behind = { r1: { prev: null, status: "finished" }, r3: { prev: "r1", status: "finished" } };
    await eventually(async () => expect(await tree(laptop, "t")).toEqual(behind));
    await say(phone, "t", "r4", agentOf(counter(1)));
    await eventually(async () =>
      expect(lines(await shown(laptop, "t"))).toEqual(["r1-u", "r1-a", "r3-u", "r3-a", "r4-u", "r4-a"]),
    );
    // Nobody is taken away from where they are.
    failing.mockRestore();
    expect((await phone.store.head("t"))?.activeRunIndex).toBe(3);
  },
);

/** The same entries, but for those that begin with this run. */
async function withoutRun(server: MemoryServer, runId: string): Promise<MemoryServer> {
  const other = new MemoryServer();
  const key = await keyOfThread("t");
  for (const { body } of server.entries) {
    const message = decodeMessage(body);
    if (typeof message !== "object" || ("runId" in message && message.runId === runId)) continue;
    other.add(key, body, other.entries.length, `entry ${other.entries.length}`);
  }
  return other;
}

test.for([
  { lost: "r1", trees: { r2: { prev: null, status: "finished" }, r3: { prev: "r2", status: "finished" } } },
  { lost: "r2", trees: { r1: { prev: null, status: "finished" }, r3: { prev: "r1", status: "finished" } } },
])("a run whose base ($lost) nobody has sent waits for nothing, and holds up no deletion", async ({ lost, trees }) => {
  const { server, phone } = await bothHave("r1");
  await say(phone, "t", "r2", agentOf(counter(1)));
  await say(phone, "t", "r3", agentOf(counter(1)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(3));
  const other = await withoutRun(server, lost);
  const [tablet, watch] = [device(other, "Tablet"), device(other, "Watch")];
  for (const one of [tablet, watch]) await eventually(async () => expect(await tree(one, "t")).toEqual(trees));
  await same("t", tablet, watch);
  await tablet.runner.deleteThread("t");
  await eventually(async () => expect(await tree(watch, "t")).toEqual({}));
});

test("what was added unseen to a deleted thread waits for the runs that it continues: they are sent again behind it", async () => {
  const { server, phone } = await bothHave("r1");
  const first = server.entries.slice();
  await say(phone, "t", "r2", agentOf(counter(1)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(2));
  const second = server.entries.slice(first.length);
  const other = new MemoryServer();
  const key = await keyOfThread("t");
  const add = (body: Uint8Array) => other.add(key, body, other.last, `entry ${other.last}`);
  for (const { body } of first) add(body);
  const knew = other.last;
  add(encodeMessage({ type: "deleted", knew, threadId: "t", device: { id: "gone", name: "Gone" } }));
  for (const { body } of second) add(body);
  const tablet = device(other, "Tablet");
  await inStep(tablet);
  const seq = other.last;
  await eventually(async () => expect((await tablet.database.thread(key))?.state.last ?? seq).toBe(seq));
  for (const { body } of first) add(body);
  const [late, both] = [device(other, "Late"), { r1: { prev: null }, r2: { prev: "r1" } }];
  for (const one of [tablet, late]) await eventually(async () => expect(await tree(one, "t")).toMatchObject(both));
});

test("a run that could not be written down, and a restart, do not keep what continues it", async () => {
  const { server, phone, laptop } = await pair();
  await laptop.close();
  await say(phone, "t", "r1", agentOf(counter(1)));
  await say(phone, "t", "r2", agentOf(counter(1)));
  const dbName = freshDb();
  let tablet = device(server, "Tablet", { dbName });
  const { placeRun } = tablet.store;
  vi.spyOn(tablet.store, "placeRun").mockImplementation(async (run) => {
    if (run.runId === "r2") throw new RunnerError("invalid-input");
    return placeRun.call(tablet.store, run);
  });
  await eventually(async () => expect(tablet.said.join()).toContain("left out"));
  await tablet.sync.close();
  await tablet.close();
  tablet = device(server, "Tablet", { dbName });
  await say(phone, "t", "r3", agentOf(counter(1)));
  await eventually(async () => expect(await tree(tablet, "t")).toMatchObject({ r3: { prev: "r1" } }));
});

test("a branch of which nothing came, and nothing comes, leaves all where they were", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  await say(phone, "t", "r2", agentOf(counter(1)));
  await same("t", phone, laptop);
  const gone = { threadId: "t", device: { id: "gone", name: "Gone" } };
  for (const message of [
    { ...BEGINS, runId: "branch", prev: "r1", knew: "r2", ...gone },
    { type: "abandon", runId: "branch", ...gone },
  ] as const) {
    server.add(await keyOfThread("t"), encodeMessage(message), server.last, `entry ${server.last}`);
  }
  // It is read by then.
  await phone.runner.updateThread("t", { title: "Later" });
  await eventually(async () => expect(await laptop.runner.getThread("t")).toMatchObject({ title: "Later" }));
  const tablet = device(server, "Tablet");
  await say(laptop, "t", "r3", agentOf(counter(1)));
  await same("t", phone, laptop, tablet);
  expect(await tree(phone, "t")).toMatchObject({ r3: { prev: "r2" } });
  expect(lines(await shown(tablet, "t"))).toEqual(["r1-u", "r1-a", "r2-u", "r2-a", "r3-u", "r3-a"]);
});

test("a branch that has not begun, and whose device is gone, holds up nothing; what comes of it later is there", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  const tablet = device(server, "Tablet");
  await inStep(tablet);
  const gone = { threadId: "t", device: { id: await tablet.database.device("none"), name: "Tablet" } };
  await tablet.close();
  const key = await keyOfThread("t");
  const add = (message: SpaceMessage) =>
    server.add(key, encodeMessage(message), server.entries.at(-1)!.seq, `entry ${server.entries.length}`);
  add({ ...BEGINS, runId: "beside", ...gone });
  add({ ...BEGINS, runId: "never", ...gone });
  await say(phone, "t", "r2", agentOf(counter(1)));
  await same("t", phone, laptop);
  const dbName = freshDb();
  const watch = device(server, "Watch", { dbName });
  await same("t", watch, phone);
  const { seq } = server.entries.at(-1)!;
  await eventually(async () => expect((await watch.database.place())?.seq).toBe(seq));
  await watch.close();
  const again = device(server, "Watch", { dbName });
  await inStep(again);
  // Its device has it, after all.
  const entries = [EventType.RUN_STARTED, EventType.RUN_FINISHED].map((type) => ({
    event: { type, threadId: "t", runId: "beside" },
  }));
  const chunk = { firstSeq: 0, count: 2, at: 1, times: [2, 0], entries };
  add({ type: "end", runId: "beside", status: "finished", endedAt: 1, chunk, ...gone });
  const other = device(server, "Other");
  for (const one of [phone, laptop, again, other]) {
    await eventually(async () => expect(await tree(one, "t")).toMatchObject({ beside: { prev: null } }));
  }
  await same("t", phone, laptop, again, other);
  await laptop.runner.deleteThread("t");
  await eventually(async () => expect(await tree(phone, "t")).toEqual({}));
});
