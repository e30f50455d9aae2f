import { IndexedDBAgentRunner, InMemoryAgentRunner } from "ag-ui-local-runtime";
import { describeAgentRunner } from "ag-ui-local-runtime/conformance";
import { describe, it } from "vitest";
import { remoteRunnerOptions } from "../conformance/wire-runner.js";

/** What happens on a busy machine happens late. */
const given = { framework: { describe, it }, patienceMs: 60_000 };

describeAgentRunner("IndexedDBAgentRunner, in the browser", {
  ...given,
  create: () => new IndexedDBAgentRunner({ dbName: `conformance-${crypto.randomUUID()}`, stopGraceMs: 50 }),
  reopen: (runner) => new IndexedDBAgentRunner({ dbName: (runner as IndexedDBAgentRunner).dbName, stopGraceMs: 50 }),
  crash: (runner) => (runner as IndexedDBAgentRunner).close(),
  destroy: (runner) => (runner as IndexedDBAgentRunner).destroy(),
});

describeAgentRunner("InMemoryAgentRunner, in the browser", {
  ...given,
  create: () => new InMemoryAgentRunner({ stopGraceMs: 50 }),
  reopen: () => new InMemoryAgentRunner({ stopGraceMs: 50 }),
  crash: (runner) => (runner as InMemoryAgentRunner).close(),
  destroy: (runner) => (runner as InMemoryAgentRunner).destroy(),
});

describeAgentRunner("RemoteRunner, in the browser", {
  ...given,
  ...remoteRunnerOptions(() => `conformance-${crypto.randomUUID()}`),
});
