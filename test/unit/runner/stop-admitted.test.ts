import { expect, onTestFinished, test, vi } from "vitest";
import { agentOf, collect, counter, gated, inputOf, makeRunner, user } from "./kit.js";

/** A run that waits for another one of its thread, until that has ended. */
async function queued(runner: ReturnType<typeof makeRunner>) {
  const first = gated();
  const one = collect(
    runner.run({ threadId: "t", agent: agentOf(counter(2, () => first.gate)), input: inputOf("t", "r1") }),
  );
  await vi.waitFor(async () => expect(await runner.listRuns("t")).toMatchObject([{ status: "running" }]));
  const executed = vi.fn();
  const agent = agentOf(async function* () {
    executed();
    yield* [];
  });
  const two = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r2", [user("r2-u")]) }));
  return { executed, two, letOn: first.letOn, one };
}

test("a run that is stopped while it is asked whether it may start does not start", async () => {
  const runner = makeRunner({ onConcurrentRun: "queue" });
  onTestFinished(() => runner.close());
  const { elsewhere } = runner.joinDevices();
  const { gate, letOn } = gated();
  const released = vi.fn();
  const { two, executed, ...first } = await queued(runner);
  let isAsked = false;
  elsewhere.admit = async () => {
    isAsked = true;
    await gate;
    return { is: "admitted", release: released };
  };
  const refused = expect(two).rejects.toMatchObject({ code: "cancelled" });
  first.letOn();
  await vi.waitFor(() => expect(isAsked).toBe(true));
  expect(await runner.stop({ threadId: "t", runId: "r2" })).toBe(true);
  letOn();
  await refused;
  expect(released).toHaveBeenCalledOnce();
  expect(executed).not.toHaveBeenCalled();
  expect(await runner.listRuns("t")).toHaveLength(1);
});

test("a run that is stopped while it joins the one that another device executes is stopped there", async () => {
  const runner = makeRunner({ onConcurrentRun: "queue" });
  onTestFinished(() => runner.close());
  const { elsewhere, parts } = runner.joinDevices();
  const { store, channel } = parts;
  const { two, executed, ...first } = await queued(runner);
  const joining = gated();
  let isRead = false;
  elsewhere.admit = async ({ fingerprint }) => ({
    is: "elsewhere",
    wait: async () => {
      const head = (await store.head("t"))!;
      // Another host writes down what it hears of the run.
      const { runById } = store;
      vi.spyOn(store, "runById").mockImplementation(async (...args) => {
        const row = await runById(...args);
        isRead = true;
        await joining.gate;
        return row;
      });
      await store.claim({
        threadId: "t",
        runId: "r2",
        holder: "another host",
        startedAt: 1,
        base: { activeRunIndex: head.activeRunIndex, epoch: head.epoch },
        prevRunIndex: head.activeRunIndex,
        input: { messages: [] },
        fingerprint,
        title: "",
        device: { id: "server", name: "Server" },
      });
      channel.post({ type: "started", threadId: "t", runId: "r2", runIndex: 1 });
      return "elsewhere";
    },
  });
  first.letOn();
  two.catch(() => undefined);
  await vi.waitFor(() => expect(isRead).toBe(true));
  expect(await runner.stop({ threadId: "t", runId: "r2" })).toBe(true);
  joining.letOn();
  await vi.waitFor(async () => expect((await store.head("t"))?.stop).toMatchObject({ runId: "r2" }));
  expect(executed).not.toHaveBeenCalled();
});

test("a run that has waited and is stopped while it is written as begun is stopped", async () => {
  const first = gated();
  const second = gated();
  const written = gated();
  let isWriting = false;
  let hasWaited = false;
  const runner = makeRunner({
    onConcurrentRun: "queue",
    atFailurePoint: async (point) => {
      hasWaited ||= point === "claiming.queued";
      if (point !== "claiming.fenced" || !hasWaited) return;
      isWriting = true;
      await written.gate;
    },
  });
  onTestFinished(() => runner.close());
  const run = (runId: string, { gate }: typeof first) =>
    collect(runner.run({ threadId: "t", agent: agentOf(counter(2, () => gate)), input: inputOf("t", runId) }));
  const one = run("r1", first);
  await vi.waitFor(async () => expect(await runner.listRuns("t")).toMatchObject([{ status: "running" }]));
  const two = run("r2", second);
  await vi.waitFor(() => expect(hasWaited).toBe(true));
  first.letOn();
  await one;
  await vi.waitFor(() => expect(isWriting).toBe(true));
  const stopping = runner.stop({ threadId: "t", runId: "r2" });
  written.letOn();
  expect(await stopping).toBe(true);
  second.letOn();
  expect((await two).at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "cancelled" } });
});
