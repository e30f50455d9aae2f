import { EventType, verifyEvents, type Message } from "@ag-ui/client";
import fc from "fast-check";
import { from, lastValueFrom, toArray } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import type { RecoveryPolicy } from "../../../src/run/recovery.js";
import { times } from "../property.js";
import {
  agentOf,
  collect,
  fastClock,
  framesUntil,
  freshDb,
  gated,
  inputOf,
  makeRunner,
  rebuild,
  replay,
  silent,
  user,
} from "./kit.js";
import { eventsOfFrame } from "./kit.js";
import {
  askedAgent,
  continuingAgent,
  startWaiting,
  storeOf,
  withPolicy,
  type ScriptedStep,
  type World,
} from "./recovery-kit.js";

const never = new Promise<never>(() => undefined);

/** A world whose hosts die at the n-th thing that their agents do. */
function mortalWorld(deaths: readonly number[]) {
  const left = [...deaths];
  let steps = 0;
  let die: (() => void) | undefined;
  const executed = new Map<string, number>();
  const world: World = {
    executed,
    names: new Map(),
    before: () => {
      if (left.length === 0 || steps++ < left[0]!) return undefined;
      left.shift();
      steps = 0;
      die?.();
      return never;
    },
  };
  return { world, onDeath: (then: () => void) => (die = then), left };
}

const step: fc.Arbitrary<ScriptedStep> = fc.record({
  text: fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom("a", "b", "c") }),
  tools: fc.array(fc.constantFrom("search", "pay"), { maxLength: 2 }),
});

const policy: RecoveryPolicy = { maxAttempts: 50, backoffMs: 0, repeatableTools: ["search"] };

/** Lets hosts die and follow one another until the run is over, or is left to a person. */
async function play(steps: readonly ScriptedStep[], deaths: readonly number[], isContinuing: boolean) {
  const dbName = freshDb();
  const { world, onDeath } = mortalWorld(deaths);
  const make = () => (isContinuing ? continuingAgent(steps, world) : askedAgent(steps, world));
  for (let hosts = 0; ; hosts++) {
    expect(hosts).toBeLessThan(60);
    const runner = withPolicy(makeRunner({ dbName, stopGraceMs: 10 }), policy);
    const died = new Promise<"died">((resolve) =>
      onDeath(() => {
        runner.letGo();
        resolve("died");
      }),
    );
    let run;
    if (hosts === 0) {
      run = runner.start({ threadId: "t", agentId: "test", agent: make(), input: inputOf("t", "r", [user("u")]) });
      await run.started;
    } else {
      await runner.opened;
      await vi.waitFor(async () => expect((await storeOf(runner).head("t"))?.live).toBeUndefined());
      run = await startWaiting(runner, "t", make());
    }
    if (run === undefined || (await Promise.race([run.ended, died])) !== "died") return { runner, world };
  }
}

const callsOf = (messages: readonly Message[]): string[] =>
  messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : [])).map(({ id }) => id);

describe("hosts die in the middle of a run with tools (issue 16, L1, L5, L20)", () => {
  const cases = fc.tuple(
    fc.array(step, { minLength: 1, maxLength: 3 }),
    fc.array(fc.nat({ max: 14 }), { maxLength: 4 }),
  );

  test.each([true, false])(
    "no tool runs twice for one call that must not, and the answer is one (continues: %s)",
    async (isContinuing) => {
      await fc.assert(
        fc.asyncProperty(cases, async ([steps, deaths]) => {
          const { runner, world } = await play(steps, deaths, isContinuing);
          for (const [call, count] of world.executed) {
            if (world.names.get(call) === "pay") expect(count).toBe(1);
          }
          const [last] = await runner.listRuns("t");
          const { messages } = await rebuild(await replay(runner, "t"));
          expect(messages).toEqual(await runner.getThreadMessages("t"));
          if (last?.status === "finished") {
            const wanted = steps.flatMap(({ tools }) => tools).length;
            expect(callsOf(messages).length).toBe(wanted);
            expect(messages.filter(({ role }) => role === "tool").length).toBe(wanted);
            const said = messages.flatMap(({ role, content }) => (role === "assistant" && content ? [content] : []));
            const paid = [...world.executed].filter(([call]) => world.names.get(call) === "pay");
            expect(paid.length).toBe(steps.flatMap(({ tools }) => tools).filter((name) => name === "pay").length);
            const tail = messages.slice(messages.findLastIndex(({ role }) => role === "tool" || role === "user") + 1);
            if (steps.at(-1)?.tools.length === 0) expect(tail.at(-1)).toMatchObject({ content: steps.at(-1)?.text });
            expect(tail.length).toBe(steps.length - 1 - steps.findLastIndex(({ tools }) => tools.length > 0));
            if (isContinuing) expect(said).toEqual(steps.map(({ text }) => text));
          } else {
            // Left to a person, because a tool had started: it says which.
            expect(last).toMatchObject({
              status: "broken",
              recovery: { is: "ask", why: "tools-started", tools: ["pay"] },
            });
          }
          expect(await storeOf(runner).waitingRuns("t")).toEqual([]);
          // Who follows from the first run on sees the same as who comes last (L2, L3).
          const frames = await framesUntil(runner, { threadId: "t", after: { runIndex: -1, seq: -1, epoch: 0 } });
          const events = frames.flatMap(eventsOfFrame);
          await lastValueFrom(from(events).pipe(verifyEvents(), toArray()));
          expect((await rebuild(events)).messages).toEqual(messages);
          await runner.close();
        }),
        times(20),
      );
    },
    300_000,
  );
});

test("without a policy nothing waits, as ever", async () => {
  const dbName = freshDb();
  const one = makeRunner({ dbName });
  await one.start({ threadId: "t", agentId: "test", agent: agentOf(silent), input: inputOf("t", "r") }).started;
  one.letGo();
  const other = makeRunner({ dbName });
  await vi.waitFor(async () => expect((await other.getRun("r"))?.status).toBe("broken"));
  expect(await storeOf(other).waitingRuns("t")).toEqual([]);
});

test("an agent that emits nothing for too long is ended as broken, and is recovered", async () => {
  const runner = withPolicy(makeRunner({ clock: fastClock(100) }), { noProgressMs: 20_000, backoffMs: 0 });
  const run = runner.start({ threadId: "t", agentId: "test", agent: agentOf(silent), input: inputOf("t", "r") });
  await run.started;
  await run.ended;
  const events = await replay(runner, "t");
  expect(events.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "RUN_BROKEN" });
  expect(events.at(-1)?.["message"]).toMatch(/emitted nothing for 20000 ms/);
  expect(await storeOf(runner).waitingRuns("t")).toMatchObject([{ runId: "r~2", attempt: { of: "r", number: 2 } }]);
});

test("several hosts that decide and start the same recovery start one attempt (L5)", async () => {
  const dbName = freshDb();
  const { world } = mortalWorld([]);
  const { gate, letOn } = gated();
  const steps = [{ text: "abc", tools: ["search"] }];
  const hosts = [1, 2, 3].map(() => withPolicy(makeRunner({ dbName }), policy));
  const first = withPolicy(makeRunner({ dbName }), policy);
  await first.start({ threadId: "t", agentId: "test", agent: agentOf(silent), input: inputOf("t", "r") }).started;
  first.letGo();
  await vi.waitFor(async () => expect((await hosts[0]!.getRun("r"))?.status).toBe("broken"));
  const slow: World = { ...world, before: () => gate };
  const started = await Promise.allSettled(hosts.map((host) => startWaiting(host, "t", continuingAgent(steps, slow))));
  letOn();
  await Promise.all(started.map((result) => (result.status === "fulfilled" ? result.value?.ended : undefined)));
  await vi.waitFor(async () => expect((await hosts[0]!.listRuns("t"))[0]?.status).toBe("finished"));
  const runs = await hosts[0]!.listRuns("t");
  expect(runs.map(({ runId, attempt }) => [runId, attempt])).toEqual([
    ["r~2", { of: "r", number: 2 }],
    ["r", undefined],
  ]);
  expect([...world.executed.values()]).toEqual([1]);
});

test("a run in turn does not go before the recovery of a run that its own start ends (L9)", async () => {
  const dbName = freshDb();
  const one = withPolicy(makeRunner({ dbName }), policy);
  await one.start({ threadId: "t", agentId: "test", agent: agentOf(silent), input: inputOf("t", "r") }).started;
  const other = withPolicy(makeRunner({ dbName }), policy);
  one.letGo();
  const { world } = mortalWorld([]);
  const agent = continuingAgent([{ text: "abc", tools: [] }], world);
  const asked = {
    threadId: "t",
    agentId: "test",
    agent,
    input: inputOf("t", "next"),
    onBusy: "throw" as const,
    afterWaiting: true,
  };
  await expect(other.start(asked).started).rejects.toMatchObject({ code: "thread-busy" });
  expect(await other.getRun("r")).toMatchObject({ status: "broken" });
  expect(await storeOf(other).waitingRuns("t")).toMatchObject([{ runId: "r~2" }]);
});

test("a thread that went on is not recovered: nothing is started, the record goes, and the run says why", async () => {
  const dbName = freshDb();
  const one = withPolicy(makeRunner({ dbName }), policy);
  await one.start({ threadId: "t", agentId: "test", agent: agentOf(silent), input: inputOf("t", "r") }).started;
  one.letGo();
  const other = withPolicy(makeRunner({ dbName }), policy);
  await vi.waitFor(async () => expect((await other.getRun("r"))?.status).toBe("broken"));
  const { world } = mortalWorld([]);
  const agent = () => continuingAgent([{ text: "abc", tools: [] }], world);
  await collect(other.run({ threadId: "t", agent: agent(), input: inputOf("t", "next") }));
  expect(await startWaiting(other, "t", agent())).toBeUndefined();
  expect(await storeOf(other).waitingRuns("t")).toEqual([]);
  expect((await other.getRun("r"))?.recovery).toMatchObject({ is: "gave-up", why: "went-on" });
});

test("an answer that was given in time counts for the attempts, however late they start (issue 16)", async () => {
  const runner = withPolicy(makeRunner({ dbName: freshDb() }), policy);
  const expires = Date.now() + 500;
  const interrupts = [{ id: "i", reason: "confirm", expiresAt: new Date(expires).toISOString() }];
  const asking = agentOf(async function* ({ threadId, runId }) {
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
  });
  await collect(runner.run({ threadId: "t", agent: asking, input: inputOf("t", "r1") }));
  const failing = agentOf(async function* () {
    yield { type: EventType.RUN_ERROR, message: "Too many", code: "RATE_LIMITED" };
  });
  const resume = [{ interruptId: "i", status: "resolved" as const }];
  const answering = { threadId: "t", agentId: "test", agent: failing, input: { ...inputOf("t", "r2"), resume } };
  await runner.start(answering).ended;
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(expires));
  // The second one goes on with an attempt that itself began too late for an answer.
  await (
    await startWaiting(runner, "t", failing)
  )?.ended;
  const seen = vi.fn();
  const agent = agentOf(async function* (input) {
    seen(input.resume);
    yield* [];
  });
  await (
    await startWaiting(runner, "t", agent)
  )?.ended;
  expect(seen).toHaveBeenCalledExactlyOnceWith(resume);
  expect(await runner.getRun("r2~3")).toMatchObject({ status: "finished" });
});
