import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { onTestFinished } from "vitest";
import { quiet, testHostileAgents, TIGHT } from "../unit/hostile/hostile-agents.js";

testHostileAgents("real IndexedDB", 100, () => {
  const runner = new IndexedDBAgentRunner({
    dbName: `hostile-${crypto.randomUUID()}`,
    stopGraceMs: 50,
    eventLimits: TIGHT,
    logger: quiet,
  });
  onTestFinished(() => runner.destroy());
  return runner;
});
