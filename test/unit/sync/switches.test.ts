import { deleteDB } from "idb";
import { expect, test, vi } from "vitest";
import { agentOf, collect, counter, freshDb, inputOf, user } from "../runner/kit.js";
import { bothHave, device, eventually, inStep, MemoryServer, same, say, tree, types, type Device } from "./kit.js";

/*
 * Which branch people have taken up: what they did last on a device counts, unless another device was there first.
 */

const run = (on: Device, runId: string) => say(on, "t", runId, agentOf(counter(1)));

/** Another answer beside that of a run, as after "regenerate". */
const instead = ({ runner }: Device, runId: string, of: string) =>
  collect(
    runner.run({
      threadId: "t",
      agent: agentOf(counter(1)),
      input: inputOf("t", runId, [user(`${runId}-u`)]),
      branchBefore: `${of}-u`,
    }),
  );

/** The runs of the active path, by their user messages. */
const path = async ({ runner }: Device): Promise<readonly string[]> =>
  (await runner.getThreadMessages("t")).flatMap(({ id, role }) => (role === "user" ? id.replace("-u", "") : []));

const all = async (devices: readonly Device[], runs: readonly string[]): Promise<void> => {
  for (const one of devices) await eventually(async () => expect(await path(one)).toEqual(runs));
  await same("t", ...devices);
};

/** Two devices whose thread has three answers to one place, the last one active. */
async function threeBranches() {
  const devices = await bothHave("r1");
  await instead(devices.phone, "r2", "r1");
  await instead(devices.phone, "r3", "r2");
  await all([devices.phone, devices.laptop], ["r3"]);
  return devices;
}

test("people go back offline, and go on from there: that is the active path on all devices", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  phone.space.connect(false);
  await run(phone, "p1");
  await instead(phone, "p2", "p1");
  await phone.runner.activateRun("t", "p1");
  await run(phone, "p3");
  await run(phone, "p4");
  expect(await path(phone)).toEqual(["r1", "p1", "p3", "p4"]);
  phone.space.connect(true);
  await all([phone, laptop, device(server, "Tablet")], ["r1", "p1", "p3", "p4"]);
});

test("people go back offline, and nothing else: that is the active path on all devices", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  phone.space.connect(false);
  await run(phone, "p1");
  await instead(phone, "p2", "p1");
  await phone.runner.activateRun("t", "p1");
  phone.space.connect(true);
  await all([phone, laptop, device(server, "Tablet")], ["r1", "p1"]);
});

test("a thread that comes into the space with a branch that was left keeps its active path", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  await inStep(phone);
  phone.space.connect(false);
  await run(phone, "r1");
  await instead(phone, "r2", "r1");
  await phone.runner.activateRun("t", "r1");
  await run(phone, "r3");
  await instead(phone, "r4", "r3");
  await phone.runner.activateRun("t", "r3");
  phone.space.connect(true);
  await all([phone, device(server, "Laptop")], ["r1", "r3"]);
});

test("of several switches in a row the last one counts", async () => {
  const { phone, laptop } = await threeBranches();
  // The entry of the first one is on its way when people go on.
  phone.space.connect(false);
  await phone.runner.activateRun("t", "r1");
  phone.space.connect(true);
  await phone.runner.activateRun("t", "r2");
  await all([phone, laptop], ["r2"]);
});

test("a switch in the moment in which the one before is added counts", async () => {
  const { server, phone, laptop } = await threeBranches();
  const add = server.add.bind(server);
  vi.spyOn(server, "add").mockImplementationOnce((...of) => {
    // Committed, and not heard of yet.
    void phone.store.activate("t", 1);
    return add(...of);
  });
  await phone.runner.activateRun("t", "r1");
  await all([phone, laptop], ["r2"]);
  expect(types(server).filter((type) => type === "active")).toHaveLength(2);
});

test("a thread that is deleted while a switch is told is deleted on all devices", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  await instead(phone, "r2", "r1");
  await all([phone, laptop], ["r2"]);
  let deleted: Promise<boolean> | undefined;
  const add = server.add.bind(server);
  vi.spyOn(server, "add").mockImplementationOnce((...of) => {
    deleted = phone.runner.deleteThread("t");
    return add(...of);
  });
  await phone.runner.activateRun("t", "r1");
  await eventually(async () => expect(await laptop.runner.getThread("t")).toBeUndefined());
  expect(await deleted).toBe(true);
  expect(await phone.runner.getThread("t")).toBeUndefined();
});

test.each(["while its host goes on", "and its host ends"])(
  "a switch of which nobody was told counts, %s",
  async (how) => {
    const server = new MemoryServer();
    const dbName = freshDb();
    const [phone, laptop] = [device(server, "Phone", { dbName }), device(server, "Laptop")];
    await run(phone, "r1");
    await instead(phone, "r2", "r1");
    await all([phone, laptop], ["r2"]);
    expect(await phone.store.activate("t", 0)).toBe(true);
    let now = phone;
    if (how === "and its host ends") {
      await phone.close();
      now = device(server, "Phone", { dbName });
    } else await phone.runner.updateThread("t", { title: "Named" });
    await all([now, laptop], ["r1"]);
  },
);

test("a device whose log is lost takes up what all have, not where it went before", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const [phone, laptop] = [device(server, "Phone", { dbName }), device(server, "Laptop")];
  await run(phone, "r1");
  await instead(phone, "r2", "r1");
  await phone.runner.activateRun("t", "r1");
  await all([phone, laptop], ["r1"]);
  await phone.close();
  await deleteDB(dbName);
  const again = device(server, "Phone", { dbName });
  await all([again, laptop], ["r1"]);
  expect(types(server).filter((type) => type === "active")).toHaveLength(1);
});

test("who was first counts: a switch on another device in between is not undone", async () => {
  const { phone, laptop } = await threeBranches();
  phone.space.connect(false);
  await phone.runner.activateRun("t", "r1");
  await laptop.runner.activateRun("t", "r2");
  phone.space.connect(true);
  await all([phone, laptop], ["r2"]);
  expect(Object.keys(await tree(phone, "t"))).toEqual(["r1", "r2", "r3"]);
});
