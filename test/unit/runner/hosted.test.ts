import { EventType, type BaseEvent } from "@ag-ui/client";
import { Observable } from "rxjs";
import { describe, expect, test } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import type { FailurePoint } from "../../../src/run/failure-points.js";
import type { ContinuingAgent, HostedRun } from "../../../src/run/hosted.js";
import { agentOf, collect, freshDb, gated, inputOf, makeRunner, PRESETS, rawAgent, user } from "./kit.js";

const say = (delta: string): BaseEvent => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta });
const start: BaseEvent = { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" };

describe.each(PRESETS)("%s tells a hosted agent what is committed", (_name, make) => {
  test("context.committed() resolves once all that was yielded is in the log (L8)", async () => {
    const committed: string[] = [];
    let appends = 0;
    const runner = make({
      atFailurePoint: async (point: FailurePoint) => void (point === "appending.committed" && appends++),
    });
    const agent = agentOf(async function* (_input, context) {
      yield start;
      await context.committed();
      committed.push(`start: ${appends > 0}`);
      const before = appends;
      for (let n = 0; n < 5_000; n++) yield say("x");
      await context.committed();
      committed.push(`burst: ${appends > before}`);
      const last = (await runner.getRunEvents("r", { threadId: "t", after: 4_000, limit: 5_000 })).at(-1);
      committed.push(`in the log: ${last?.seq}`);
    });
    await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r", [user("u")]) }));
    // RUN_STARTED, start, 5,000 deltas.
    expect(committed).toEqual(["start: true", "burst: true", "in the log: 5001"]);
  });

  test("it waits while the log does not answer, and is not held up by what is emitted later", async () => {
    const { gate, letOn } = gated();
    let holds = false;
    const runner = make({
      atFailurePoint: async (point: FailurePoint) => {
        if (holds && point === "appending.packed") await gate;
      },
    });
    const order: string[] = [];
    const agent = agentOf(async function* (_input, { committed }) {
      yield start;
      await committed();
      holds = true;
      yield say("a");
      const first = committed().then(() => order.push("committed"));
      await Promise.resolve();
      order.push("asked");
      letOn();
      await first;
    });
    await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r", [user("u")]) }));
    expect(order).toEqual(["asked", "committed"]);
  });

  test("it rejects once the run is over: no side effect may follow", async () => {
    const runner = make();
    const { gate, letOn } = gated();
    let hosted: HostedRun | undefined;
    const agent = agentOf(async function* (_input, context) {
      hosted = context;
      yield start;
      await gate;
    });
    const run = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r", [user("u")]) }));
    letOn();
    await run;
    await expect(hosted?.committed()).rejects.toSatisfy((error) => RunnerError.is(error, "fenced"));
  });
});

test("an agent of its own class is told where it continues; others are not touched", async () => {
  const told: unknown[] = [];
  const make = (continues: boolean) => {
    const agent = rawAgent((input) => {
      const { hosted } = agent as Partial<ContinuingAgent>;
      told.push(typeof hosted?.committed);
      return new Observable<BaseEvent>((subscriber) => {
        subscriber.next({ type: EventType.RUN_STARTED, threadId: input.threadId, runId: input.runId });
        subscriber.next({ type: EventType.RUN_FINISHED, threadId: input.threadId, runId: input.runId });
        subscriber.complete();
      });
    });
    return continues ? Object.assign(agent, { continues: true }) : agent;
  };
  const runner = makeRunner();
  for (const continues of [true, false]) {
    const threadId = `t-${continues}`;
    await collect(runner.run({ threadId, agent: make(continues), input: inputOf(threadId, "r", [user("u")]) }));
  }
  expect(told).toEqual(["function", "undefined"]);
});

test("a log that cannot be written rejects it with the reason", async () => {
  const dbName = freshDb();
  const error = new RunnerError("quota-exceeded", { dbName });
  let fails = false;
  const runner = makeRunner({
    dbName,
    atFailurePoint: async (point: FailurePoint) => {
      if (fails && point === "appending.packed") throw error;
    },
  });
  let seen: unknown;
  const agent = agentOf(async function* (_input, { committed }) {
    yield start;
    await committed();
    fails = true;
    yield say("a");
    seen = await committed().catch((thrown: unknown) => thrown);
  });
  await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r", [user("u")]) })).catch(() => undefined);
  expect(seen).toBe(error);
});
