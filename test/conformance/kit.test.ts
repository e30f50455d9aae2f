import "fake-indexeddb/auto";
import { IndexedDBAgentRunner, type AgentRunner } from "ag-ui-local-runtime";
import {
  CONFORMANCE_CASES,
  describeAgentRunner,
  MISBEHAVING_AGENTS,
  type DescribeAgentRunnerOptions,
} from "ag-ui-local-runtime/conformance";
import { describe, expect, onTestFinished, test } from "vitest";
import { BROKEN_FULL, brokenFull } from "./broken-full-runners.js";
import { broken, BROKEN } from "./broken-runners.js";
import { FakeRedis } from "./fake-redis.js";
import { RedisAgentRunner } from "./redis-runner.js";

interface Described {
  /** Each case by its id. */
  readonly tests: ReadonlyMap<string, () => Promise<void>>;
  readonly skipped: readonly string[];
}

/** What the suite would hand to a test framework. */
function described(options: Omit<DescribeAgentRunnerOptions, "framework">): Described {
  const tests = new Map<string, () => Promise<void>>();
  const skipped: string[] = [];
  const it = Object.assign(
    (name: string, body: () => Promise<void>): void => void tests.set(name.slice(0, name.indexOf(":")), body),
    { skip: (name: string): void => void skipped.push(name) },
  );
  describeAgentRunner("it", { ...options, framework: { describe: (_name, body) => body(), it } });
  return { tests, skipped };
}

const create = (): AgentRunner => new RedisAgentRunner(new FakeRedis());

/** Adds the ids of the cases that a runner does not pass; those that are there already need no other one. */
async function addFailures(failed: Set<string>, options: Omit<DescribeAgentRunnerOptions, "framework">): Promise<void> {
  const cases = [...described(options).tests].filter(([id]) => !failed.has(id));
  await Promise.all(cases.map(([id, run]) => run().catch(() => failed.add(id))));
}

let names = 0;

describe.concurrent("a deliberately broken runner fails the case that is about it", () => {
  test.each([
    ["starts when it is subscribed to", "run.starts-at-the-call", "is started"],
    ["hands late subscribers only what is left", "run.from-first-event", "must be handed the whole run"],
    ["stops a run that nobody listens to", "run.unsubscribe-stops-nothing", "must go on when nobody listens"],
    ["says in other words that a thread is busy", "run.busy-thread", '; it is "busy"'],
    ["never ends a run", "run.completes-when-settled", "did not happen within"],
    ["ends a run with an error", "agent.throws-in-run", "must complete without an error"],
    ["doubles the terminal event", "agent.two-terminals", "exactly one terminal event"],
    ["closes nothing", "stop.closes-what-is-open", "must accept"],
    ["forgets the messages of users", "agent.errors-before-first-event", "user's message must be on replay"],
    ["forgets texts", "connect.after", "its messages"],
    ["replays everything twice", "connect.after", "its messages"],
    ["replays live runs only when they are over", "connect.during", "while it runs"],
    ["stops what a reader reads", "connect.unsubscribe-stops-nothing", "must go on when a reader"],
    ["is never running", "is-running.follows-the-run", "must be true while the run is live"],
    ["stops whatever runs", "stop.other-run", "must not answer true"],
    ["says yes to every stop", "stop.idempotent", "at most one"],
    ["waits for the end when it stops", "stop.does-not-wait", "stop() answers"],
  ])("one that %s: %s", async (how, id, why) => {
    const run = described({ create: () => broken(create(), BROKEN[how]!), patienceMs: 3_000 }).tests.get(id);
    await expect(run).rejects.toThrow(new RegExp(`^${id}: [^]*${why.replace(/[()]/g, "\\$&")}`));
  });
});

describe("a runner that breaks a promise of level full fails the case that is about it", () => {
  test.each([
    ["does not say that a run was stopped", "stop.is-recorded-as-cancelled"],
    ["lets agents break off", "end.own-finish-with-open-constructs"],
    ["lets agents break off", "end.duplicates-dropped"],
    ["takes an agent without a last word for a success", "end.without-terminal-is-errored"],
    ["hears nothing after RUN_FINISHED", "end.late-error-fails-the-run"],
    ["hears nothing after RUN_FINISHED", "end.rejected-is-not-failed"],
    ["hears nothing after RUN_FINISHED", "end.several-runs-in-a-stream"],
    ["gives every failure one code", "end.rejected-is-not-failed"],
    ["gives every failure one code", "end.failure-keeps-its-reason"],
    ["hands out the patches that it refuses", "limits.own-properties-only"],
    ["leaves out what costs too much", "limits.costly-events"],
    ["hands out what is no JSON", "limits.json-form"],
    ["answers every tool", "end.front-end-tools-are-not-answered"],
    ["takes what an agent says when it is stopped for a failure", "stop.whatever-the-agent-says"],
    ["gives readers deltas alone", "state.base-is-given"],
    ["gives agents no state", "state.is-carried-over"],
    ["drops the state that a sender sets", "state.delta-only-runs"],
    ["drops the state that a sender sets", "state.set-by-the-sender"],
    ["records what agents echo", "input.keeps-no-secrets"],
    ["records all messages with each run", "messages.recorded-once"],
    ["gives agents the last message only", "messages.agent-has-the-history"],
    ["forgets open interrupts", "interrupt.is-kept-until-resumed"],
    ["does not hand over what resumes a run", "interrupt.is-kept-until-resumed"],
    ["runs on past open interrupts", "interrupt.must-be-answered"],
    ["knows a run id once", "run-id.an-answer-may-take-it"],
    ["starts a run again under its id", "run-id.equal-input-attaches"],
    ["refuses a known run id without a code", "run-id.other-input-is-refused"],
    ["sees no branches", "branch.edit"],
    ["sees no branches", "branch.regenerate"],
    ["sees no branches", "branch.goes-on"],
    ["sees no branches", "branch.left"],
    ["takes what a sender lacks for cut", "branch.stale"],
    ["takes every connect for a plain one", "connect.snapshot"],
    ["takes every connect for a plain one", "connect.last-run"],
    ["takes every connect for a plain one", "connect.from-cursor"],
    ["completes what should follow", "connect.follow"],
    ["lists nothing", "reads.list-threads"],
    ["lists runs from the oldest", "reads.list-runs"],
    ["says of every run that it has finished", "reads.run-status"],
    ["gives all events whatever is asked", "reads.run-events"],
    ["has no messages", "reads.thread-messages"],
    ["knows settled messages only", "reads.thread-messages-live"],
    ["gives a thread's events twice", "reads.thread-events"],
    ["has another state", "reads.thread-state"],
    ["clears nothing", "reads.clear-threads"],
    ["goes on when it was destroyed", "reads.destroy"],
  ])("one that %s: %s", async (how, id) => {
    const good = new IndexedDBAgentRunner({ dbName: `kit-${process.pid}-${++names}`, stopGraceMs: 50 });
    onTestFinished(() => good.close());
    const case_ = (runner: AgentRunner): Promise<void> =>
      described({ create: () => runner, patienceMs: 1_000 }).tests.get(id)!();
    await expect(case_(brokenFull(good, BROKEN_FULL[how]!))).rejects.toThrow(id);
  });
});

describe("another store that is taken for the same one fails the cases of several runners", () => {
  test.each(CONFORMANCE_CASES.filter(({ needs }) => needs === "reopen").map(({ id }) => id))("%s", async (id) => {
    const run = described({ create, reopen: create, patienceMs: 300 }).tests.get(id);
    await expect(run).rejects.toThrow(id);
  });
});

test.each([Infinity, 2 ** 40])("a patience of %s ms is not over at once", async (patienceMs) => {
  const slow = async (): Promise<AgentRunner> => (await new Promise((resolve) => setTimeout(resolve, 20)), create());
  await expect(described({ create: slow, patienceMs }).tests.get("run.order")!()).resolves.toBeUndefined();
});

test("a runner that cannot be destroyed either fails for what its case is about", async () => {
  const destroy = (): Promise<void> => Promise.reject(new Error("not destroyed"));
  const failing = described({ create: () => broken(create(), BROKEN["is never running"]!), destroy, patienceMs: 300 });
  await expect(failing.tests.get("is-running.follows-the-run")!()).rejects.toThrow(
    "must be true while the run is live",
  );
  await expect(described({ create, destroy }).tests.get("run.order")!()).rejects.toThrow("not destroyed");
});

test("no case of level core is passed by all broken runners: each can fail", async () => {
  const failed = new Set<string>();
  for (const breaks of Object.values(BROKEN)) {
    const runner = (): AgentRunner => broken(create(), breaks);
    await addFailures(failed, { create: runner, level: "core", patienceMs: 100 });
  }
  const core = CONFORMANCE_CASES.filter(({ level, needs }) => level === "core" && needs === undefined);
  expect(core.map(({ id }) => id).filter((id) => !failed.has(id))).toEqual([]);
});

describe("what is skipped", () => {
  test("needs a reason", () => {
    expect(() => described({ create, skip: { "run.order": " " } })).toThrow('skip of "run.order" needs a reason');
  });

  test("must be a case", () => {
    // What a person who writes JavaScript can do.
    const skip = { "run.no-such-case": "because" } as Record<string, string>;
    expect(() => described({ create, skip })).toThrow('"run.no-such-case", which is no case');
  });

  test("stands in the report with its reason, as do cases that need reopen where it is not given", () => {
    const { tests, skipped } = described({ create, level: "core", skip: { "run.order": "it sorts by name" } });
    expect(tests.has("run.order")).toBe(false);
    expect(skipped.filter((name) => name.startsWith("run.order"))).toEqual([
      expect.stringContaining("(skipped: it sorts by name)"),
    ]);
    const needy = CONFORMANCE_CASES.filter(({ needs }) => needs === "reopen");
    expect(skipped.filter((name) => name.endsWith("(skipped: no option reopen)"))).toHaveLength(needy.length);
  });
});

describe("the list of cases", () => {
  test("names each case once", () => {
    const ids = CONFORMANCE_CASES.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("has one for each misbehaving agent, and enough of them", () => {
    const ids = new Set<string>(CONFORMANCE_CASES.map(({ id }) => id));
    expect(MISBEHAVING_AGENTS.filter(({ name }) => !ids.has(`agent.${name}`))).toEqual([]);
    expect(MISBEHAVING_AGENTS.length).toBeGreaterThanOrEqual(23);
  });

  test("is what describes: core leaves the cases of full out", () => {
    const count = (level: "core" | "full"): number => described({ create, reopen: create, level }).tests.size;
    expect(count("full")).toBe(CONFORMANCE_CASES.length);
    expect(count("core")).toBe(CONFORMANCE_CASES.filter(({ level }) => level === "core").length);
  });

  test.each([
    ["level", { level: "Core" }],
    ["patienceMs", { patienceMs: NaN }],
    ["patienceMs", { patienceMs: 0 }],
    ["skip", { skip: "run.order" }],
    ["framework.it", { framework: { describe: () => undefined } }],
  ])("a wrong %s is refused: %j", (field, options) => {
    const given = { create, framework: { describe: () => undefined, it: () => undefined }, ...options };
    expect(() => describeAgentRunner("it", given as never)).toThrow(
      expect.objectContaining({ code: "invalid-input", details: { field } }),
    );
  });

  test("a framework without globals must be handed over", () => {
    expect(() => describeAgentRunner("it", { create })).toThrow("options.framework");
  });
});
