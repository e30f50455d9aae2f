import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { nextTask } from "../../../src/platform/clock.js";
import { gated, user } from "../runner/kit.js";
import { hostWith } from "./kit.js";

async function reader(messageLimit?: number) {
  const { runner, hosts } = await hostWith(3);
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  const agent = runtime.agent("counter", { threadId: "t", ...(messageLimit !== undefined && { messageLimit }) });
  const { gate, letOn } = gated();
  let waits = false;
  const { unsubscribe } = agent.subscribe({
    onRunStartedEvent: async () => {
      waits = true;
      await gate;
    },
  });
  return { runner, agent, letOn, unsubscribe, waiting: () => vi.waitFor(() => expect(waits).toBe(true)) };
}

test("who detaches before what it read was applied reads it again (L2, L11)", async () => {
  const { runner, agent, letOn, unsubscribe, waiting } = await reader();
  const reading = agent.connectAgent();
  await waiting();
  const detaching = agent.detachActiveRun();
  letOn();
  await Promise.all([detaching, reading]);
  unsubscribe();
  await agent.connectAgent();
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});

test("a follower that is detached before what it read was applied reads it again (L2, L11)", async () => {
  const { runner, agent, letOn, unsubscribe, waiting } = await reader();
  onTestFinished(agent.follow());
  await waiting();
  unsubscribe();
  const detaching = agent.detachActiveRun();
  letOn();
  await detaching;
  const all = await runner.getThreadMessages("t");
  await vi.waitFor(() => expect(agent.messages).toEqual(all));
});

test("a copy of an agent that is still applying what it read has all of it too (L2)", async () => {
  const { runner, agent, letOn, unsubscribe, waiting } = await reader();
  const reading = agent.connectAgent();
  await waiting();
  const copy = agent.clone();
  letOn();
  await reading;
  unsubscribe();
  await copy.connectAgent();
  expect(copy.messages).toEqual(await runner.getThreadMessages("t"));
});

test("a page of a copy that was made while a snapshot waits for a hook (L2)", async () => {
  const { runner, agent, letOn, unsubscribe, waiting } = await reader(2);
  const reading = agent.connectAgent();
  await waiting();
  const copy = agent.clone();
  await copy.loadEarlier(2);
  letOn();
  await reading;
  unsubscribe();
  await copy.connectAgent();
  while (copy.hasEarlier) await copy.loadEarlier();
  expect(copy.messages).toEqual(await runner.getThreadMessages("t"));
});

test("a snapshot that comes after the last frame, because of a slow hook, is the thread in its order all the same (L2)", async () => {
  const { hosts, runner } = await hostWith(1);
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  const [agent, other] = [runtime.agent("counter", { threadId: "t" }), runtime.agent("counter", { threadId: "t" })];
  for (const each of [agent, other]) await each.connectAgent();
  other.addMessage(user("between"));
  await other.runAgent({ runId: "between" });
  // It is not told of that run, so its own one stands where the other does.
  agent.addMessage(user("late"));
  await agent.runAgent({ runId: "late" });
  const { gate, letOn } = gated();
  let waits = false;
  agent.subscribe({
    onRunStartedEvent: async () => {
      waits = true;
      await gate;
    },
  });
  const reading = agent.connectAgent();
  await vi.waitFor(() => expect(waits).toBe(true));
  // Time enough for the frames to end.
  for (let task = 0; task < 30; task++) await nextTask();
  letOn();
  await reading;
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});
