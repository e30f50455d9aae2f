import { EventType } from "@ag-ui/client";
import { describe, expect, test, vi } from "vitest";
import type { InMemoryAgentRunner } from "../../../src/runner/in-memory-agent-runner.js";
import { agentOf, collect, freshDb, inputOf, makeMemoryRunner, rebuild, silent, user } from "./kit.js";

/** What a caller reads who awaits nothing. */
const now = (value: unknown): unknown => JSON.parse(JSON.stringify({ value }))["value"];
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const answering = () =>
  agentOf(async function* ({ runId }) {
    const messageId = `${runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "half " };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "whole" };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
    yield { type: EventType.STATE_SNAPSHOT, snapshot: { run: runId } };
  });
const run = (runner: InMemoryAgentRunner, runId: string, threadId = "t", agent = answering()) =>
  collect(runner.run({ threadId, agent, input: inputOf(threadId, runId) }));

async function expectSame(runner: InMemoryAgentRunner, threadId: string): Promise<void> {
  const messages = runner.getThreadMessages(threadId);
  const state = runner.getThreadState(threadId);
  const events = runner.getThreadEvents(threadId);
  expect(now(messages)).toEqual(plain(await messages));
  expect(now(state)).toEqual(await state);
  // Whoever awaits nothing is of before AG-UI 1.0, and is told no version.
  const unversioned = (await events).map(({ protocolVersion: _version, ...event }) => event);
  expect(now(events)).toEqual(plain(unversioned));
  expect(messages.map(({ id }) => id)).toEqual((await messages).map(({ id }) => id));
  expect((await rebuild(events.filter(() => true))).messages).toEqual(await messages);
}

describe("what a runner in memory says at once, for CopilotKit's runtime", () => {
  test("is what it says later, of settled, branched and cut threads", async () => {
    const runner = makeMemoryRunner({ dbName: freshDb(), limits: { maxRunsPerThread: 4 } });
    expect(runner.ɵsupportsLocalThreadEndpoints).toBe(true);
    await run(runner, "r0");
    await expectSame(runner, "t");
    const cut = new Promise((resolve) => runner.evicted$.subscribe(resolve));
    for (let n = 1; n < 8; n++) await run(runner, `r${n}`);
    await cut;
    await expectSame(runner, "t");

    await run(runner, "b0", "branched");
    await run(runner, "b1", "branched");
    const edited = { ...inputOf("branched", "b2"), messages: [user("b0-u", "edited")] };
    await collect(runner.run({ threadId: "branched", agent: answering(), input: edited }));
    expect(await runner.getThreadMessages("branched")).toHaveLength(2);
    await expectSame(runner, "branched");
  });

  test("has the live run so far", async () => {
    const runner = makeMemoryRunner({ dbName: freshDb() });
    await run(runner, "r0");
    const live = run(runner, "r1", "t", agentOf(silent));
    await vi.waitFor(async () => expect(await runner.getThreadMessages("t")).toHaveLength(4));
    await expectSame(runner, "t");
    await runner.stop({ threadId: "t" });
    await live;
    // As clients before 1.0 read it.
    expect((now(runner.getThreadEvents("t")) as unknown[]).at(-1)).toEqual({
      type: "RUN_FINISHED",
      threadId: "t",
      runId: "r1",
    });
  });

  test("lists the threads as CopilotKit's front end reads them; an unknown one is empty, and no rejection is left", async () => {
    const runner = makeMemoryRunner({ dbName: freshDb() });
    await run(runner, "r", "a");
    await run(runner, "r", "b");
    await run(runner, "r", "gone");
    await runner.updateThread("gone", { archived: true });
    expect(runner.listThreads().map(({ id }) => id)).toEqual(["b", "a"]);
    expect(runner.listThreads().filter(({ agentId }) => agentId === "nobody")).toEqual([]);
    expect(now(runner.listThreads())).toMatchObject([
      { id: "b", name: "from r-u", agentId: "test", archived: false, createdAt: expect.stringMatching(/^20.*Z$/) },
      { id: "a" },
    ]);
    expect([runner.getThreadMessages("?"), runner.getThreadEvents("?"), runner.getThreadState("?")].map(now)).toEqual([
      [],
      [],
      null,
    ]);
    // Refused, and awaited by nobody.
    expect(now(runner.getThreadMessages(""))).toEqual([]);
    await runner.close();
    runner.clearThreads();
    expect(now(runner.getThreadMessages("a"))).toHaveLength(2);
  });
});
