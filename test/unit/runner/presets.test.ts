import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { concat, NEVER, Observable, of } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import {
  agentOf,
  collect,
  counter,
  eventsOfFrame,
  framesUntil,
  inputOf,
  makeMemoryRunner,
  makeRunner as makeDurable,
  PRESETS,
  rawAgent,
  rebuild,
  replay,
  silent,
  stubborn,
  user,
} from "./kit.js";

/** What a hostile reading of the runner found, kept so that it is not found again. */
const ids = (messages: readonly { id: string }[]): string[] => messages.map(({ id }) => id);
const run = (runner: LocalAgentRunner, runId: string, agent = agentOf(counter(1)), messages?: Message[]) =>
  collect(runner.run({ threadId: "t", agent, input: inputOf("t", runId, messages) }));
const untilLive = (runner: LocalAgentRunner, runId: string): Promise<void> =>
  vi.waitFor(async () => expect((await runner.listThreads())[0]?.live?.runId).toBe(runId));
const answer = (id: string): Message => ({ id, role: "assistant", content: "0 " });

describe.each(PRESETS)("%s", (_name, makeRunner) => {
  test("one agent for two runs, one after the other: each has its own thread and log (L1)", async () => {
    const runner = makeRunner();
    const seen: string[][] = [];
    const agent = rawAgent(({ threadId, runId, messages }) => {
      seen.push(ids(messages));
      return of<BaseEvent[]>(
        { type: EventType.RUN_STARTED, threadId, runId },
        { type: EventType.CUSTOM, name: runId, value: 1 },
      );
    });
    await run(runner, "r1", agent, [user("u1")]);
    await run(runner, "r2", agent, [user("u2")]);
    expect(seen).toEqual([["u1"], ["u1", "u2"]]);
    for (const runId of ["r1", "r2"]) {
      const customs = (await runner.getRunEvents(runId, { types: [EventType.CUSTOM] })).map(
        ({ event }) => event["name"],
      );
      expect(customs).toEqual([runId]);
    }
    expect(Object.keys(agent).filter((key) => ["apply", "run", "onError"].includes(key))).toEqual([]);
  });

  test.each(["completes", "never completes"])("an agent that %s can run again on its own end (L5)", async (how) => {
    const runner = makeRunner();
    const agent = rawAgent(({ threadId, runId }) => {
      const events$ = of<BaseEvent[]>(
        { type: EventType.RUN_STARTED, threadId, runId },
        { type: EventType.RUN_FINISHED, threadId, runId },
      );
      return how === "completes" ? events$ : concat(events$, NEVER);
    });
    for (let n = 0; n < 20; n++) {
      await new Promise<void>((resolve, reject) => {
        runner.run({ threadId: "t", agent, input: inputOf("t", `r${n}`) }).subscribe({
          next: (event) => event.type === EventType.RUN_FINISHED && resolve(),
          error: reject,
        });
      });
    }
    expect(new Set((await runner.listRuns("t")).map(({ status }) => status))).toEqual(new Set(["finished"]));
  });

  test("one agent for two runs at once is refused; a clone taken meanwhile is an agent like any other", async () => {
    const runner = makeRunner();
    const open: BaseEvent = { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" };
    let endless = true;
    const agent = rawAgent(({ threadId, runId }) => {
      const started: BaseEvent = { type: EventType.RUN_STARTED, threadId, runId };
      return endless ? concat(of(started, open), NEVER) : of(started, { ...started, type: EventType.RUN_FINISHED });
    });
    const live = run(runner, "r1", agent);
    await vi.waitFor(async () => expect((await runner.getRunEvents("r1")).length).toBe(2));
    const again = (): unknown => runner.run({ threadId: "other", agent, input: inputOf("other", "r") });
    expect(again).toThrow(expect.objectContaining({ code: "invalid-input", details: { field: "agent" } }));
    const clone = agent.clone() as typeof agent;
    endless = false;
    await runner.stop({ threadId: "t" });
    await live;
    expect((await run(runner, "r2", clone)).at(-1)?.type).toBe(EventType.RUN_FINISHED);
    expect((await run(runner, "r3", agent)).at(-1)?.type).toBe(EventType.RUN_FINISHED);
  });

  test("who subscribes to a run that was deleted is told so, and nothing spins (L13)", async () => {
    const runner = makeRunner();
    // More than what is kept in memory, each committed for itself.
    const slow = agentOf(counter(500, () => new Promise((resolve) => setImmediate(resolve))));
    const run$ = runner.run({ threadId: "t", agent: slow, input: inputOf("t", "r") });
    await collect(run$);
    await runner.clearThreads();
    await expect(collect(run$)).rejects.toMatchObject({ code: "deleted", details: { runId: "r" } });
  });

  test("an input that is refused supersedes nothing (L7)", async () => {
    const runner = makeRunner({ onConcurrentRun: "supersede" });
    const old = run(runner, "old", stubborn());
    await untilLive(runner, "old");
    const circle: Record<string, unknown> = {};
    circle["itself"] = circle;
    for (const metadata of [{ n: 1n }, circle]) {
      const bad = { ...user("x"), metadata } as unknown as Message;
      const refused = (): unknown =>
        runner.run({ threadId: "t", agent: stubborn(), input: inputOf("t", "bad", [bad]) });
      expect(refused).toThrow(expect.objectContaining({ code: "invalid-input" }));
    }
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
    await run(runner, "new");
    expect((await old).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  });

  test("no time limit is what Infinity says; what is no time is refused", async () => {
    const runner = makeRunner({ maxRunMs: Infinity, maxQueuedRuns: Infinity });
    expect((await run(runner, "r", agentOf(counter(20)))).at(-1)?.type).toBe(EventType.RUN_FINISHED);
    const month = makeRunner({ maxRunMs: 30 * 24 * 60 * 60_000 });
    expect((await run(month, "r2", agentOf(counter(20)))).at(-1)?.type).toBe(EventType.RUN_FINISHED);
    for (const options of [
      { maxRunMs: Number.NaN },
      { maxRunMs: -1 },
      { stopGraceMs: Infinity },
      { stopGraceMs: -1 },
      { maxQueuedRuns: Number.NaN },
    ]) {
      expect(() => makeRunner(options)).toThrow(expect.objectContaining({ code: "invalid-input" }));
    }
  });

  test.each(["queue", "supersede"] as const)(
    "%s: messages that were sent while a run was live are no cut of its answer (L2)",
    async (onConcurrentRun) => {
      const runner = makeRunner({ onConcurrentRun });
      const gate = vi.fn<(step: number) => Promise<void> | undefined>();
      let goOn!: () => void;
      gate.mockImplementation((step) => (step === 1 ? new Promise((resolve) => (goOn = resolve)) : undefined));
      const [u1, u2] = [user("u1"), user("u2")];
      const first = run(runner, "r1", agentOf(counter(2, gate)), [u1]);
      await vi.waitFor(async () => expect(ids(await runner.getThreadMessages("t"))).toEqual(["u1", "r1-a"]));
      await vi.waitFor(() => expect(gate).toHaveBeenCalledTimes(2));
      const second = run(runner, "r2", agentOf(counter(1)), [u1, u2]);
      goOn();
      await Promise.all([first, second]);
      expect(ids(await runner.getThreadMessages("t"))).toEqual(["u1", "r1-a", "u2", "r2-a"]);
    },
  );

  test("a branch in the middle of a run shows what it keeps of that run, then what the sender adds (L2)", async () => {
    const runner = makeRunner();
    let given: string[] = [];
    await run(runner, "r1", agentOf(counter(1)), [user("u1")]);
    const looking = agentOf(async function* (input, context) {
      given = ids(input.messages);
      yield* counter(1)(input, context);
    });
    const input = inputOf("t", "r2", [user("u1"), user("u2")]);
    await collect(runner.run({ threadId: "t", agent: looking, input, branchBefore: "r1-a" }));
    expect(given).toEqual(["u1", "u2"]);
    for (const messages of [await runner.getThreadMessages("t"), (await rebuild(await replay(runner, "t"))).messages]) {
      expect(ids(messages)).toEqual(["u1", "u2", "r2-a"]);
    }
  });

  test("a branch says the state that it starts from (L4)", async () => {
    const runner = makeRunner();
    const stating = (n: number) =>
      agentOf(async function* (input, context) {
        yield { type: EventType.STATE_SNAPSHOT, snapshot: { n, list: [] } };
        yield* counter(1)(input, context);
      });
    const events = await run(runner, "r1", stating(1), [user("u1")]);
    events.push(...(await run(runner, "r2", stating(2), [user("u1"), answer("r1-a"), user("u2")])));
    const adding = agentOf(async function* () {
      yield { type: EventType.STATE_DELTA, delta: [{ op: "add", path: "/list/-", value: 9 }] } as BaseEvent;
    });
    events.push(...(await run(runner, "r3", adding, [user("u1"), answer("r1-a"), user("u2", "edited")])));
    expect(await runner.getThreadState("t")).toEqual({ n: 1, list: [9] });
    expect((await rebuild(events)).state).toEqual({ n: 1, list: [9] });
  });

  test.each([
    ["cut", { limits: { maxRunsPerThread: 1 } }],
    ["deleted", {}],
  ])("who reads while a thread is %s reads the whole or nothing, and no error (L2, L10)", async (how, options) => {
    const runner = makeRunner(options);
    const counts = new Set<number>();
    for (let round = 0; round < 8; round++) {
      const before = (await runner.getThreadMessages("t")).length;
      await run(runner, `r${round}`);
      const deleting = how === "deleted" ? runner.clearThreads() : undefined;
      const reads: Promise<number>[] = [];
      for (let n = 0; n < 6; n++) {
        for (let k = 0; k < 3 * n; k++) await Promise.resolve();
        reads.push(
          runner.getThreadMessages("t").then(({ length }) => length),
          runner.getThreadEvents("t").then(async (events) => (await rebuild(events)).messages.length),
          replay(runner, "t").then(async (events) => (await rebuild(events)).messages.length),
          framesUntil(runner, { threadId: "t" }).then(
            async (frames) => (await rebuild(frames.flatMap(eventsOfFrame))).messages.length,
          ),
        );
      }
      for (const length of await Promise.all(reads)) counts.add(length - before);
      await deleting;
    }
    const allowed = how === "deleted" ? [0, 2] : [2];
    expect([...counts].filter((count) => !allowed.includes(count))).toEqual([]);
  });

  test("a subscriber that changes an event does not change the log (L1)", async () => {
    const runner = makeRunner();
    const agent = agentOf(counter(2));
    agent.subscribe({ onEvent: ({ event }) => void Object.assign(event, { messageId: "another" }) });
    await run(runner, "r", agent);
    const events = (await runner.getRunEvents("r")).map(({ event }) => event["messageId"] ?? "r-a");
    expect(new Set(events)).toEqual(new Set(["r-a"]));
  });

  test("a thread whose runs wait is not idle: no limit evicts it", async () => {
    const runner = makeRunner({ onConcurrentRun: "queue", limits: { maxThreads: 1 } });
    const task = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const runs = ["t", "other"].flatMap((threadId) =>
      [1, 2, 3].map((n) =>
        collect(runner.run({ threadId, agent: agentOf(counter(2, task)), input: inputOf(threadId, `r${n}`) })),
      ),
    );
    await Promise.all(runs);
    await vi.waitFor(async () => expect(await runner.listThreads()).toHaveLength(1));
    const [left] = await runner.listThreads();
    expect(await runner.getThreadMessages(left!.threadId)).toHaveLength(6);
  });

  test("who asks the moment that a run is over waits behind the queue (L5)", async () => {
    const runner = makeRunner({ onConcurrentRun: "queue" });
    const start = (runId: string) =>
      runner.start({ threadId: "t", agentId: "a", agent: agentOf(counter(1)), input: inputOf("t", runId) });
    const first = start("a");
    const second = start("b");
    await first.ended;
    await Promise.all([second.ended, start("c").ended]);
    expect((await runner.listRuns("t")).map(({ runId }) => runId)).toEqual(["c", "b", "a"]);
  });

  test("two messages of one id: the runner that had the run and every other show the same (L2)", async () => {
    const runner = makeRunner();
    const calling = (call: string) =>
      agentOf(async function* () {
        yield { type: EventType.TOOL_CALL_START, toolCallId: call, toolCallName: "f" };
        yield { type: EventType.TOOL_CALL_END, toolCallId: call };
        yield { type: EventType.TOOL_CALL_RESULT, toolCallId: call, messageId: "same", content: call };
      });
    await run(runner, "r1", calling("c1"));
    await run(runner, "r2", calling("c2"));
    await run(runner, "r3");
    const fresh = makeRunner({ dbName: runner.dbName });
    const shown = await runner.getThreadMessages("t");
    expect(ids(shown)).toEqual(["r1-u", "c1", "same", "r2-u", "c2", "same", "r3-u", "r3-a"]);
    expect(await fresh.getThreadMessages("t")).toEqual(shown);
    expect((await rebuild(await replay(fresh, "t"))).messages).toEqual(shown);
    await run(fresh, "r4");
    expect(await runner.getThreadMessages("t")).toEqual(await fresh.getThreadMessages("t"));
  });

  test("what the caller persists of the messages is what the log has", async () => {
    const runner = makeRunner();
    const system: Message = { id: "sys", role: "system", content: "be kind" };
    let given: string[] = [];
    const agent = agentOf(async function* (input, context) {
      given = ids(input.messages);
      yield* counter(1)(input, context);
    });
    const input = inputOf("t", "r", [system, user("u")]);
    await collect(runner.run({ threadId: "t", agent, input, persistedInputMessages: [user("u")] }));
    expect(given).toEqual(["sys", "u"]);
    expect(ids(await runner.getThreadMessages("t"))).toEqual(["u", "r-a"]);
  });

  test("who follows a thread that is deleted is left with nothing (L2)", async () => {
    const runner = makeRunner();
    await run(runner, "r");
    const events: BaseEvent[] = [];
    const reading = new AbortController();
    const frames = runner.attach({ threadId: "t", follow: true }, reading.signal);
    for await (const frame of frames) {
      events.push(...eventsOfFrame(frame));
      if (frame.type === "idle") await runner.clearThreads();
      else if ((await runner.listThreads()).length === 0) break;
    }
    reading.abort();
    expect((await rebuild(events)).messages).toEqual([]);
  });

  test("an agent may freeze its input", async () => {
    const runner = makeRunner();
    const agent = rawAgent(
      (input) =>
        new Observable((subscriber) => {
          Object.freeze(input);
          subscriber.next({ type: EventType.RUN_STARTED, threadId: input.threadId, runId: input.runId });
          subscriber.next({ type: EventType.CUSTOM, name: "messages", value: input.messages.length });
          subscriber.complete();
        }),
    );
    expect((await run(runner, "r", agent)).map((event) => event["value"])).toContain(1);
  });

  test("a queued run is stopped once (L11)", async () => {
    const runner = makeRunner({ onConcurrentRun: "queue" });
    const first = run(runner, "a", agentOf(silent));
    const second = expect(run(runner, "b")).rejects.toMatchObject({ code: "cancelled" });
    const stop = { threadId: "t", runId: "b" };
    expect(await Promise.all([runner.stop(stop), runner.stop(stop)])).toEqual([true, false]);
    await second;
    await vi.waitFor(async () => expect(await runner.stop({ threadId: "t" })).toBe(true));
    await first;
  });

  test.each([
    ["after", { after: Number.NaN }],
    ["after", { after: "5" }],
    ["types", { types: "RUN_STARTED" }],
    ["types", { types: [5] }],
    ["limit", { limit: "5" }],
  ])("a query whose %s means nothing is refused: %o", async (field, query) => {
    const runner = makeRunner();
    await run(runner, "r");
    const refused = { code: "invalid-input", details: { field } };
    await expect(runner.getRunEvents("r", query as object)).rejects.toMatchObject(refused);
    expect((await runner.getRunEvents("r", { after: -9 }))[0]?.seq).toBe(0);
    await expect(runner.listRuns("t", { status: "done" as "finished" })).rejects.toMatchObject({
      code: "invalid-input",
    });
    await expect(runner.listThreads({ before: "5" as unknown as number })).rejects.toMatchObject({
      details: { field: "before" },
    });
  });
});

test("a limit of so many runs keeps them, and regenerated answers count (limits)", async () => {
  for (const makeRunner of [makeDurable, makeMemoryRunner]) {
    const runner = makeRunner({ limits: { maxRunsPerThread: 3 } });
    for (let n = 0; n < 12; n++) await run(runner, `r${n}`, agentOf(counter(1)), [user("u")]);
    await vi.waitFor(async () => {
      const events = await Promise.all((await runner.listRuns("t")).map(({ runId }) => runner.getRunEvents(runId)));
      expect(events.filter(({ length }) => length > 0).length).toBeLessThanOrEqual(3);
    });
    expect(ids(await runner.getThreadMessages("t"))).toEqual(["u", "r11-a"]);
  }
});
