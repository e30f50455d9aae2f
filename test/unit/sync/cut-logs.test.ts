import { expect, test, vi } from "vitest";
import { agentOf, counter, gated } from "../runner/kit.js";
import {
  device,
  ended,
  eventually,
  inStep,
  lineOf,
  MemoryServer,
  say,
  sayNow,
  shown,
  tree,
  type Device,
} from "./kit.js";

/*
 * Limits have cut off a thread's first runs before others had them: what is left of them are messages and a state.
 */

const limits = { maxRunsPerThread: 4 };
const idsOn = async (one: Device): Promise<readonly string[]> => (await shown(one, "t")).messages.map(({ id }) => id);
const names = (from: number, to: number): string[] => Array.from({ length: to - from + 1 }, (_, n) => `r${from + n}`);
const idsOf = (from: number, to: number): string[] => names(from, to).flatMap((name) => [`${name}-u`, `${name}-a`]);

async function runAll(on: Device, from: number, to: number): Promise<void> {
  for (const name of names(from, to)) await say(on, "t", name, agentOf(counter(1)));
}

/** Resolves when the log begins with this run, of which it has no events. */
const isCutBefore = (on: Device, runId: string): Promise<void> =>
  vi.waitFor(async () => {
    const { cut, first = 0 } = (await on.store.head("t")) ?? {};
    expect({ cut, runId: (await on.store.run("t", first))?.runId }).toEqual({ cut: true, runId });
  });

test("a thread that was cut before it came into the space is on all devices, with all messages and its state", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", { limits });
  await inStep(phone);
  phone.space.connect(false);
  await runAll(phone, 1, 10);
  await isCutBefore(phone, "r7");
  phone.space.connect(true);
  const laptop = device(server, "Laptop");
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  expect(await shown(laptop, "t")).toEqual(await shown(phone, "t"));
  expect(await idsOn(laptop)).toEqual(idsOf(1, 10));
  await runAll(laptop, 11, 11);
  await eventually(async () => expect(await idsOn(phone)).toEqual(idsOf(1, 11)));
});

test("a thread that was cut since others had its first runs goes on behind these", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone", { limits }), device(server, "Laptop")];
  await inStep(phone, laptop);
  await runAll(phone, 1, 3);
  await eventually(() => expect(ended(server)).toBe(3));
  phone.space.connect(false);
  await runAll(phone, 4, 10);
  await isCutBefore(phone, "r7");
  phone.space.connect(true);
  await eventually(async () => expect(await idsOn(laptop)).toEqual(idsOf(1, 10)));
  const path = ["r1", "r2", "r3", "r7", "r8", "r9", "r10"];
  const chain = path.map((name, n) => [name, { prev: path[n - 1] ?? null, status: "finished" }] as const);
  expect(await tree(laptop, "t")).toEqual(Object.fromEntries(chain));
  await runAll(laptop, 11, 11);
  await eventually(async () => expect(await idsOn(phone)).toEqual(idsOf(1, 11)));
});

test("a run that was cut after a part of it was sent is sent again, as what is left of it", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone", { limits }), device(server, "Laptop")];
  await inStep(phone, laptop);
  await runAll(phone, 1, 3);
  await eventually(() => expect(ended(server)).toBe(3));
  const { gate, letOn } = gated();
  const running = sayNow(phone, "t", "r4", agentOf(counter(2, (step) => (step === 1 ? gate : undefined))));
  await eventually(() => expect(server.entries.flatMap(lineOf).join()).toContain("events r4"));
  phone.space.connect(false);
  letOn();
  await running;
  await runAll(phone, 5, 7);
  await isCutBefore(phone, "r4");
  phone.space.connect(true);
  await eventually(async () => expect(await idsOn(laptop)).toEqual(idsOf(1, 7)));
  const runs = await tree(laptop, "t");
  expect(runs["r4"]).toEqual({ prev: "r3", status: "finished" });
});
