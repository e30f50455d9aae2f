import "fake-indexeddb/auto";
import { IndexedDBAgentRunner, InMemoryAgentRunner, type AgentRunner } from "ag-ui-local-runtime";
import { describeAgentRunner } from "ag-ui-local-runtime/conformance";
import { describe, it } from "vitest";
import { contextLocks } from "../../src/platform/context-locks.js";
import { inProcessLockManager } from "../../src/platform/in-process-locks.js";
import { fastClock, mortalLocks } from "../unit/runner/kit.js";
import { FakeRedis } from "./fake-redis.js";
import { RedisAgentRunner } from "./redis-runner.js";
import { remoteRunnerOptions } from "./wire-runner.js";

/** Patient: what happens on a busy machine happens late. */
const given = { framework: { describe, it }, patienceMs: 60_000 };

/** The runner as what the suite made it. */
function as<Runner extends AgentRunner>(kind: abstract new (...given: never[]) => Runner, runner: AgentRunner): Runner {
  if (runner instanceof kind) return runner;
  throw new Error(`not a ${kind.name}`);
}

let names = 0;
/** A database of the test's own. */
const freshDb = (): string => `conformance-${process.pid}-${++names}`;

const lockManager = inProcessLockManager();
const deaths = new WeakMap<AgentRunner, () => Promise<void>>();

/** A runner whose locks fall when it crashes, as a killed worker's do. */
function mortalRunner(dbName: string): IndexedDBAgentRunner {
  const { locks, die } = mortalLocks(lockManager);
  const runner = new IndexedDBAgentRunner({ dbName, locks, stopGraceMs: 50 });
  deaths.set(runner, die);
  return runner;
}

describeAgentRunner("IndexedDBAgentRunner", {
  ...given,
  create: () => mortalRunner(freshDb()),
  reopen: (runner) => mortalRunner(as(IndexedDBAgentRunner, runner).dbName),
  crash: (runner) => deaths.get(runner)?.(),
  destroy: (runner) => as(IndexedDBAgentRunner, runner).close(),
});

/** A host of a page on plain http, which is silent from its crash on. Five times as impatient as they are. */
function runnerWithoutLocks(dbName: string): IndexedDBAgentRunner {
  const locks = contextLocks({ clock: fastClock(5) });
  const runner = new IndexedDBAgentRunner({ dbName, locks, stopGraceMs: 50 });
  deaths.set(runner, async () => locks.close?.());
  return runner;
}

describeAgentRunner("IndexedDBAgentRunner without Web Locks", {
  ...given,
  create: () => runnerWithoutLocks(freshDb()),
  reopen: (runner) => runnerWithoutLocks(as(IndexedDBAgentRunner, runner).dbName),
  crash: (runner) => deaths.get(runner)?.(),
  destroy: (runner) => as(IndexedDBAgentRunner, runner).close(),
});

// A runner that somebody else might write: it records what agents emit, and folds nothing.
describeAgentRunner("A runner on Redis", {
  ...given,
  level: "core",
  skip: {
    "agent.patch-on-input-state":
      "it records what agents emit and nothing else: the state that a run was given is not on replay",
  },
  create: () => new RedisAgentRunner(new FakeRedis()),
  reopen: (runner) => new RedisAgentRunner(as(RedisAgentRunner, runner).redis),
  destroy: (runner) => as(RedisAgentRunner, runner).close(),
});

describeAgentRunner("InMemoryAgentRunner", {
  ...given,
  create: () => new InMemoryAgentRunner({ stopGraceMs: 50 }),
  reopen: () => new InMemoryAgentRunner({ stopGraceMs: 50 }),
  destroy: (runner) => as(InMemoryAgentRunner, runner).destroy(),
  // What ends here without its consent is the whole process, and its threads with it.
  crash: (runner) => as(InMemoryAgentRunner, runner).close(),
});

describeAgentRunner("RemoteRunner", { ...given, ...remoteRunnerOptions(freshDb) });
