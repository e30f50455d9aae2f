import { EventType, type BaseEvent } from "@ag-ui/client";
import { concat, of, Subject } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import { nextTask, systemClock, type Clock } from "../../../src/platform/clock.js";
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
  stubborn,
  textOf,
  user,
} from "./kit.js";

const last = (events: readonly BaseEvent[]): BaseEvent => events.at(-1)!;
const cancelled = { type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } };

const run = (runner: LocalAgentRunner, runId: string, agent = agentOf(counter(3)), threadId = "t") =>
  collect(runner.run({ threadId, agent, input: inputOf(threadId, runId) }));

const untilLive = (runner: LocalAgentRunner, runId: string): Promise<void> =>
  vi.waitFor(async () => expect((await runner.listThreads())[0]?.live?.runId).toBe(runId));

const statuses = async (runner: LocalAgentRunner): Promise<string[]> =>
  (await runner.listRuns("t")).map(({ runId, status }) => `${runId} ${status}`).toReversed();

describe.each(PRESETS)("%s: onConcurrentRun supersede", (_name, makeRunner) => {
  test("the live run ends at once as superseded, and the new one takes its place (L5, L12)", async () => {
    const runner = makeRunner({ onConcurrentRun: "supersede", stopGraceMs: 60_000 });
    const old = run(runner, "old", stubborn());
    await untilLive(runner, "old");
    const fresh = await run(runner, "new");
    expect(last(await old)).toMatchObject({ ...cancelled, runId: "old" });
    expect(last(fresh)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "new" });
    expect(await statuses(runner)).toEqual(["old superseded", "new finished"]);
    expect((await rebuild(await replay(runner, "t"))).messages.map(({ id }) => id)).toEqual([
      "old-u",
      "old-a",
      "new-u",
      "new-a",
    ]);
  });

  test("nothing that the old agent emits after it is written or handed out", async () => {
    const runner = makeRunner({ onConcurrentRun: "supersede" });
    let goOn!: () => void;
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    const old = run(runner, "old", agentOf(counter(5, (step) => (step === 2 ? gate : undefined))));
    await vi.waitFor(async () => expect(textOf(await runner.getThreadEvents("t"))).toBe(counted(2)));
    const fresh = run(runner, "new");
    goOn();
    expect(textOf(await old)).toBe(counted(2));
    await fresh;
    expect(textOf((await runner.getRunEvents("old")).map(({ event }) => event))).toBe(counted(2));
  });

  test("of many runs asked for at once, each takes the place of the one before; the last one stays", async () => {
    const runner = makeRunner({ onConcurrentRun: "supersede" });
    const runs = Array.from({ length: 10 }, (_, n) => run(runner, `r${n}`, n < 9 ? stubborn() : agentOf(counter(3))));
    const ends = (await Promise.all(runs)).map((events) => last(events)["outcome"]);
    expect(ends).toEqual([...Array.from({ length: 9 }, () => ({ type: "cancelled" })), undefined]);
    expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  });

  test("the run of another host is superseded as well, as soon as that has ended it", async () => {
    const one = makeRunner({ stopGraceMs: 60_000 });
    // Whoever waits for a message that has come already waits for ever.
    const after: Clock["after"] = (ms, signal) => systemClock.after(ms >= 1_000 ? Infinity : ms, signal);
    const clock = { ...systemClock, after };
    const other = makeRunner({ dbName: one.dbName, onConcurrentRun: "supersede", clock });
    const old = run(one, "old", stubborn());
    await untilLive(other, "old");
    expect(last(await run(other, "new"))).toMatchObject({ runId: "new" });
    expect(last(await old)).toMatchObject(cancelled);
    expect(await statuses(other)).toEqual(["old superseded", "new finished"]);
  });

  test("the same run id is the same run, not one that supersedes itself", async () => {
    const runner = makeRunner({ onConcurrentRun: "supersede" });
    const first = run(runner, "r", agentOf(silent));
    await untilLive(runner, "r");
    const again = run(runner, "r", agentOf(silent));
    const other = (): unknown =>
      runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r", [user("other")]) });
    expect(other).toThrow(expect.objectContaining({ code: "run-exists" }));
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
    expect(await runner.stop({ threadId: "t", runId: "r" })).toBe(true);
    expect(await again).toEqual(await first);
  });
});

describe.each(PRESETS)("%s: a run of the log that is sent again while another one is live", (_name, makeRunner) => {
  test.each(["same host", "another host"])("is told again, and supersedes nothing (L13; %s)", async (where) => {
    const runner = makeRunner({ onConcurrentRun: "supersede", stopGraceMs: 60_000 });
    const asked = where === "same host" ? runner : makeRunner({ dbName: runner.dbName, onConcurrentRun: "supersede" });
    const old = await run(runner, "old");
    const live = run(runner, "live", agentOf(silent));
    await untilLive(asked, "live");
    expect(textOf(await run(asked, "old"))).toEqual(textOf(old));
    const other = collect(
      asked.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "old", [user("other")]) }),
    );
    await expect(other).rejects.toMatchObject({ code: "run-exists" });
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
    expect(await runner.stop({ threadId: "t", runId: "live" })).toBe(true);
    await live;
    expect(await statuses(runner)).toEqual(["old finished", "live stopped"]);
  });
});

describe.each(PRESETS)("%s: a request that is refused ends no live run", (_name, makeRunner) => {
  const asking = agentOf(async function* ({ threadId, runId }) {
    const outcome = { type: "interrupt", interrupts: [{ id: "i", reason: "confirm" }] };
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome };
  });
  const resume = [{ interruptId: "i", status: "resolved" as const }];
  const answer = (runner: LocalAgentRunner, runId: string, agent = agentOf(counter(1))) =>
    collect(runner.run({ threadId: "t", agent, input: { ...inputOf("t", runId), resume } }));
  const branch = (runner: LocalAgentRunner, runId: string, branchBefore: string, answers: typeof resume = []) => {
    const input = { ...inputOf("t", runId), resume: answers };
    return collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input, branchBefore }));
  };

  describe.each(["same host", "another host"])("of the %s", (where) => {
    async function superseding(live: (runner: LocalAgentRunner) => Promise<unknown>) {
      const runner = makeRunner({ onConcurrentRun: "supersede", stopGraceMs: 60_000 });
      const asked =
        where === "same host" ? runner : makeRunner({ dbName: runner.dbName, onConcurrentRun: "supersede" });
      await run(runner, "before", asking);
      const going = live(runner);
      await untilLive(asked, "live");
      return { runner, asked, going };
    }

    test("a branch before a message that the thread does not have (L20)", async () => {
      const { runner, asked, going } = await superseding((its) => answer(its, "live", agentOf(silent)));
      const refused = { code: "invalid-input", details: { field: "branchBefore" } };
      // Also where another refused one is being looked at.
      const twice = [branch(asked, "bad", "gone"), branch(asked, "worse", "live-b")];
      for (const one of twice) await expect(one).rejects.toMatchObject(refused);
      expect(await runner.isRunning({ threadId: "t" })).toBe(true);
      expect(await runner.stop({ threadId: "t" })).toBe(true);
      await going;
      expect(await statuses(runner)).toEqual(["before finished", "live stopped"]);
    });

    test("a stop that comes while it is refused reaches the live run (L11)", async () => {
      const { runner, asked, going } = await superseding((its) => answer(its, "live", agentOf(silent)));
      const refused = branch(asked, "bad", "gone");
      const stopped = asked.stop({ threadId: "t" });
      await expect(refused).rejects.toMatchObject({ code: "invalid-input" });
      expect(await stopped).toBe(true);
      await going;
      expect(await statuses(runner)).toEqual(["before finished", "live stopped"]);
    });

    test("a run that is asked for beside a refused one takes the live run's place (L5)", async () => {
      const { runner, asked, going } = await superseding((its) => answer(its, "live", stubborn()));
      const refused = branch(asked, "bad", "gone");
      refused.catch(() => undefined);
      const fresh = answer(asked, "new").catch((error: unknown) => error);
      await expect(refused).rejects.toMatchObject({ code: "invalid-input" });
      expect(await fresh).toMatchObject({ code: "interrupts-open" });
      const [again, latest] = [branch(asked, "bad", "gone"), run(asked, "last")];
      again.catch(() => undefined);
      expect(last(await latest)).toMatchObject({ runId: "last" });
      await going;
      expect(await statuses(runner)).toEqual(["before finished", "live superseded", "last finished"]);
    });

    test("a branch to the open interrupt that the live run answers, without an answer", async () => {
      const { runner, asked, going } = await superseding((its) => answer(its, "live", stubborn()));
      await expect(branch(asked, "bad", "live-u")).rejects.toMatchObject({ code: "interrupts-open" });
      expect(await runner.isRunning({ threadId: "t" })).toBe(true);
      expect(last(await branch(asked, "new", "live-u", resume))).toMatchObject({ runId: "new" });
      await going;
      expect(await statuses(runner)).toEqual(["before finished", "live superseded", "new finished"]);
      expect((await runner.getThreadMessages("t")).map(({ id }) => id)).toEqual(["before-u", "new-u", "new-a"]);
    });

    test("a branch to an open interrupt that an earlier run answered, without an answer (L5, L7)", async () => {
      const { runner, asked, going } = await superseding(async (its) => {
        await answer(its, "answered");
        return run(its, "live", stubborn());
      });
      await expect(branch(asked, "bad", "answered-a")).rejects.toMatchObject({ code: "interrupts-open" });
      expect(await runner.isRunning({ threadId: "t" })).toBe(true);
      expect(last(await branch(asked, "new", "answered-a", resume))).toMatchObject({ runId: "new" });
      await going;
      const ends = ["before finished", "answered finished", "live superseded", "new finished"];
      expect(await statuses(runner)).toEqual(ends);
    });

    test("an answer to an interrupt that the live run answers", async () => {
      const { runner, asked, going } = await superseding((its) => answer(its, "live", agentOf(silent)));
      await expect(answer(asked, "late")).rejects.toMatchObject({
        code: "interrupts-open",
        details: { settled: ["i"] },
      });
      expect(await runner.stop({ threadId: "t" })).toBe(true);
      await going;
      expect(await statuses(runner)).toEqual(["before finished", "live stopped"]);
    });
  });

  test("an answer that waits for another host's run is too late where that run answers the same (L20)", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName, onConcurrentRun: "queue" });
    await run(one, "before", asking);
    const live = answer(one, "live", agentOf(silent));
    await untilLive(other, "live");
    const late = answer(other, "late");
    late.catch(() => undefined);
    await vi.waitFor(async () => expect(await other.stop({ threadId: "t" })).toBe(true));
    await live;
    await expect(late).rejects.toMatchObject({ code: "interrupts-open", details: { settled: ["i"] } });
    expect(await statuses(one)).toEqual(["before finished", "live stopped"]);
  });
});

describe.each(PRESETS)("%s: onConcurrentRun queue", (_name, makeRunner) => {
  test("runs wait for their turn, in the order of asking", async () => {
    const runner = makeRunner({ onConcurrentRun: "queue" });
    const first = run(runner, "r0", agentOf(silent));
    const later = [1, 2, 3].map((n) => run(runner, `r${n}`));
    await untilLive(runner, "r0");
    expect(await runner.stop({ threadId: "t" })).toBe(true);
    for (const events of await Promise.all([first, ...later])) expect(last(events).type).toBe(EventType.RUN_FINISHED);
    expect(await statuses(runner)).toEqual(["r0 stopped", "r1 finished", "r2 finished", "r3 finished"]);
  });

  test("one starts on the end of the one before, without looking for it", async () => {
    const never: Clock = {
      ...systemClock,
      after: (_ms, signal) =>
        new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true })),
    };
    const runner = makeRunner({ onConcurrentRun: "queue", clock: never });
    let goOn!: () => void;
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    const first = run(runner, "r0", agentOf(counter(1, () => gate)));
    const later = [1, 2, 3].map((n) => run(runner, `r${n}`));
    goOn();
    await Promise.all([first, ...later]);
    expect(await statuses(runner)).toEqual(["r0", "r1", "r2", "r3"].map((runId) => `${runId} finished`));
  });

  test("one that is taken out is cancelled at once, leaves no trace and lets nobody past", async () => {
    const runner = makeRunner({ onConcurrentRun: "queue" });
    const first = run(runner, "r0", agentOf(silent));
    const [second, third] = [run(runner, "r1"), run(runner, "r2")];
    const refused = expect(second).rejects.toMatchObject({ code: "cancelled", details: { runId: "r1" } });
    await untilLive(runner, "r0");
    expect(await runner.stop({ threadId: "t", runId: "r1" })).toBe(true);
    await refused;
    expect(await runner.stop({ threadId: "t", runId: "r1" })).toBe(false);
    expect((await runner.listThreads())[0]?.live?.runId).toBe("r0");
    await runner.stop({ threadId: "t", runId: "r0" });
    await Promise.all([first, third]);
    expect(await statuses(runner)).toEqual(["r0 stopped", "r2 finished"]);
  });

  test("a full queue refuses", async () => {
    const runner = makeRunner({ onConcurrentRun: "queue", maxQueuedRuns: 2 });
    const runs = [run(runner, "r0", agentOf(silent)), run(runner, "r1"), run(runner, "r2")];
    const full = (): unknown => runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r3") });
    expect(full).toThrow(
      expect.objectContaining({ code: "thread-busy", details: expect.objectContaining({ queued: 2 }) }),
    );
    await untilLive(runner, "r0");
    await runner.stop({ threadId: "t" });
    await Promise.all(runs);
  });

  test("waits for the run of another host, and can be cancelled in that", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName, onConcurrentRun: "queue" });
    const live = run(one, "live", agentOf(silent));
    await untilLive(other, "live");
    const [waiting, cancelling] = [run(other, "waits"), run(other, "cancelled")];
    const refused = expect(cancelling).rejects.toMatchObject({ code: "cancelled" });
    await vi.waitFor(async () => expect(await other.stop({ threadId: "t", runId: "cancelled" })).toBe(true));
    await refused;
    expect(await other.stop({ threadId: "t" })).toBe(true);
    expect(last(await live)).toMatchObject(cancelled);
    expect(last(await waiting)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "waits" });
  });

  test("closing the runner cancels what waits", async () => {
    const runner = makeRunner({ onConcurrentRun: "queue" });
    const first = run(runner, "r0", agentOf(silent));
    const refused = expect(run(runner, "r1")).rejects.toMatchObject({ code: "cancelled" });
    await untilLive(runner, "r0");
    await runner.close();
    await refused;
    expect(last(await first)).toMatchObject(cancelled);
  });
});

describe.each(PRESETS)("%s: maxRunMs (L7)", (_name, makeRunner) => {
  test("an agent that takes longer is asked to end; the run is errored, the thread free", async () => {
    const runner = makeRunner({ maxRunMs: 300 });
    const events = await run(runner, "r", agentOf(silent));
    expect(last(events)).toMatchObject({ type: EventType.RUN_ERROR, code: "RUN_TIMEOUT" });
    expect(events.at(-2)?.type).toBe(EventType.TEXT_MESSAGE_END);
    await replay(runner, "t");
    expect(last(await run(runner, "next", agentOf(counter(1)))).type).toBe(EventType.RUN_FINISHED);
  });

  describe("an end that the agent says itself counts by its order (L18)", () => {
    const finish = { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" } as const;

    /** A run whose agent says its end at the call, and whose deadline passes at the call. */
    async function timed(ends: "by itself" | "when it is asked to") {
      let pass = (): void => undefined;
      const passed = new Promise<void>((resolve) => (pass = resolve));
      const clock: Clock = {
        ...systemClock,
        after: (ms, signal) => (ms === 12_345 ? passed : systemClock.after(ms === 54_321 ? Infinity : ms, signal)),
      };
      const runner = makeRunner({ maxRunMs: 12_345, stopGraceMs: 54_321, clock });
      const said$ = new Subject<BaseEvent>();
      const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
      const agent = Object.assign(
        rawAgent(() => concat(of(started), said$)),
        { abortRun: () => ends === "when it is asked to" && said$.next(finish) },
      );
      const events = run(runner, "r", agent);
      await vi.waitFor(async () => expect(await runner.getRunEvents("r")).toHaveLength(1));
      return { runner, said$, pass, events };
    }

    test("before the deadline: finished, though its stream goes on beyond it", async () => {
      const { said$, pass, events, runner } = await timed("by itself");
      said$.next(finish);
      pass();
      expect(last(await events)).toMatchObject(finish);
      expect(await statuses(runner)).toEqual(["r finished"]);
    });

    test("after it, asked to end or not yet heard of that: errored, RUN_TIMEOUT", async () => {
      for (const ends of ["by itself", "when it is asked to"] as const) {
        const { said$, pass, events, runner } = await timed(ends);
        pass();
        await nextTask();
        said$.next(finish);
        expect(last(await events)).toMatchObject({ type: EventType.RUN_ERROR, code: "RUN_TIMEOUT" });
        expect(await statuses(runner)).toEqual(["r errored"]);
        await runner.destroy();
      }
    });

    test("after a stop: stopped", async () => {
      const { said$, events, runner } = await timed("when it is asked to");
      await runner.stop({ threadId: "t" });
      said$.next(finish);
      expect(last(await events)).toMatchObject(cancelled);
      expect(await statuses(runner)).toEqual(["r stopped"]);
    });
  });

  test("one that ignores that as well is settled within the grace", async () => {
    const runner = makeRunner({ maxRunMs: 300, stopGraceMs: 20 });
    expect(last(await run(runner, "r", stubborn()))).toMatchObject({ code: "RUN_TIMEOUT" });
    expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  });
});

test.each([
  [{ onConcurrentRun: "later" as "queue" }, "onConcurrentRun"],
  [{ limits: { maxThreads: 0 } }, "limits.maxThreads"],
  [{ limits: { maxRunsPerThread: 1.5 } }, "limits.maxRunsPerThread"],
])("an option that means nothing is refused: %o", (options, field) => {
  for (const [, makeRunner] of PRESETS) {
    expect(() => makeRunner(options)).toThrow(expect.objectContaining({ code: "invalid-input", details: { field } }));
  }
});
