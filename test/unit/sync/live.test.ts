import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { agentOf, collect, counted, counter, fastClock, gated } from "../runner/kit.js";
import { Recovery } from "../../../src/runner/claim/recovery.js";
import { History } from "../../../src/runner/history/history.js";
import { Mirror } from "../../../src/sync/mirror.js";
import type { SpaceEntry, SpaceFrame, SpacePlace } from "../../../src/sync/space.js";
import { BEGINS, device, deviceOn, eventually, inStep, MemoryServer, same, say, textOn, tree, types } from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/*
 * A run that goes on is sent, and shown on other devices, from what its host hands out: the log is written, and not read.
 */

async function streaming() {
  const server = new MemoryServer();
  const phone = device(server, "Phone", { clock: fastClock(5) });
  const laptop = device(server, "Laptop", { clock: fastClock(5) });
  await inStep(phone, laptop);
  const gates = Array.from({ length: 6 }, () => gated());
  const run = say(phone, "t", "r1", agentOf(counter(6, (step) => gates[step]?.gate)));
  gates[0]!.letOn();
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "running" } }));
  const events: BaseEvent[] = [];
  const reading = new AbortController();
  laptop.runner.connect({ threadId: "t" }).subscribe({
    next: (event) => void events.push(event),
    complete: () => reading.abort(),
  });
  const text = (): string =>
    events.map((event) => (event.type === EventType.TEXT_MESSAGE_CONTENT ? String(event["delta"]) : "")).join("");
  const has = (steps: number) => eventually(() => expect(text()).toBe(counted(steps)));
  return { server, phone, laptop, gates, run, events, text, has, reading };
}

test("a live run is sent and shown without reading it in the log", async () => {
  const { server, phone, laptop, gates, run, has } = await streaming();
  await has(1);
  gates[1]!.letOn();
  await has(2);
  const reads = [vi.spyOn(phone.store, "chunks"), vi.spyOn(laptop.store, "chunks")];
  for (const step of [2, 3, 4]) {
    const before = types(server).filter((type) => type === "events").length;
    gates[step]!.letOn();
    await has(step + 1);
    expect(types(server).filter((type) => type === "events").length).toBeGreaterThan(before);
  }
  expect(reads.map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  gates[5]!.letOn();
  await run;
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  await has(6);
});

/** Whenever a thread was read, more of it has come. */
class GoingOn extends MemorySpace {
  /** Behind which entries threads were read. */
  readonly reads: number[] = [];
  private taken = 0;

  constructor(
    server: MemoryServer,
    private readonly steps: { readonly letOn: () => void }[],
  ) {
    super(server);
  }

  override async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    for await (const frame of super.read(after, signal)) {
      yield frame;
      if (frame.is === "entry") this.taken = frame.seq;
    }
  }

  override async *entries(thread: string, signal: AbortSignal, after = 0): AsyncGenerator<SpaceEntry, void> {
    this.reads.push(after);
    yield* super.entries(thread, signal, after);
    const { last } = this.server;
    const next = this.steps.shift();
    if (next === undefined) return;
    next.letOn();
    await eventually(() => expect(this.taken).toBeGreaterThan(last));
  }
}

test("a thread that goes on while it is read is there before it ends, and is read once", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", { clock: fastClock(5) });
  await inStep(phone);
  const gates = Array.from({ length: 6 }, () => gated());
  const run = say(phone, "t", "r1", agentOf(counter(6, (step) => gates[step]?.gate)));
  gates[0]!.letOn();
  await eventually(() => expect(types(server)).toContain("events"));
  const space = new GoingOn(server, gates.slice(1, 4));
  const laptop = deviceOn(space, "Laptop");
  onTestFinished(laptop.close);
  await eventually(async () => expect(await textOn(laptop)).toBe(counted(4)));
  expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "running" } });
  expect(space.reads.filter((after) => after === 0)).toHaveLength(1);
  expect(space.reads.length).toBeGreaterThan(3);
  for (const { letOn } of gates) letOn();
  await run;
  await same("t", phone, laptop);
});

test("a reader of a run that another host of its device ends is told, although nothing more of it comes", async () => {
  const { laptop, gates, run, has, events, reading } = await streaming();
  await has(1);
  const { parts } = laptop.runner.joinDevices();
  const head = await laptop.store.head("t");
  await new Recovery(parts, () => undefined, reading.signal).settleOrphan(head!, "broken");
  await eventually(() => expect(events.at(-1)?.type).toBe(EventType.RUN_ERROR));
  parts.channel.close();
  for (const { letOn } of gates) letOn();
  await run;
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "finished" } }));
  expect((await collect(laptop.runner.connect({ threadId: "t" }))).at(-1)?.type).toBe(EventType.RUN_FINISHED);
});

test("what fails once is sent all the same while a run of another device goes on, and that is shown on", async () => {
  const { server, laptop, gates, run, has } = await streaming();
  await has(1);
  const failing = vi.spyOn(laptop.store, "thread").mockRejectedValue(new Error("The disk is gone"));
  await laptop.runner.updateThread("t", { title: "New" });
  await eventually(() => expect(laptop.said.join()).toContain("The disk is gone"));
  failing.mockRestore();
  await eventually(() => expect(types(server)).toContain("thread"));
  for (const { letOn } of gates) letOn();
  await run;
  await has(6);
});

test("a run of another device that is gone here with its thread is not written down from its middle on", async () => {
  const { runner, store } = device(new MemoryServer(), "Phone");
  const { parts } = runner.joinDevices();
  const its = { id: "laptop", name: "Laptop" };
  const recovery = new Recovery(parts, () => undefined, new AbortController().signal);
  const context = { parts, history: new History(store), recovery, self: { id: "phone", name: "Phone" } };
  const run = { ...BEGINS, threadId: "t", runId: "r1", device: its };
  expect(await Mirror.begin(context, run, true)).toBe("superseded");
  expect(await store.head("t")).toBeUndefined();
  const begun = await Mirror.begin(context, run, false);
  expect(begun).toBeInstanceOf(Mirror);
  if (begun instanceof Mirror) await begun.letGo();
  parts.channel.close();
});

test("a thread that is deleted while the device of its live run hears no stop comes to rest on all", async () => {
  const { phone, laptop, gates, run, has } = await streaming();
  await has(1);
  vi.spyOn(laptop.space, "tell").mockReturnValue();
  expect(await laptop.runner.deleteThread("t")).toBe(true);
  for (const { letOn } of gates) letOn();
  await run;
  for (const [n, one] of [laptop, phone].entries()) {
    // Until the other one is done with it, the thread is busy.
    await eventually(async () => void (await say(one, "t", `after-${n}`, agentOf(counter(1)))));
  }
  await eventually(async () => {
    expect(Object.keys(await tree(phone, "t"))).toEqual(["after-0", "after-1", "r1"]);
    expect(await tree(laptop, "t")).toEqual(await tree(phone, "t"));
  });
});
