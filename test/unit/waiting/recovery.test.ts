import { EventType, type AbstractAgent, type BaseEvent } from "@ag-ui/client";
import { openDB } from "idb";
import { describe, expect, test } from "vitest";
import type { ThreadRun } from "../../../src/client/thread-run.js";
import { RunnerError } from "../../../src/run/errors.js";
import { AgentRuntime } from "../../../src/runtime/agent-runtime.js";
import type { AgentPolicy } from "../../../src/runtime/agent-policies.js";
import { agentOf, freshDb, quiet } from "../runner/kit.js";
import { hostOf, shown, until } from "./kit.js";

/** Fails as often as it is told to, in a way that may pass; then answers. */
function failing(times: number, retryAfterMs?: number): { agent: AbstractAgent; attempts: (number | undefined)[] } {
  const attempts: (number | undefined)[] = [];
  const agent = agentOf(async function* ({ runId }, { attempt }) {
    const messageId = `${runId}-a`;
    attempts.push(attempt?.number);
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `answer ${attempts.length}` } as BaseEvent;
    if (attempts.length <= times) {
      const metadata = retryAfterMs === undefined ? {} : { metadata: { retryAfterMs } };
      yield { type: EventType.RUN_ERROR, message: "Too many", code: "RATE_LIMITED", ...metadata } as BaseEvent;
      return;
    }
    yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
  });
  return { agent, attempts };
}

/** A tab that follows a thread with such an agent; what `run$` said. */
function tabOf(agent: AbstractAgent, policy: AgentPolicy) {
  const { connect } = hostOf({ agents: { test: agent }, agentPolicies: { test: policy } });
  const runtime = connect();
  const tab = runtime.agent("test", { threadId: "t" });
  const told: ThreadRun[] = [];
  tab.run$.subscribe((run) => told.push(run));
  tab.follow();
  tab.addMessage({ id: "u", role: "user", content: "?" });
  void tab.runAgent({ runId: "r" }).catch(() => undefined);
  const last = (): ThreadRun => told.at(-1)!;
  const recovery = () => {
    const run = last();
    return run.is === "idle" ? run.last?.recovery : undefined;
  };
  return { runtime, tab, told, last, recovery };
}

const AUTO: AgentPolicy = { recovery: { backoffMs: 0 } };
const LONG_MS = 3_600_000;

describe("a run that failed in a way that may pass (issue 16)", () => {
  test("goes on by itself, and each tab is told; its reader sees one answer", async () => {
    const { agent, attempts } = failing(2);
    const { tab, told, last } = tabOf(agent, AUTO);
    await until(() => expect(last()).toMatchObject({ is: "idle", last: { runId: "r~3", status: "finished" } }));
    expect(attempts).toEqual([undefined, 2, 3]);
    expect(tab.messages.map(({ content }) => content)).toEqual(["?", "answer 3"]);
    const running = told.flatMap((run) => (run.is === "running" ? [run.attempt] : []));
    expect(running).toEqual(
      expect.arrayContaining([
        { of: "r", number: 2 },
        { of: "r~2", number: 3 },
      ]),
    );
  });

  test("is given up after its last attempt, and the log says so", async () => {
    const { agent, attempts } = failing(9);
    const { runtime, recovery } = tabOf(agent, { recovery: { backoffMs: 0, maxAttempts: 2 } });
    const note = { is: "gave-up", why: "attempts", attempts: 2 };
    await until(() => expect(recovery()).toEqual(note));
    expect(attempts).toHaveLength(2);
    expect((await runtime.runner().listRuns("t"))[0]).toMatchObject({
      runId: "r~2",
      status: "errored",
      recovery: note,
    });
  });

  test("waits as long as its server says, as a waiting run that can be cancelled: then it is given up", async () => {
    const { agent, attempts } = failing(1, LONG_MS);
    const { runtime, recovery } = tabOf(agent, AUTO);
    await until(() =>
      expect(recovery()).toMatchObject({ is: "waiting", runId: "r~2", attempt: 2, at: expect.any(Number) }),
    );
    const waiting = await runtime.waiting.list("t");
    expect(shown(waiting)).toEqual(["r~2 retry"]);
    expect(waiting[0]?.attempt).toEqual({ of: "r", number: 2 });
    expect(await runtime.waiting.cancel("t", "r~2")).toBe(true);
    await until(() => expect(recovery()).toEqual({ is: "gave-up", why: "cancelled", attempts: 1 }));
    expect(attempts).toHaveLength(1);
    expect(await runtime.waiting.list("t")).toEqual([]);
  });

  test("leaves a note when the thread goes on first, and holds up nothing that waits (L13)", async () => {
    const { agent, attempts } = failing(1, LONG_MS);
    const { runtime, tab, recovery } = tabOf(agent, AUTO);
    await until(() => expect(recovery()).toMatchObject({ is: "waiting" }));
    tab.addMessage({ id: "u2", role: "user", content: "never mind" });
    await tab.runAgent({ runId: "s" });
    await until(async () => expect(await runtime.waiting.list("t")).toEqual([]));
    expect(await runtime.runner().listRuns("t")).toMatchObject([
      { runId: "s", status: "finished" },
      { runId: "r", recovery: { is: "gave-up", why: "went-on", attempts: 1 } },
    ]);
    tab.addMessage({ id: "u3", role: "user", content: "more" });
    await tab.runAgent({ runId: "q", onBusy: "queue" });
    expect(attempts).toHaveLength(3);
  });

  test("and that can be started now", async () => {
    const { agent, attempts } = failing(1, LONG_MS);
    const { runtime, last, recovery } = tabOf(agent, AUTO);
    await until(() => expect(recovery()).toMatchObject({ is: "waiting", at: expect.any(Number) }));
    expect(await runtime.waiting.retry("t", "r~2")).toBe(true);
    await until(() => expect(last()).toMatchObject({ is: "idle", last: { status: "finished" } }));
    expect(attempts).toHaveLength(2);
  });

  test("does nothing by itself without a policy, or with ask", async () => {
    for (const policy of [{}, { recovery: "ask" }] as const) {
      const { agent, attempts } = failing(1);
      const { runtime, last, recovery } = tabOf(agent, policy);
      await until(() => expect(last()).toMatchObject({ is: "idle", last: { status: "errored" } }));
      expect(await runtime.waiting.list("t")).toEqual([]);
      expect([recovery(), attempts.length]).toEqual([undefined, 1]);
    }
  });
});

describe("a row that somebody has changed in the database", () => {
  /** @param change of the row, or a row that was not there */
  async function changed(dbName: string, change: (row: object | undefined) => object): Promise<void> {
    const db = await openDB(dbName);
    const [row] = (await db.getAll("waiting")) as object[];
    await db.put("waiting", change(row));
    db.close();
  }

  test("hands the thread to no other agent, also where it says that all is decided", async () => {
    const dbName = freshDb();
    const [own, other] = [failing(1, LONG_MS), failing(0)];
    const agentPolicies = { test: AUTO, other: AUTO };
    const { connect } = hostOf({ dbName, agents: { test: own.agent, other: other.agent }, agentPolicies });
    const runtime = connect();
    const tab = runtime.agent("test", { threadId: "t" });
    tab.addMessage({ id: "u", role: "user", content: "?" });
    await tab.runAgent({ runId: "r" }).catch(() => undefined);
    await until(async () => expect(shown(await runtime.waiting.list("t"))).toEqual(["r~2 retry"]));
    await changed(dbName, (row) => ({ ...row, agentId: "other" }));
    expect(await runtime.waiting.retry("t", "r~2")).toBe(true);
    await until(async () => expect(await runtime.waiting.list("t")).toEqual([]));
    expect(other.attempts).toEqual([]);
    expect(await runtime.runner().listRuns("t")).toMatchObject([
      { runId: "r", recovery: { is: "ask", why: "unreadable" } },
    ]);
  });

  test("runs nothing again that was left to a person", async () => {
    const dbName = freshDb();
    let attempts = 0;
    const agent = agentOf(async function* () {
      attempts++;
      yield { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "pay" } as BaseEvent;
      yield { type: EventType.TOOL_CALL_END, toolCallId: "c" } as BaseEvent;
      yield { type: EventType.RUN_ERROR, message: "Too many", code: "RATE_LIMITED" } as BaseEvent;
    });
    const { connect } = hostOf({ dbName, agents: { test: agent }, agentPolicies: { test: AUTO } });
    const runtime = connect();
    const tab = runtime.agent("test", { threadId: "t" });
    tab.addMessage({ id: "u", role: "user", content: "?" });
    await tab.runAgent({ runId: "r" }).catch(() => undefined);
    const note = { is: "ask", why: "tools-started", tools: ["pay"] };
    await until(async () => expect(await runtime.runner().listRuns("t")).toMatchObject([{ recovery: note }]));
    await changed(dbName, () => ({
      kind: "recovery",
      threadId: "t",
      position: 0,
      runId: "r~2",
      agentId: "test",
      since: 1,
      notBefore: 1,
      attempt: { of: "r", number: 2 },
      of: "r",
      ofIndex: 0,
    }));
    expect(await runtime.waiting.retry("t", "r~2")).toBe(true);
    await until(async () => expect(await runtime.waiting.list("t")).toEqual([]));
    expect(attempts).toBe(1);
    expect(await runtime.runner().listRuns("t")).toMatchObject([{ runId: "r", recovery: note }]);
  });
});

test("an attempt that lacks an answer is left to a person, and holds up nothing", async () => {
  const dbName = freshDb();
  const interrupts = [{ id: "i", reason: "confirm" }];
  const agent = agentOf(async function* ({ threadId, runId }) {
    if (runId === "r2") {
      yield {
        type: EventType.RUN_ERROR,
        message: "Too many",
        code: "RATE_LIMITED",
        metadata: { retryAfterMs: LONG_MS },
      } as BaseEvent;
    } else {
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
    }
  });
  const { connect } = hostOf({ dbName, agents: { test: agent }, agentPolicies: { test: AUTO } });
  const runtime = connect();
  const tab = runtime.agent("test", { threadId: "t" });
  await tab.runAgent({ runId: "r1" });
  await tab.runAgent({ runId: "r2", resume: [{ interruptId: "i", status: "resolved" }] }).catch(() => undefined);
  await until(async () => expect(shown(await runtime.waiting.list("t"))).toEqual(["r2~2 retry"]));
  const db = await openDB(dbName);
  for (const row of (await db.getAll("runs")) as { input: object }[]) {
    await db.put("runs", { ...row, input: { ...row.input, resume: [] } });
  }
  db.close();
  expect(await runtime.waiting.retry("t", "r2~2")).toBe(true);
  await until(async () => expect(await runtime.waiting.list("t")).toEqual([]));
  expect((await runtime.runner().listRuns("t"))[0]).toMatchObject({
    runId: "r2",
    recovery: { is: "ask", why: "unreadable" },
  });
});

test("policies are checked by name and kind", () => {
  const bad: unknown[] = [
    { recovery: "always" },
    { recovery: { maxAttempts: 0 } },
    { recovery: { noProgressMs: -1 } },
    { recovery: { retries: 3 } },
    { recovery: { on: ["stopped"] } },
    { recovery: { repeatableTools: "search" } },
  ];
  for (const policy of bad) {
    const agentPolicies = { test: policy as AgentPolicy }; // what no compiler lets pass
    expect(() => new AgentRuntime({ agents: {}, agentPolicies, logger: quiet })).toThrow(RunnerError);
  }
});
