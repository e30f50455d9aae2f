// What `npm test` runs of the suites that take long; `npm run test:all` runs all of them. The gate is for every change and
// for a newcomer's first look: it has each kind of fault in a real browser once, and may take nine minutes on two idle cores.

/** Random suites: this part of their cases. The rest finds what the first ones of many days have not. */
export const GATE_FACTOR = 0.2;

/** The same cases each time: what the gate refuses is due to the change. `npm run test:all` grows new ones every night. */
export const GATE_SEED = 1;

const tabs = (...names) => names.map((name) => `test/tabs/${name}.test.ts`);

/** Files by engine; a suite that is not named here is run whole. */
const FILES = {
  // One of each kind: runs and races, a host's death, stops, a database taken away, tabs that come back, the demo. What
  // hosts answer over HTTP is in the suite "browser".
  chromium: [
    ...tabs(
      "smoke",
      "smoke-death",
      "runs",
      "stop",
      "takeover",
      "storage",
      "page-cache",
      "server-ends",
      "tools",
      "waiting",
    ),
    "demo/test/tabs/demo.test.ts",
  ],
  // What engines do in their own way: workers that die, databases that are taken away.
  firefox: tabs("smoke", "smoke-death", "takeover", "storage"),
  webkit: tabs("smoke", "smoke-death", "locked", "users"),
};

/** What the vitest project of this name runs in the gate; undefined: all of it, but {@link LEFT_OUT}. */
export const gateFiles = (project) => FILES[project];

/**
 * Files that the gate leaves out: the suite "browser" runs the same tests on the real thing, or a short form of them.
 * No law stands on them alone.
 */
export const LEFT_OUT = [
  "test/conformance/runners.test.ts",
  "test/unit/checkpoint/checkpoint-store.test.ts",
  "test/unit/checkpoint/random-checkpoints.test.ts",
  "test/unit/hostile/hostile-agents.test.ts",
  "test/unit/langgraph/graphs.test.ts",
  "test/unit/langgraph/saver.test.ts",
  "test/unit/langgraph/validation.test.ts",
  "test/unit/runner/random-runs.test.ts",
  "test/unit/runtime/contract/handler.test.ts",
  "test/unit/storage/kept-database.test.ts",
  "test/unit/storage/lost-connection.test.ts",
  // They wait until a server counts as away.
  "test/unit/sync/servers-away.test.ts",
  "test/unit/sync/servers-untaken.test.ts",
  // Clusters of servers that come and go; one is killed under load in the gate, too.
  "test/sync/new-streams.test.ts",
];
