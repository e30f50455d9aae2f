import type { AgentSubscriber } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { user } from "../runner/kit.js";
import { hostWith } from "./kit.js";

/** Notes the run of each message as CopilotKit does: of the first MESSAGES_SNAPSHOT, or the event, that brings it. */
function noting(): { readonly runOf: Record<string, string>; readonly subscriber: AgentSubscriber } {
  const runOf: Record<string, string> = {};
  let runId = "";
  return {
    runOf,
    subscriber: {
      onRunStartedEvent: ({ event }) => void (runId = event.runId),
      onMessagesSnapshotEvent: ({ event }) => event.messages.forEach(({ id }) => (runOf[id] ??= runId)),
      onNewMessage: ({ message }) => void (runOf[message.id] = runId),
    },
  };
}

async function opened(historyByRun: boolean, messageLimit?: number) {
  const { hosts, runner } = await hostWith(3);
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  const options = { threadId: "t", historyByRun, ...(messageLimit !== undefined && { messageLimit }) };
  return { agent: runtime.agent("counter", options), runner, ...noting() };
}

const RUNS = { "r0-u": "r0", "r0-a": "r0", "r1-u": "r1", "r1-a": "r1", "r2-u": "r2", "r2-a": "r2" };

test("a subscriber is told the run of each message of the history, and of later ones", async () => {
  const { agent, runner, runOf, subscriber } = await opened(true);
  agent.subscribe(subscriber);
  agent.follow();
  await agent.connectAgent();
  expect(runOf).toEqual(RUNS);
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
  agent.addMessage(user("m"));
  await agent.runAgent({ runId: "own" });
  expect(runOf).toMatchObject({ ...RUNS, "own-a": "own" });
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});

test("so is one that reads the history once, and one whose question waits to be sent", async () => {
  const { agent, runOf, subscriber } = await opened(true);
  agent.addMessage(user("unsent"));
  await agent.connectAgent(undefined, subscriber);
  expect(runOf).toEqual(RUNS);
  expect(agent.messages.map(({ id }) => id)).toEqual([...Object.keys(RUNS), "unsent"]);
});

test("so is a copy of the agent", async () => {
  const { agent, runOf, subscriber } = await opened(true);
  await agent.clone().connectAgent(undefined, subscriber);
  expect(runOf).toEqual(RUNS);
});

test("each thread that the agent is set to is told of", async () => {
  const { agent, runner, runOf, subscriber } = await opened(true);
  agent.threadId = "empty";
  await agent.connectAgent();
  agent.threadId = "t";
  await agent.connectAgent(undefined, subscriber);
  expect(runOf).toEqual(RUNS);
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});

test("nobody who watches the messages is shown what stands for them", async () => {
  const { agent } = await opened(true);
  const shown = vi.fn<(ids: string[]) => void>();
  agent.subscribe({
    onMessagesChanged: ({ messages }) => shown(messages.filter(({ role }) => role === "system").map(({ id }) => id)),
  });
  await agent.connectAgent();
  for (const [ids] of shown.mock.calls) expect(ids).toEqual([]);
});

test("without the option, and where only the last messages are read, the history comes as one run", async () => {
  for (const [historyByRun, limit] of [
    [false, undefined],
    [true, 3],
  ] as const) {
    const { agent, runOf, subscriber } = await opened(historyByRun, limit);
    await agent.connectAgent(undefined, subscriber);
    expect(new Set(Object.values(runOf))).toEqual(new Set(["r2"]));
  }
});

test("the option is true or false", async () => {
  const { hosts } = await hostWith(0);
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  // Not typed: as a page without TypeScript gives it.
  const options = { historyByRun: "yes" } as unknown as { readonly historyByRun: boolean };
  expect(() => runtime.agent("counter", options)).toThrow("historyByRun");
});
