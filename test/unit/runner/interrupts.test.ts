import { EventType, type BaseEvent, type Interrupt, type RunAgentInput } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import {
  agentOf,
  collect,
  framesUntil,
  freshDb,
  gated,
  inputOf,
  makeRunner as makeDurable,
  PRESETS,
  rebuild,
  replay,
} from "./kit.js";

type Entry = NonNullable<RunAgentInput["resume"]>[number];
type More = Partial<Pick<RunAgentInput, "resume" | "forwardedProps" | "messages">>;

const asksFor = (...ids: readonly string[]) => asks(...ids.map((id) => ({ id, reason: "confirm" })));

/** Ends its run asking. */
const asks = (...interrupts: readonly Interrupt[]) =>
  agentOf(async function* ({ threadId, runId }) {
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
  });

/** Finishes, and notes what it was asked with. */
function notes(seen: RunAgentInput[] = []) {
  return agentOf(async function* (input) {
    seen.push(input);
    yield { type: EventType.CUSTOM, name: "resumed", value: input.resume ?? null };
  });
}

const fails = () =>
  agentOf(async function* () {
    yield { type: EventType.CUSTOM, name: "n", value: 1 };
    throw new Error("no");
  });

const yes = (interruptId: string, status: Entry["status"] = "resolved"): Entry => ({ interruptId, status });

function run(runner: LocalAgentRunner, runId: string, agent = notes(), more: More = {}): Promise<BaseEvent[]> {
  const input = { ...inputOf("t", runId), ...more };
  // It may throw at the call.
  return Promise.resolve().then(() => collect(runner.run({ threadId: "t", agent, input })));
}

const resumed = (events: readonly BaseEvent[]): unknown =>
  events.find(({ type }) => type === EventType.CUSTOM)?.["value"];

const idsOf = async (runner: LocalAgentRunner): Promise<readonly string[]> =>
  (await runner.listRuns("t")).map(({ runId }) => runId).toReversed();

const asked = (events: readonly BaseEvent[]): readonly unknown[] =>
  events.flatMap(({ runId, outcome }) => {
    const { type, interrupts } = (outcome ?? {}) as { type?: string; interrupts?: readonly Interrupt[] };
    return type === "interrupt" ? [{ runId, ids: interrupts?.map(({ id }) => id) }] : [];
  });

describe.each(PRESETS)("%s: a thread that waits for answers", (_name, makeRunner) => {
  test.each<[string, More, object]>([
    ["nothing", {}, { missing: ["a", "b"], doubled: [], expired: [] }],
    ["an empty list", { resume: [] }, { missing: ["a", "b"] }],
    ["one of two", { resume: [yes("b")] }, { missing: ["a"], doubled: [], expired: [] }],
    ["one twice", { resume: [yes("a"), yes("b"), yes("a", "cancelled")] }, { missing: [], doubled: ["a"] }],
    ["another one", { resume: [yes("a"), yes("c")] }, { missing: ["b"] }],
    ["only CopilotKit's command", { forwardedProps: { command: { resume: true } } }, { missing: ["a", "b"] }],
  ])("refuses a run that answers %s; nothing is sent or recorded", async (_what, more, faults) => {
    const runner = makeRunner({ dbName: freshDb() });
    await run(runner, "r1", asksFor("a", "b"));
    const seen: RunAgentInput[] = [];
    const before = await replay(runner, "t");
    await expect(run(runner, "r2", notes(seen), more)).rejects.toMatchObject({
      code: "interrupts-open",
      details: { threadId: "t", runId: "r2", interruptIds: ["a", "b"], ...faults },
    });
    expect(seen).toEqual([]);
    expect(await idsOf(runner)).toEqual(["r1"]);
    expect(await replay(runner, "t")).toEqual(before);
    expect(await runner.isRunning({ threadId: "t" })).toBe(false);
    // What is refused leaves the thread free, and the answer still counts.
    await run(runner, "r3", notes(seen), { resume: [yes("b", "cancelled"), yes("a")] });
    expect(seen.map(({ resume }) => resume?.length)).toEqual([2]);
    expect(await idsOf(runner)).toEqual(["r1", "r3"]);
  });

  test("one that has expired can be cancelled and not answered", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    const past: Interrupt = { id: "old", reason: "confirm", expiresAt: "2020-01-01T00:00:00Z" };
    const future: Interrupt = { id: "new", reason: "confirm", expiresAt: "2999-01-01T00:00:00Z" };
    const odd: Interrupt = { id: "odd", reason: "confirm", expiresAt: "next week" };
    await run(runner, "r1", asks(past, future, odd));
    const refused = run(runner, "r2", notes(), { resume: [yes("old"), yes("new"), yes("odd")] });
    await expect(refused).rejects.toMatchObject({
      code: "interrupts-open",
      details: { expired: ["old"], missing: [] },
    });
    const resume = [yes("old", "cancelled"), yes("new"), yes("odd")];
    expect(resumed(await run(runner, "r3", notes(), { resume }))).toEqual(resume);
  });

  test("entries that it did not ask for are the agent's to judge", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    const first = [yes("never")];
    expect(resumed(await run(runner, "r1", notes(), { resume: first }))).toEqual(first);
    await run(runner, "r2", asksFor("a"));
    const resume = [yes("other"), yes("a")];
    expect(resumed(await run(runner, "r3", notes(), { resume }))).toEqual(resume);
  });

  test("a run that failed or was stopped before it finished leaves them as AG-UI says: open, or emptied", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    await run(runner, "r1", asksFor("a"));
    await run(runner, "r2", fails(), { resume: [yes("a")] });
    await run(runner, "r3", fails(), { resume: [yes("a")] });
    await expect(run(runner, "r4")).rejects.toMatchObject({ code: "interrupts-open" });
    await run(runner, "r5", notes(), { resume: [yes("a")] });
    await run(runner, "r6");
    await run(runner, "r7", fails());
    await run(runner, "r8");
  });

  test("a snapshot tells them as of the run that asked, and none of a run that failed (L2, L3)", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    const snapshot = async (): Promise<readonly BaseEvent[]> =>
      collect(runner.connect({ threadId: "t", replay: "snapshot" }));
    await run(runner, "r0", fails());
    expect(asked(await snapshot())).toEqual([]);
    await run(runner, "r1", asksFor("a"));
    await run(runner, "r2", fails(), { resume: [yes("a")] });
    await run(runner, "r3", fails(), { resume: [yes("a")] });
    expect(asked(await snapshot())).toEqual([{ runId: "r1", ids: ["a"] }]);
    await rebuild(await snapshot());
    await run(runner, "r4", notes(), { resume: [yes("a")] });
    await run(runner, "r5", fails());
    expect(asked(await snapshot())).toEqual([]);
  });

  test("an edit of what came before them starts a branch, which they are no part of", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    await run(runner, "r1", asksFor("a"));
    const { messages } = inputOf("t", "r1");
    const edited = messages.map((message) => ({ ...message, content: "other" })) as typeof messages;
    await run(runner, "r2", notes(), { messages: edited });
    expect(await idsOf(runner)).toEqual(["r1", "r2"]);
  });

  test("of two answers at once one wins: the other is refused as busy, or, where it waited, as too late", async () => {
    const dbName = freshDb();
    const one = makeRunner({ dbName });
    await run(one, "r1", asksFor("a"));
    const { gate, letOn } = gated();
    const waits = agentOf(async function* () {
      await gate;
      yield { type: EventType.CUSTOM, name: "n", value: 1 };
    });
    const resume = [yes("a")];
    const queueing = makeRunner({ dbName, onConcurrentRun: "queue" });
    const seen: RunAgentInput[] = [];
    const first = run(queueing, "r2", waits, { resume });
    const late = run(queueing, "r3", notes(seen), { resume });
    late.catch(() => undefined);
    letOn();
    await first;
    await expect(late).rejects.toMatchObject({ code: "interrupts-open", details: { settled: ["a"] } });
    expect(seen).toEqual([]);
    expect(await idsOf(queueing)).toEqual(["r1", "r2"]);
  });

  test.each(["finishes", "is stopped"])(
    "an answer that comes when the run of the first one is over (it %s) is refused as too late, also after a restart",
    async (end) => {
      const dbName = freshDb();
      const runner = makeRunner({ dbName, stopGraceMs: 1 });
      await run(runner, "r1", asksFor("a"));
      const resume = [yes("a")];
      const { gate } = gated();
      const endless = agentOf(async function* () {
        yield { type: EventType.CUSTOM, name: "n", value: 1 };
        await gate;
      });
      const first = run(runner, "r2", end === "finishes" ? notes() : endless, { resume });
      if (end !== "finishes") await expect.poll(() => runner.stop({ threadId: "t" })).toBe(true);
      await first;
      const seen: RunAgentInput[] = [];
      const tooLate = { code: "interrupts-open", details: { settled: ["a"], interruptIds: [] } };
      await expect(run(runner, "r3", notes(seen), { resume })).rejects.toMatchObject(tooLate);
      await run(runner, "r4");
      const restarted = makeRunner({ dbName });
      await expect(run(restarted, "r5", notes(seen), { resume })).rejects.toMatchObject(tooLate);
      expect(seen).toEqual([]);
      expect(await idsOf(restarted)).toEqual(["r1", "r2", "r4"]);
      // Asked again under the same id, it is open again.
      await run(restarted, "r6", asksFor("a"));
      await run(restarted, "r7", notes(seen), { resume });
      expect(seen).toHaveLength(1);
    },
  );

  test("a late answer does not end the live run that it would supersede", async () => {
    const runner = makeRunner({ dbName: freshDb(), onConcurrentRun: "supersede" });
    await run(runner, "r1", asksFor("a"));
    const resume = [yes("a")];
    await run(runner, "r2", notes(), { resume });
    const { gate, letOn } = gated();
    const waits = agentOf(async function* () {
      yield { type: EventType.CUSTOM, name: "n", value: 1 };
      await gate;
    });
    const live = run(runner, "r3", waits);
    await expect.poll(() => runner.isRunning({ threadId: "t" })).toBe(true);
    const tooLate = { code: "interrupts-open", details: { settled: ["a"] } };
    await expect(run(runner, "r4", notes(), { resume })).rejects.toMatchObject(tooLate);
    letOn();
    const end = (await live).at(-1);
    expect(end).toMatchObject({ type: EventType.RUN_FINISHED, runId: "r3" });
    expect(end).not.toHaveProperty("outcome");
  });

  test("the same run asked for again is that run, whatever is open by then (L13)", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    const first = await run(runner, "r1", asksFor("a"));
    expect(await run(runner, "r1")).toEqual(first);
    const second = await run(runner, "r2", asksFor("b"), { resume: [yes("a")] });
    expect(await run(runner, "r2", notes(), { resume: [yes("a")] })).toEqual(second);
    expect(await idsOf(runner)).toEqual(["r1", "r2"]);
  });
});

test("what another host knows of the thread is old: it looks again before it refuses", async () => {
  const one = makeDurable();
  const other = makeDurable({ dbName: one.dbName });
  await run(one, "r1", asksFor("a"));
  await run(other, "r2", notes(), { resume: [yes("a")] });
  await run(one, "r3");
  await run(other, "r4", asksFor("b"));
  await expect(run(one, "r5")).rejects.toMatchObject({ code: "interrupts-open", details: { interruptIds: ["b"] } });
});

describe.each(PRESETS)("%s: an answer under the id of the run that asked", (_name, makeRunner) => {
  const boundaries = (events: readonly BaseEvent[]): readonly unknown[] =>
    events
      .filter(({ type }) => type === EventType.RUN_STARTED || type === EventType.RUN_FINISHED)
      .map(({ type, runId }) => `${type} ${String(runId)}`);
  const ONE = ["RUN_STARTED r1", "RUN_FINISHED r1"];

  test.each<[string, () => ReturnType<typeof asks>, readonly [More, More]]>([
    ["resume", () => asksFor("a"), [{ resume: [yes("a")] }, { resume: [yes("b")] }]],
    [
      "CopilotKit's command",
      () => notes(),
      [{ forwardedProps: { command: { resume: 1 } } }, { forwardedProps: { command: { resume: 2 } } }],
    ],
  ])(
    "by %s is a run of its own, and each request stays the run that it was (L13)",
    async (how, asking, [two, three]) => {
      const runner = makeRunner({ dbName: freshDb() });
      const seen: RunAgentInput[] = [];
      const first = await run(runner, "r1", asking());
      const again = how === "resume" ? asksFor("b") : notes(seen);
      const second = await run(runner, "r1", again, two);
      const third = await run(runner, "r1", notes(seen), three);
      for (const events of [first, second, third]) expect(boundaries(events)).toEqual(ONE);
      const started = seen.length;
      expect(await run(runner, "r1", notes(seen))).toEqual(first);
      expect(await run(runner, "r1", notes(seen), two)).toEqual(second);
      expect(await run(runner, "r1", notes(seen), three)).toEqual(third);
      expect(seen).toHaveLength(started);
      expect(await idsOf(runner)).toEqual(["r1", "r1", "r1"]);
      expect((await runner.listRuns("t")).map(({ parentRunId }) => parentRunId)).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
      expect(await runner.getRun("r1", { threadId: "t" })).toMatchObject({ runIndex: 2 });
      expect(await runner.getRun("r1")).toMatchObject({ runIndex: 2 });
      // Whoever reads the thread has all of them, in a valid sequence.
      expect(boundaries(await replay(runner, "t"))).toEqual([...ONE, ...ONE, ...ONE]);
      // What is no answer is what it was: refused.
      await expect(run(runner, "r1", notes(), { messages: [] })).rejects.toMatchObject({ code: "run-exists" });
      expect(await runner.deleteThread("t")).toBe(true);
      expect(boundaries(await run(runner, "r1"))).toEqual(ONE);
    },
  );

  test("a stop by the id reaches it while it is live, and the first run cannot be asked for in between (L5, L11)", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    const first = await run(runner, "r1", asksFor("a"));
    const silent = agentOf(async function* (_input, { signal }) {
      yield { type: EventType.CUSTOM, name: "live", value: 1 };
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    });
    const live = runner.start({
      threadId: "t",
      agentId: "test",
      agent: silent,
      input: { ...inputOf("t", "r1"), resume: [yes("a")] },
    });
    await live.started;
    await expect(run(runner, "r1", notes(), { resume: [yes("a"), yes("x")] })).rejects.toMatchObject({
      code: "thread-busy",
    });
    expect(await runner.stop({ threadId: "t", runId: "r1" })).toBe(true);
    await live.ended;
    expect((await runner.listRuns("t")).map(({ status }) => status)).toEqual(["stopped", "finished"]);
    expect(await run(runner, "r1")).toEqual(first);
  });

  test("a reader that has the first run is handed the second, by cursor and live (L2)", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    await run(runner, "r1", asksFor("a"));
    const [prelude] = await framesUntil(runner, { threadId: "t" });
    const after = prelude?.type === "prelude" ? prelude.cursor : undefined;
    await run(runner, "r1", notes(), { resume: [yes("a")] });
    const frames = await framesUntil(runner, { threadId: "t", ...(after && { after }) });
    expect(frames.flatMap((frame) => (frame.type === "run" ? [frame.run] : []))).toMatchObject([
      { runId: "r1", runIndex: 1 },
    ]);
    expect(asked(await collect(runner.connect({ threadId: "t", replay: "snapshot" })))).toEqual([]);
  });
});

test.each<[string, object]>([
  ["an interrupt is about", { type: "interrupt", interrupts: [{ id: "i", reason: "tool_call", toolCallId: "asked" }] }],
  ["the agent names as pending", { type: "success", pendingToolCallIds: ["asked"] }],
])("a call that %s gets no made-up result where its end is missing: a later run has it", async (_does, outcome) => {
  const runner = makeDurable();
  const pausing = agentOf(async function* ({ threadId, runId }) {
    for (const toolCallId of ["asked", "forgotten"]) {
      yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: "send", parentMessageId: "calls" };
    }
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome };
  });
  const answering = agentOf(async function* () {
    yield { type: EventType.TOOL_CALL_RESULT, messageId: "result", toolCallId: "asked", content: "sent" };
  });
  await run(runner, "r1", pausing);
  await run(runner, "r2", answering, { resume: [yes("i")] });
  const results = (await runner.getThreadMessages("t")).filter(({ role }) => role === "tool");
  expect(results).toMatchObject([{ toolCallId: "forgotten" }, { toolCallId: "asked", content: "sent" }]);
});
