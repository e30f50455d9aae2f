import { onTestFinished } from "vitest";
import { InMemoryAgentRunner } from "../../src/runner/in-memory-agent-runner.js";
import { IndexedDBAgentRunner } from "../../src/runner/indexeddb-agent-runner.js";
import type { LocalAgentRunner } from "../../src/runner/local-agent-runner.js";
import { testRandomRuns } from "../unit/runner/random-runs.js";

function destroyed<Runner extends LocalAgentRunner>(runner: Runner): Runner {
  onTestFinished(() => runner.destroy());
  return runner;
}

testRandomRuns("IndexedDBAgentRunner, in the browser", 200, () =>
  destroyed(new IndexedDBAgentRunner({ dbName: `random-${crypto.randomUUID()}`, stopGraceMs: 1 })),
);
testRandomRuns("InMemoryAgentRunner, in the browser", 200, () =>
  destroyed(new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 1 })),
);
