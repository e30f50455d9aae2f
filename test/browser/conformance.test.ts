import { IndexedDBAgentRunner, InMemoryAgentRunner } from "ag-ui-local-runtime";
import { describeAgentRunner } from "ag-ui-local-runtime/conformance";
import { describe, it } from "vitest";
import { NOT_ON_THE_WIRE, WireAgentRunner } from "../conformance/wire-runner.js";

const framework = { describe, it };

describeAgentRunner("IndexedDBAgentRunner, in the browser", {
  framework,
  create: () => new IndexedDBAgentRunner({ dbName: `conformance-${crypto.randomUUID()}`, stopGraceMs: 50 }),
  reopen: (runner) => new IndexedDBAgentRunner({ dbName: (runner as IndexedDBAgentRunner).dbName, stopGraceMs: 50 }),
  crash: (runner) => (runner as IndexedDBAgentRunner).close(),
  destroy: (runner) => (runner as IndexedDBAgentRunner).destroy(),
});

describeAgentRunner("InMemoryAgentRunner, in the browser", {
  framework,
  create: () => new InMemoryAgentRunner({ stopGraceMs: 50 }),
  reopen: () => new InMemoryAgentRunner({ stopGraceMs: 50 }),
  crash: (runner) => (runner as InMemoryAgentRunner).close(),
  destroy: (runner) => (runner as InMemoryAgentRunner).destroy(),
});

describeAgentRunner("The runner through the wire, in the browser", {
  framework,
  skip: NOT_ON_THE_WIRE,
  create: () => new WireAgentRunner(`conformance-${crypto.randomUUID()}`),
  reopen: (runner) => new WireAgentRunner((runner as WireAgentRunner).dbName),
  destroy: (runner) => (runner as WireAgentRunner).close(),
});
