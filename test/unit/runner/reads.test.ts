import { EventType, type BaseEvent } from "@ag-ui/client";
import { EMPTY, throwError } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  inputOf,
  PRESETS,
  rawAgent,
  rebuild,
  replay,
  silent,
  textOf,
  user,
} from "./kit.js";

const run = (runner: LocalAgentRunner, runId: string, agent = agentOf(counter(3)), threadId = "t") =>
  collect(runner.run({ threadId, agent, input: inputOf(threadId, runId) }));
const setState = (state: unknown) =>
  agentOf(async function* () {
    yield { type: EventType.STATE_SNAPSHOT, snapshot: state } as BaseEvent;
  });

describe.each(PRESETS)("%s: reads", (_name, makeRunner) => {
  test("runs are listed newest first, by status and in pages", async () => {
    const runner = makeRunner();
    const failing = rawAgent(() => throwError(() => new Error("boom")));
    for (let n = 0; n < 6; n++) await run(runner, `r${n}`, n % 3 === 2 ? failing : agentOf(counter(1)));
    const ids = async (query: Parameters<LocalAgentRunner["listRuns"]>[1]): Promise<string[]> =>
      (await runner.listRuns("t", query)).map(({ runId }) => runId);
    expect(await ids({})).toEqual(["r5", "r4", "r3", "r2", "r1", "r0"]);
    expect(await ids({ limit: 2 })).toEqual(["r5", "r4"]);
    expect(await ids({ limit: 2, before: 4 })).toEqual(["r3", "r2"]);
    expect(await ids({ status: "errored" })).toEqual(["r5", "r2"]);
    expect(await ids({ status: "finished", before: 3, limit: 1 })).toEqual(["r1"]);
    expect(await ids({ status: "broken" })).toEqual([]);
    expect(await ids({ limit: 0 })).toEqual([]);
    expect(await runner.listRuns("unknown")).toEqual([]);
    await expect(runner.listRuns("t", { limit: Number.NaN })).rejects.toMatchObject({ code: "invalid-input" });
    await expect(runner.listRuns("")).rejects.toMatchObject({ code: "invalid-input" });
  });

  test("a run tells where it comes from: the parent that the caller named, else the thread's last run", async () => {
    const runner = makeRunner();
    await run(runner, "r0");
    const given: unknown[] = [];
    const looking = rawAgent(({ parentRunId }) => {
      given.push(parentRunId);
      return EMPTY;
    });
    await run(runner, "r1", looking);
    const named = { ...inputOf("t", "r2"), parentRunId: "elsewhere" };
    const events = await collect(runner.run({ threadId: "t", agent: looking, input: named }));
    const parents = (await runner.listRuns("t")).map(({ runId, parentRunId, prevRunIndex }) => ({
      runId,
      parentRunId,
      prevRunIndex,
    }));
    expect(parents).toEqual([
      { runId: "r2", parentRunId: "elsewhere", prevRunIndex: 1 },
      { runId: "r1", parentRunId: "r0", prevRunIndex: 0 },
      { runId: "r0", parentRunId: undefined, prevRunIndex: null },
    ]);
    // AG-UI's field is the caller's alone: it goes to the agent, and is not made up in the log.
    expect(given).toEqual([undefined, "elsewhere"]);
    const replayed = await replay(runner, "t");
    for (const event of [...events, ...replayed]) expect(event).not.toHaveProperty("parentRunId");
    // A parent that nobody knows hides no run.
    const started = replayed.filter(({ type }) => type === EventType.RUN_STARTED);
    expect(started.map((event) => event["runId"])).toEqual(["r0", "r1", "r2"]);
  });

  test("the events of a run, each as recorded, by type, seq and limit", async () => {
    const runner = makeRunner();
    await run(runner, "r", agentOf(counter(20)));
    const all = await runner.getRunEvents("r");
    expect(all.map(({ seq }) => seq)).toEqual(Array.from({ length: 24 }, (_, seq) => seq));
    expect(textOf(all.map(({ event }) => event))).toBe(counted(20));
    const contents = { types: [EventType.TEXT_MESSAGE_CONTENT] };
    expect((await runner.getRunEvents("r", { ...contents, after: 10, limit: 3 })).map(({ seq }) => seq)).toEqual([
      11, 12, 13,
    ]);
    expect(await runner.getRunEvents("r", { ...contents, after: 23 })).toEqual([]);
    expect(await runner.getRunEvents("r", { types: [] })).toEqual([]);
    expect(await runner.getRunEvents("unknown")).toEqual([]);
  });

  test("a run id that several threads have must come with its thread", async () => {
    const runner = makeRunner();
    await run(runner, "r", agentOf(counter(1)), "t1");
    await run(runner, "r", agentOf(counter(2)), "t2");
    await run(runner, "only", agentOf(counter(1)), "t2");
    await expect(runner.getRun("r")).rejects.toMatchObject({ code: "invalid-input", details: { field: "threadId" } });
    await expect(runner.getRunEvents("r")).rejects.toMatchObject({ code: "invalid-input" });
    expect(await runner.getRun("r", { threadId: "t2" })).toMatchObject({ threadId: "t2", status: "finished" });
    expect(await runner.getRun("only")).toMatchObject({ threadId: "t2" });
    expect(await runner.getRun("only", { threadId: "t1" })).toBeUndefined();
    expect(textOf((await runner.getRunEvents("r", { threadId: "t1" })).map(({ event }) => event))).toBe(counted(1));
  });

  test("messages, state and events of a thread, also in the middle of a run and of another runner's", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    for (const runner of [one, other]) {
      expect(await runner.getThreadMessages("t")).toEqual([]);
      expect(await runner.getThreadState("t")).toBeUndefined();
      expect(await runner.getThreadEvents("t")).toEqual([]);
    }
    await run(one, "r0", setState({ a: 1 }));
    const live = run(one, "r1", agentOf(silent));
    await vi.waitFor(async () => expect(await one.getRunEvents("r1")).toHaveLength(2));
    for (const runner of [one, other]) {
      expect((await runner.getThreadMessages("t")).map(({ id }) => id)).toEqual(["r0-u", "r1-u", "r1-a"]);
      expect(await runner.getThreadState("t")).toEqual({ a: 1 });
      const { messages, state } = await rebuild(await runner.getThreadEvents("t"));
      expect([messages.length, state]).toEqual([3, { a: 1 }]);
    }
    await one.stop({ threadId: "t" });
    await live;
    expect(await other.getThreadMessages("t")).toEqual(await one.getThreadMessages("t"));
  });

  test("what is handed out is the caller's own: changing it changes nothing", async () => {
    const runner = makeRunner();
    await run(runner, "r", setState({ list: [1] }));
    const spoil = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      for (const key of Object.keys(value)) {
        spoil((value as Record<string, unknown>)[key]);
        (value as Record<string, unknown>)[key] = "spoilt";
      }
    };
    const readings = async (): Promise<unknown[]> => [
      await runner.getThreadMessages("t"),
      await runner.getThreadState("t"),
      await runner.getThreadEvents("t"),
      await runner.getRunEvents("r"),
      await runner.getRun("r"),
      await runner.listRuns("t"),
      await runner.listThreads(),
      await replay(runner, "t"),
      await run(runner, "r"),
    ];
    const before = structuredClone(await readings());
    (await readings()).forEach(spoil);
    expect(await readings()).toEqual(before);
    await run(runner, "next");
    expect((await runner.getThreadMessages("t"))[0]).toEqual(user("r-u"));
  });
});
