import { testRandomRuns } from "./random-runs.js";
import { makeMemoryRunner, makeRunner } from "./kit.js";

testRandomRuns("InMemoryAgentRunner", 1_500, () => makeMemoryRunner({ stopGraceMs: 1 }));
testRandomRuns("IndexedDBAgentRunner", 500, () => makeRunner({ stopGraceMs: 1 }));
