import { EventType, type BaseEvent } from "@ag-ui/client";
import { concat, NEVER, of, throwError } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  gated,
  inputOf,
  PRESETS,
  rawAgent,
  rebuild,
  replay,
  silent,
  stubborn,
  textOf,
  user,
} from "./kit.js";

const types = (events: readonly BaseEvent[]): string[] => events.map((event) => event.type);
const last = (events: readonly BaseEvent[]): BaseEvent => events.at(-1)!;

describe.each(PRESETS)("%s: run", (_name, makeRunner) => {
  test("starts at the call, subscribed or not, and unsubscribing does not stop it (L11)", async () => {
    const runner = makeRunner();
    const run$ = runner.run({ threadId: "t", agent: agentOf(counter(50)), input: inputOf("t", "r") });
    run$.subscribe().unsubscribe();
    await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(false));
    expect(textOf(await replay(runner, "t"))).toBe(counted(50));
  });

  test("each subscriber gets the run from its first event", async () => {
    const runner = makeRunner();
    const run$ = runner.run({ threadId: "t", agent: agentOf(counter(50)), input: inputOf("t", "r") });
    const [one, other] = await Promise.all([collect(run$), collect(run$)]);
    const late = await collect(run$);
    expect(other).toEqual(one);
    expect(late).toEqual(one);
    expect(types(one).at(0)).toBe(EventType.RUN_STARTED);
    expect(types(one).at(-1)).toBe(EventType.RUN_FINISHED);
  });

  test("a second run of a busy thread throws before run returns (L5)", async () => {
    const runner = makeRunner();
    const first$ = runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "first") });
    const second = (): unknown => runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "second") });
    expect(second).toThrow(expect.objectContaining({ code: "thread-busy", message: "Thread already running" }));
    expect(second).toThrow(RunnerError);
    await vi.waitFor(async () => expect(await runner.stop({ threadId: "t" })).toBe(true));
    await collect(first$);
  });

  test("a run of another host is refused with the live run's id (L5)", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    const live$ = one.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "live") });
    await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(true));
    const refused = collect(other.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "late") }));
    await expect(refused).rejects.toMatchObject({
      code: "thread-busy",
      message: "Thread already running",
      details: { runId: "live", holderId: one.hostId },
    });
    await one.stop({ threadId: "t" });
    await collect(live$);
  });

  test("a follow-up run started on RUN_FINISHED is never refused, in this host or another (L5)", async () => {
    const runners = [makeRunner()];
    runners.push(makeRunner({ dbName: runners[0]!.dbName }));
    for (let n = 0; n < 100; n++) {
      const runner = runners[n % 2]!;
      await new Promise<void>((resolve, reject) => {
        runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", `r${n}`) }).subscribe({
          next: (event) => event.type === EventType.RUN_FINISHED && resolve(),
          error: reject,
        });
      });
    }
    expect((await runners[0]!.listThreads())[0]).toMatchObject({ runCount: 100, lastStatus: "finished" });
  });

  test("many runs asked for at once: one wins, the others are refused, and the thread is free after it (L5)", async () => {
    const one = makeRunner();
    const runners = [one, ...Array.from({ length: 4 }, () => makeRunner({ dbName: one.dbName }))];
    // Whoever wins runs until all others have heard that it does.
    const { gate, letOn } = gated();
    let refused = 0;
    const ends = await Promise.allSettled(
      runners.map((runner, n) => {
        const agent = agentOf(counter(200, (step) => (step === 199 ? gate : undefined)));
        return collect(runner.run({ threadId: "t", agent, input: inputOf("t", `r${n}`) })).catch((error: unknown) => {
          if (++refused === runners.length - 1) letOn();
          throw error;
        });
      }),
    );
    expect(ends.filter((end) => end.status === "fulfilled")).toHaveLength(1);
    for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject({ code: "thread-busy" });
    await collect(one.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "after") }));
  });

  test("the same run id with equal input is the same run; with other input it is refused", async () => {
    const runner = makeRunner();
    const request = { threadId: "t", agent: agentOf(counter(5)), input: inputOf("t", "r") };
    const once = await collect(runner.run(request));
    const again = await collect(runner.run({ ...request, agent: agentOf(counter(9)) }));
    expect(again).toEqual(once);
    const other = runner.run({ ...request, input: inputOf("t", "r", [user("another")]) });
    await expect(collect(other)).rejects.toMatchObject({ code: "run-exists" });
  });

  test.each([
    ["threadId", inputOf("", "r")],
    ["runId", inputOf("t", "")],
  ])("an empty %s is refused, and nothing is started", async (field, input) => {
    const runner = makeRunner();
    const run = (): unknown => runner.run({ threadId: input.threadId, agent: agentOf(silent), input });
    expect(run).toThrow(expect.objectContaining({ code: "invalid-input", details: { field } }));
    expect(await runner.listThreads()).toEqual([]);
  });

  const asked = { threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") };
  test.each<[string, unknown]>([
    ["request", undefined],
    ["request", "t"],
    ["agent.run", { ...asked, agent: undefined }],
    ["agent.run", { ...asked, agent: { agentId: "a" } }],
    ["input", { ...asked, input: null }],
    ["persistedInputMessages", { ...asked, persistedInputMessages: "" }],
    ["persistedInputMessages", { ...asked, persistedInputMessages: 0 }],
    ["input.resume", { ...asked, input: { ...asked.input, resume: "" } }],
    ["input.resume", { ...asked, input: { ...asked.input, resume: NaN } }],
  ])("a wrong %s is refused before anything is claimed: %#", async (field, request) => {
    const runner = makeRunner();
    const run = (): unknown => runner.run(request as never);
    expect(run).toThrow(expect.objectContaining({ code: "invalid-input", details: { field } }));
    expect(await runner.listThreads()).toEqual([]);
  });

  test.each<[string, (runner: LocalAgentRunner) => unknown]>([
    ["request", (runner) => runner.stop(undefined as never)],
    ["runId", (runner) => runner.stop({ threadId: "t", runId: null as never })],
    ["request", (runner) => runner.isRunning(null as never)],
    ["threadId", (runner) => runner.isRunning({} as never)],
    ["types", (runner) => runner.getRunEvents("r", { types: null as never })],
    ["agentId", (runner) => runner.listThreads({ agentId: 5 as never })],
    ["archived", (runner) => runner.listThreads({ archived: "false" as never })],
  ])("a wrong %s of another call is refused: %#", async (field, ask) => {
    const refused = Promise.resolve(ask(makeRunner()));
    await expect(refused).rejects.toMatchObject({ code: "invalid-input", details: { field } });
  });

  test("the agent is given the whole thread, and the last state", async () => {
    const runner = makeRunner();
    const seen: unknown[] = [];
    const agent = (): ReturnType<typeof agentOf> =>
      agentOf(async function* (input) {
        seen.push({ messages: input.messages.map(({ id }) => id), state: input.state });
        yield { type: EventType.STATE_SNAPSHOT, snapshot: { runs: input.runId } } as BaseEvent;
      });
    await collect(runner.run({ threadId: "t", agent: agent(), input: inputOf("t", "r1", [user("u1")]) }));
    await collect(runner.run({ threadId: "t", agent: agent(), input: inputOf("t", "r2", [user("u2")]) }));
    expect(seen).toEqual([
      { messages: ["u1"], state: {} },
      { messages: ["u1", "u2"], state: { runs: "r1" } },
    ]);
  });

  test("a delta applies to the state that the run started from, also on replay (L4)", async () => {
    const runner = makeRunner();
    const delta = agentOf(async function* () {
      yield { type: EventType.STATE_DELTA, delta: [{ op: "add", path: "/list/-", value: 2 }] } as BaseEvent;
    });
    await collect(runner.run({ threadId: "t", agent: delta, input: inputOf("t", "r", undefined, { list: [1] }) }));
    expect((await rebuild(await replay(runner, "t"))).state).toEqual({ list: [1, 2] });
  });

  test("an edited history starts a branch; the replay shows it alone (L2)", async () => {
    const runner = makeRunner();
    const say = (text: string): ReturnType<typeof agentOf> =>
      agentOf(async function* ({ runId }) {
        yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" } as BaseEvent;
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta: text } as BaseEvent;
      });
    await collect(runner.run({ threadId: "t", agent: say("one"), input: inputOf("t", "r1", [user("u1")]) }));
    await collect(runner.run({ threadId: "t", agent: say("two"), input: inputOf("t", "r2", [user("u2")]) }));
    const kept = (await rebuild(await replay(runner, "t"))).messages.slice(0, 2);
    const edited = inputOf("t", "r3", [...kept, user("u2", "edited")]);
    await collect(runner.run({ threadId: "t", agent: say("three"), input: edited }));
    const { messages } = await rebuild(await replay(runner, "t"));
    expect(messages.map(({ content }) => content)).toEqual(["from u1", "one", "edited", "three"]);
    await collect(runner.run({ threadId: "t", agent: say("four"), input: inputOf("t", "r4", [user("u4")]) }));
    expect((await rebuild(await replay(runner, "t"))).messages.map(({ content }) => content)).toEqual([
      "from u1",
      "one",
      "edited",
      "three",
      "from u4",
      "four",
    ]);
  });
});

describe.each(PRESETS)("%s: agents that misbehave end, and leave the thread free (L7)", (_preset, makeRunner) => {
  const started = (input: { threadId: string; runId: string }): BaseEvent => ({
    type: EventType.RUN_STARTED,
    threadId: input.threadId,
    runId: input.runId,
  });
  const text: BaseEvent = { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" };

  const cases = {
    "throws at once": rawAgent(() => {
      throw new Error("boom");
    }),
    "fails before its first event": rawAgent(() => throwError(() => new Error("boom"))),
    "fails in the middle": rawAgent((input) =>
      concat(
        of(started(input), text),
        throwError(() => new Error("boom")),
      ),
    ),
    "breaks the protocol": rawAgent((input) =>
      of(started(input), { type: EventType.TEXT_MESSAGE_END, messageId: "never" }),
    ),
    "emits what cannot be stored": agentOf(async function* () {
      yield { type: EventType.CUSTOM, name: "f", value: () => 1 } as BaseEvent;
    }),
    "throws in its generator": agentOf(async function* () {
      yield text;
      throw new Error("boom");
    }),
  };
  test.each(Object.entries(cases))("%s: errored, the user's message is kept", async (_name, agent) => {
    const runner = makeRunner();
    const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r", [user("u")]) }));
    expect(last(events).type).toBe(EventType.RUN_ERROR);
    expect((await rebuild(await replay(runner, "t"))).messages).toMatchObject([
      { id: "u" },
      ...(events.length > 3 ? [{}] : []),
    ]);
    const next = runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") });
    expect(last(await collect(next)).type).toBe(EventType.RUN_FINISHED);
  });

  test("completes without a terminal event: errored, what it left open is closed (L18)", async () => {
    const runner = makeRunner();
    const agent = rawAgent((input) => of(started(input), text));
    const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(types(events)).toEqual([
      EventType.RUN_STARTED,
      EventType.TEXT_MESSAGE_START,
      EventType.TEXT_MESSAGE_END,
      EventType.RUN_ERROR,
    ]);
    expect(last(events)).toMatchObject({ code: "INCOMPLETE_STREAM" });
  });

  test("never completes after its terminal event: the run is over all the same", async () => {
    const runner = makeRunner();
    const agent = rawAgent((input) =>
      concat(
        of(started(input), { type: EventType.RUN_FINISHED, threadId: "t", runId: input.runId } as BaseEvent),
        NEVER,
      ),
    );
    await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  });

  test("names another thread and run: the log names the right ones", async () => {
    const runner = makeRunner();
    const agent = rawAgent(() =>
      of(started({ threadId: "wrong", runId: "wrong" }), {
        type: EventType.RUN_FINISHED,
        threadId: "wrong",
        runId: "wrong",
      } as BaseEvent),
    );
    const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(events).toMatchObject([
      { threadId: "t", runId: "r" },
      { threadId: "t", runId: "r" },
    ]);
  });
});

describe.each(PRESETS)("%s: stop (L11, L12)", (_name, makeRunner) => {
  test("a stopped run is no error, and what it left open is closed", async () => {
    const runner = makeRunner();
    const events = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
    expect(await runner.stop({ threadId: "t", runId: "r" })).toBe(true);
    expect(last(await events)).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } });
    await replay(runner, "t");
  });

  test("an agent that ignores it is settled within the grace (L7)", async () => {
    const runner = makeRunner({ stopGraceMs: 20 });
    const events = collect(runner.run({ threadId: "t", agent: stubborn(), input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect(await runner.stop({ threadId: "t" })).toBe(true));
    expect(last(await events)).toMatchObject({ outcome: { type: "cancelled" } });
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") }));
  });

  test("is idempotent, and leaves another run alone", async () => {
    const runner = makeRunner();
    expect(await runner.stop({ threadId: "t" })).toBe(false);
    const events = collect(runner.run({ threadId: "t", agent: stubborn(), input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
    expect(await runner.stop({ threadId: "t", runId: "older" })).toBe(false);
    const answers = await Promise.all([runner.stop({ threadId: "t" }), runner.stop({ threadId: "t" })]);
    expect(answers.toSorted()).toEqual([false, true]);
    await events;
    expect(await runner.stop({ threadId: "t" })).toBe(false);
  });

  test("reaches the run of another host", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    const events = collect(one.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(true));
    expect(await other.stop({ threadId: "t" })).toBe(true);
    expect(last(await events)).toMatchObject({ outcome: { type: "cancelled" } });
  });
});
