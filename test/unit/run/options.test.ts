import "fake-indexeddb/auto";
import {
  IndexedDBAgentRunner,
  InMemoryAgentRunner,
  LocalAgentRunner,
  resetInMemoryStore,
  RunnerError,
} from "ag-ui-local-runtime";
import { InMemoryCheckpointStore, IndexedDBCheckpointStore } from "ag-ui-local-runtime/checkpoint";
import {
  answerServiceWorker,
  connectRuntime,
  installRuntimeFetch,
  LocalAgent,
  RemoteRunner,
} from "ag-ui-local-runtime/client";
import { describeAgentRunner } from "ag-ui-local-runtime/conformance";
import { IndexedDBSaver } from "ag-ui-local-runtime/langgraph";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { relayRuntime } from "ag-ui-local-runtime/service-worker";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { describe, expect, test } from "vitest";

/** A way to give options, and valid ones. */
interface Taker {
  readonly take: (options: never) => unknown;
  readonly valid?: object;
  /** Names of options that are options themselves. */
  readonly within?: Readonly<Record<string, object>>;
}

const nothing = async function* (): AsyncGenerator<never> {};
const agents = {};
const use = () => Promise.reject(new Error("not loaded"));
const runtime = () => new AgentRuntime({ agents });
const ofRuntime: Omit<Taker, "take"> = {
  valid: { agents },
  within: {
    limits: { maxThreads: 1 },
    eventLimits: { maxDepth: 3 },
    forwardHeaders: { allow: ["x-a"] },
    debug: { log: () => undefined },
    metrics: { runStarted: () => undefined },
    mcpApps: { use, servers: [] },
  },
};

const TAKERS: Readonly<Record<string, Taker>> = {
  AgentRuntime: { take: (options) => new AgentRuntime(options), ...ofRuntime },
  serveRuntime: { take: (options) => serveRuntime(options), ...ofRuntime },
  createRuntimeHandler: {
    take: (options) => createRuntimeHandler(options),
    valid: { runtime: runtime() },
    within: { cors: { origin: "https://example.com" } },
  },
  createNodeHandler: { take: (options) => createNodeHandler(() => new Response(), options) },
  connectRuntime: {
    take: (options) => connectRuntime(options).close(),
    valid: { hosts: {} },
    within: { hosts: {} },
  },
  agent: { take: (options) => connectRuntime({ hosts: {} }).agent("a", options) },
  installRuntimeFetch: {
    take: (options) => installRuntimeFetch({ fetch: () => Promise.reject(new Error("not asked")) }, options)(),
    valid: { basePath: "/api", target: { fetch, location: { href: "http://a/", origin: "http://a" } } },
  },
  relayRuntime: { take: (options) => relayRuntime(options), valid: { basePath: "/api" } },
  IndexedDBAgentRunner: {
    take: (options) => new IndexedDBAgentRunner(options).close(),
    within: { limits: { maxThreads: 1 }, eventLimits: {} },
  },
  InMemoryAgentRunner: {
    take: (options) => new InMemoryAgentRunner(options).close(),
    within: { limits: { maxBytes: 1 }, eventLimits: {} },
  },
  IndexedDBCheckpointStore: { take: (options) => new IndexedDBCheckpointStore(options) },
  InMemoryCheckpointStore: { take: (options) => new InMemoryCheckpointStore(options) },
  IndexedDBSaver: { take: (options) => new IndexedDBSaver(options) },
  defineAgent: { take: (options) => defineAgent(nothing, options) },
};

/** What was thrown. */
function refusal(take: () => unknown): { readonly field: unknown; readonly message: string } {
  try {
    take();
  } catch (error) {
    if (!RunnerError.is(error, "invalid-input")) throw error;
    return { field: error.details["field"], message: error.message };
  }
  throw new Error("it was taken");
}

describe.each(Object.entries(TAKERS))("%s", (name, { take, valid = {}, within = {} }) => {
  const taken = (options: object) => () => take(options as never);

  test("refuses an option that it does not have, and names it", () => {
    for (const wrong of ["onRequset", "constructor", "hasOwnProperty"]) {
      const { field, message } = refusal(taken({ ...valid, [wrong]: true }));
      expect(field).toBe(wrong);
      expect(message).toContain(`no option ${wrong}`);
    }
    const heirTo = (parent: object): object => Object.assign(Object.create(parent) as object, valid);
    expect(refusal(taken(heirTo({ inherited: 1 }))).field).toBe("inherited");
    expect(refusal(taken(heirTo(Object.defineProperty({}, "hidden", { value: 1 })))).field).toBe("hidden");
    expect(
      refusal(
        taken(
          Object.assign(
            new (class Options {
              get misspelt() {
                return 1;
              }
            })(),
            valid,
          ),
        ),
      ).field,
    ).toBe("misspelt");
    expect(refusal(taken({ ...valid, [Symbol("secret")]: 1 })).field).toBe("Symbol(secret)");
    expect(() => taken(Object.assign(new Map(), valid))()).toThrow(RunnerError);
    for (const none of [null, [], "options"]) expect(() => take(none as never)).toThrow(RunnerError);
  });

  test.runIf(
    [
      "AgentRuntime",
      "serveRuntime",
      "createRuntimeHandler",
      "connectRuntime",
      "installRuntimeFetch",
      "relayRuntime",
    ].includes(name),
  )("says that options are missing", () => {
    expect(refusal(taken(undefined as never))).toEqual({
      field: "options",
      message: expect.stringContaining("options must be an object") as unknown,
    });
  });

  test.runIf(name !== "serveRuntime" && name !== "relayRuntime")("takes undefined for absent", async () => {
    await taken({ ...valid, onRequset: undefined })();
  });

  test.runIf(name !== "serveRuntime" && name !== "relayRuntime")(
    "takes what it has from objects of any kind: without a prototype, inherited, of a class of fields",
    async () => {
      await taken(Object.assign(Object.create(null) as object, valid))();
      await taken(Object.create(valid) as object)();
      await taken(
        Object.assign(
          new (class Options {
            readonly absent = undefined;
          })(),
          valid,
        ),
      )();
    },
  );

  for (const [option, given] of Object.entries(within)) {
    test(`refuses an option of ${option} that it does not have, and names it`, () => {
      const { field, message } = refusal(taken({ ...valid, [option]: { ...given, misspelt: 1 } }));
      expect(field).toBe(`${option}.misspelt`);
      expect(message).toContain(`${option}.misspelt`);
    });
  }
});

describe("a value of another kind is refused, where it would lift a bound or be told of late", () => {
  const handler = () => new Response();
  test.each<[string, unknown, (given: never) => unknown]>([
    ["allowedHosts", null, (allowedHosts) => createRuntimeHandler({ runtime: runtime(), allowedHosts })],
    ["runtime", null, (given) => createRuntimeHandler({ runtime: given })],
    ["handler", null, (given) => createNodeHandler(given)],
    ["trustProxy", "false", (trustProxy) => createNodeHandler(handler, { trustProxy })],
    ["protocol", "https", (protocol) => createNodeHandler(handler, { protocol })],
    ["readerTimeoutSeconds", null, (readerTimeoutSeconds) => createNodeHandler(handler, { readerTimeoutSeconds })],
    ["readerTimeoutSeconds", null, (readerTimeoutSeconds) => new AgentRuntime({ agents, readerTimeoutSeconds })],
    ["sseKeepAliveIntervalSeconds", -1, (given) => new AgentRuntime({ agents, sseKeepAliveIntervalSeconds: given })],
    ["sseKeepAliveIntervalSeconds", NaN, (given) => new AgentRuntime({ agents, sseKeepAliveIntervalSeconds: given })],
    ["maxBodyBytes", "4096", (maxBodyBytes) => new AgentRuntime({ agents, maxBodyBytes })],
    ["openTimeoutMs", NaN, (openTimeoutMs) => new AgentRuntime({ agents, openTimeoutMs })],
    ["openTimeoutMs", "x", (openTimeoutMs) => new IndexedDBAgentRunner({ openTimeoutMs })],
    ["openTimeoutMs", NaN, (openTimeoutMs) => new IndexedDBAgentRunner({ openTimeoutMs })],
    ["openTimeoutMs", -1, (openTimeoutMs) => new IndexedDBAgentRunner({ openTimeoutMs })],
    ["openTimeoutMs", null, (openTimeoutMs) => new IndexedDBAgentRunner({ openTimeoutMs })],
    ["dbName", 5, (dbName) => new IndexedDBAgentRunner({ dbName })],
    ["dbName", {}, (dbName) => new AgentRuntime({ agents, dbName })],
    ["memoryFallback", "false", (memoryFallback) => new AgentRuntime({ agents, memoryFallback })],
    ["logger.error", null, (logger) => new AgentRuntime({ agents, logger })],
    ["recordInput", true, (recordInput) => new AgentRuntime({ agents, recordInput })],
    ["a2ui.use", null, (a2ui) => new AgentRuntime({ agents, a2ui })],
    [
      "forwardHeaders.useDefaultDenylist",
      null,
      (useDefaultDenylist) => new AgentRuntime({ agents, forwardHeaders: { useDefaultDenylist } }),
    ],
    ["limits", null, (limits) => new AgentRuntime({ agents, limits })],
    ["openTimeoutMs", 1.5, (openTimeoutMs) => new AgentRuntime({ agents, openTimeoutMs })],
    ["openTimeoutMs", 0, (openTimeoutMs) => new IndexedDBAgentRunner({ openTimeoutMs })],
    ["onConcurrentRun", null, (onConcurrentRun) => new InMemoryAgentRunner({ onConcurrentRun })],
    ["recordInput", null, (recordInput) => new InMemoryAgentRunner({ recordInput })],
    ["makeId", "x", (makeId) => new InMemoryAgentRunner({ makeId })],
    ["clock.elapsed", { now: Date.now }, (clock) => new InMemoryAgentRunner({ clock })],
    ["locks.hold", null, (locks) => new IndexedDBAgentRunner({ locks })],
    ["openChannel", {}, (openChannel) => new IndexedDBAgentRunner({ openChannel })],
    ["unrecordedRuns.maxRunMs", 0.5, (maxRunMs) => new AgentRuntime({ agents, unrecordedRuns: { maxRunMs } })],
    ["unrecordedRuns.maxInAll", -1, (maxInAll) => new AgentRuntime({ agents, unrecordedRuns: { maxInAll } })],
    ["a2ui.enabled", "false", (enabled) => new AgentRuntime({ agents, a2ui: { use: use as never, enabled } })],
    ["a2ui.agents", "reader", (given) => new AgentRuntime({ agents, a2ui: { use: use as never, agents: given } })],
    [
      "a2ui.injectA2UITool",
      5,
      (tool) => new AgentRuntime({ agents, a2ui: { use: use as never, injectA2UITool: tool } }),
    ],
    [
      "a2ui.injectA2UITool",
      "",
      (tool) => new AgentRuntime({ agents, a2ui: { use: use as never, injectA2UITool: tool } }),
    ],
    ["mcpApps.servers", undefined, (servers) => new AgentRuntime({ agents, mcpApps: { use: use as never, servers } })],
    ["limits.maxThreads", "5", (maxThreads) => new AgentRuntime({ agents, limits: { maxThreads } })],
    ["debug", "verbose", (debug) => new AgentRuntime({ agents, debug })],
    ["debug.log", "log", (log) => new AgentRuntime({ agents, debug: { log } })],
    ["debug.verbose", "false", (verbose) => new AgentRuntime({ agents, debug: { verbose } })],
    ["metrics.runStarted", 5, (runStarted) => new AgentRuntime({ agents, metrics: { runStarted } })],
    ["metrics", [], (metrics) => new AgentRuntime({ agents, metrics })],
    ["forwardHeaders.deny", [5], (deny) => new AgentRuntime({ agents, forwardHeaders: { deny } })],
    [
      "mcpApps.servers[0].agentId",
      null,
      (agentId) =>
        new AgentRuntime({
          agents,
          mcpApps: { use: use as never, servers: [{ type: "http", url: "http://a", agentId }] },
        }),
    ],
    ["startTimeoutMs", NaN, (startTimeoutMs) => connectRuntime({ hosts: {}, startTimeoutMs })],
    ["callTimeoutMs", null, (callTimeoutMs) => connectRuntime({ hosts: {}, callTimeoutMs })],
    ["extendedLifetime", "false", (extendedLifetime) => connectRuntime({ hosts: {}, extendedLifetime })],
    ["headers", "x", (headers) => connectRuntime({ hosts: {}, headers })],
    ["headers", null, (headers) => connectRuntime({ hosts: {}, headers })],
    ["hosts.shared", null, (shared) => connectRuntime({ hosts: { shared } })],
    ["hosts.page", {}, (page) => connectRuntime({ hosts: { page } })],
    ["initialMessages", "hi", (initialMessages) => connectRuntime({ hosts: {} }).agent("a", { initialMessages })],
    ["initialState", () => 1, (initialState) => connectRuntime({ hosts: {} }).agent("a", { initialState })],
    ["initialState", { deep: Symbol("s") }, (initialState) => defineAgent(nothing, { initialState })],
    ["debug", "true", (debug) => connectRuntime({ hosts: {} }).agent("a", { debug })],
    ["debug", 1, (debug) => defineAgent(nothing, { debug })],
    ["runtime.fetch", null, (given) => installRuntimeFetch(given, { basePath: "/api" })],
    ["target.fetch", null, (target) => installRuntimeFetch({ fetch }, { basePath: "/api", target })],
    ["runtime.relay", undefined, (given) => answerServiceWorker(given)],
    ["timeoutMs", "5", (timeoutMs) => relayRuntime({ basePath: "/api", timeoutMs }, globalThis as never)],
    ["timeoutMs", Symbol("5"), (timeoutMs) => relayRuntime({ basePath: "/api", timeoutMs }, globalThis as never)],
    ["work", undefined, (work) => defineAgent(work)],
    ["preset", undefined, () => new (LocalAgentRunner as unknown as new () => unknown)()],
    ["link", undefined, () => new (RemoteRunner as new () => unknown)()],
    ["link", undefined, () => new (LocalAgent as unknown as new () => unknown)()],
    ["options", undefined, (given) => describeAgentRunner("x", given)],
    ["create", "x", (create) => describeAgentRunner("x", { create })],
    ["host", "a/b", (host) => createNodeHandler(handler, { host })],
    ["host", "", (host) => createNodeHandler(handler, { host })],
    // A URL parser takes them; every request was answered with 400.
    ["host", "a.example/", (host) => createNodeHandler(handler, { host })],
    ["host", "a.example\\", (host) => createNodeHandler(handler, { host })],
    ["host", "a.exa\tmple", (host) => createNodeHandler(handler, { host })],
    ["host", 5, (host) => createNodeHandler(handler, { host, allowedHosts: ["*"] })],
    ["dbName", Symbol("x"), (dbName) => new IndexedDBSaver({ dbName })],
    ["dbName", "", (dbName) => new IndexedDBSaver({ dbName })],
    ["openTimeoutMs", NaN, (openTimeoutMs) => new IndexedDBSaver({ openTimeoutMs })],
    ["serde.dumpsTyped", {}, (serde) => new IndexedDBSaver({ serde })],
    ["codec.encode", null, (codec) => new IndexedDBCheckpointStore({ codec })],
    ["ids", 5, (ids) => new InMemoryCheckpointStore({ ids })],
    ["clock.now", null, (clock) => new IndexedDBCheckpointStore({ clock })],
  ])("%s: %j", (field, given, take) => {
    const refused = refusal(() => take(given as never));
    expect(refused.field).toBe(field);
    expect(refused.message).toContain(field);
  });

  test("a reset of no store is not a reset of all", async () => {
    await expect(resetInMemoryStore(null as never)).rejects.toMatchObject({ details: { field: "dbName" } });
  });

  test("debug may be on, off or how, a state whatever can be cloned, a tool of A2UI on or a name", async () => {
    for (const debug of [true, false, { events: false }]) {
      expect(() => new AgentRuntime({ agents, debug })).not.toThrow();
      expect(() => defineAgent(nothing, { debug })).not.toThrow();
    }
    const connection = connectRuntime({ hosts: {} });
    for (const initialState of [null, {}, [], "text", { at: new Date(0) }])
      expect(connection.agent("a", { initialState }).state).toEqual(initialState ?? {});
    await connection.close();
    for (const injectA2UITool of [true, false, "show"])
      expect(() => new AgentRuntime({ agents, a2ui: { use, injectA2UITool } })).not.toThrow();
  });

  test("endless time-outs, and runs beside the log that there may be none of, are taken", async () => {
    const unrecordedRuns = { maxPerThread: 0, maxInAll: 0, maxRunMs: Infinity };
    expect(() => new AgentRuntime({ agents, openTimeoutMs: Infinity, unrecordedRuns })).not.toThrow();
    await connectRuntime({ hosts: {}, startTimeoutMs: Infinity, callTimeoutMs: Infinity, headers: {} }).close();
    await connectRuntime({ hosts: {}, headers: () => ({}) }).close();
  });
});

describe("what CopilotKit spells otherwise", () => {
  const handler = (options: object) => () => createRuntimeHandler({ runtime: runtime(), ...options });
  const runtimeOf = (options: object) => () => new AgentRuntime({ agents, ...options });
  const server = (options: object) => ({ mcpApps: { use, servers: [{ type: "http", url: "http://a", ...options }] } });
  const refuse = () => {
    throw new Response(null, { status: 401 });
  };

  test.each<[string, () => unknown, string, string]>([
    ["hooks.onRequest of a handler", handler({ hooks: { onRequest: refuse } }), "hooks", "beforeRequestMiddleware"],
    ["hooks of a runtime", runtimeOf({ hooks: { onRequest: refuse } }), "hooks", "beforeRequestMiddleware"],
    ["cors.allowMethods", handler({ cors: { allowMethods: ["GET"] } }), "cors.allowMethods", "cors.methods"],
    ["cors.allowedHeaders", handler({ cors: { allowedHeaders: ["a"] } }), "cors.allowedHeaders", "cors.allowHeaders"],
    ["endpoint", handler({ endpoint: "/api" }), "endpoint", "basePath"],
    ["cors of a runtime", runtimeOf({ cors: true }), "cors", "createRuntimeHandler"],
    ["maxThreads of a runtime", runtimeOf({ maxThreads: 1 }), "maxThreads", "limits.maxThreads"],
    ["excludeTools", runtimeOf(server({ excludeTools: ["rm"] })), "mcpApps.servers[0].excludeTools", "tools"],
    ["includeTools", runtimeOf(server({ includeTools: ["ls"] })), "mcpApps.servers[0].includeTools", "tools"],
    ["a service's", runtimeOf({ licenseToken: "x" }), "licenseToken", "leave it out"],
    [
      "maxThreads of a runner",
      () => new InMemoryAgentRunner({ maxThreads: 1 } as object),
      "maxThreads",
      "limits.maxThreads",
    ],
    [
      "bytes of a database",
      () => new IndexedDBAgentRunner({ limits: { maxBytes: 1 } as object }),
      "limits.maxBytes",
      "quota",
    ],
  ])("%s is refused, and said how it is written here", (_what, take, field, says) => {
    const refused = refusal(take);
    expect(refused.field).toBe(field);
    expect(refused.message).toContain(says);
  });

  test("metrics may be an object of a class, with fields of its own; what a2ui takes is its package's affair", () => {
    class Metrics {
      readonly seen: unknown[] = [];
      runStarted = (run: unknown) => void this.seen.push(run);
    }
    expect(() => new AgentRuntime({ agents, metrics: new Metrics() })).not.toThrow();
    expect(() => new AgentRuntime({ agents, a2ui: { use, catalog: {}, whatever: 1 } })).not.toThrow();
  });

  test.each<[string, () => unknown, string]>([
    ["a middleware that is no function", runtimeOf({ beforeRequestMiddleware: {} }), "beforeRequestMiddleware"],
    ["no middleware where one is meant", runtimeOf({ afterRequestMiddleware: null }), "afterRequestMiddleware"],
    ["a filter that is no function", runtimeOf({ filterEvent: "x" }), "filterEvent"],
    ["a runner that cannot run", runtimeOf({ runner: { connect: () => undefined } }), "runner.run"],
    ["no runner where one is meant", runtimeOf({ runner: null }), "runner.run"],
    ["a service of another shape", runtimeOf({ transcriptionService: {} }), "transcriptionService.transcribeFile"],
    ["a list that is none", runtimeOf({ forwardHeaders: { allow: "x-a" } }), "forwardHeaders.allow"],
    ["servers that are no list", runtimeOf({ mcpApps: { use, servers: {} } }), "mcpApps.servers"],
    ["tools that are no list", runtimeOf(server({ allowedTools: "ls" })), "mcpApps.servers[0].allowedTools"],
    ["limits that are none", runtimeOf({ eventLimits: null }), "eventLimits"],
    ["limits in a list", runtimeOf({ eventLimits: [] }), "eventLimits"],
    [
      "a wrong limit that is inherited",
      runtimeOf({ eventLimits: Object.create({ maxDeep: 1 }) }),
      "eventLimits.maxDeep",
    ],
    ["a limit that is inherited", runtimeOf({ eventLimits: Object.create({ maxDepth: -1 }) }), "eventLimits.maxDepth"],
    ["an origin that is a pattern", handler({ cors: { origin: /example/ } }), "cors.origin"],
    ["no runtime", handler({ runtime: undefined }), "runtime"],
    ["a runtime of another make", handler({ runtime: { agents } }), "runtime"],
  ])("%s is refused at once, by name", (_what, take, field) => {
    expect(refusal(take).field).toBe(field);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["threads", () => new InMemoryAgentRunner({ store: "isolated" }).listThreads({ agentID: "a" } as object)],
    ["runs", () => new InMemoryAgentRunner({ store: "isolated" }).listRuns("t", { agentID: "a" } as object)],
    ["a run", () => new InMemoryAgentRunner({ store: "isolated" }).getRun("r", { agentID: "a" } as object)],
    [
      "a run's events",
      () => new InMemoryAgentRunner({ store: "isolated" }).getRunEvents("r", { agentID: "a" } as object),
    ],
    ["messages", () => new InMemoryAgentRunner({ store: "isolated" }).getMessagePage("t", { agentID: "a" } as object)],
    [
      "a conformance suite",
      async () => describeAgentRunner("x", { create: () => new InMemoryAgentRunner(), agentID: 1 } as never),
    ],
    ["checkpoints", () => new InMemoryCheckpointStore().list("g", { agentID: "a" } as object)],
    ["what to prune", () => new InMemoryCheckpointStore().prune({ keep: 1, agentID: "a" } as object)],
    ["a fetch", () => connectRuntime({ hosts: {} }).fetch("/x", {}, { agentID: "a" } as object)],
  ])("a query of %s that would find more than was asked for is refused", async (_what, ask) => {
    await expect(ask()).rejects.toMatchObject({ code: "invalid-input", details: { field: "agentID" } });
  });

  test.each<[string, object]>(
    Object.entries({
      dbName: "a",
      stopGraceMs: 1,
      maxRunMs: 1,
      limits: {},
      eventLimits: {},
      recordInput: [],
      openTimeoutMs: 1,
      memoryFallback: true,
    }).map(([name, value]) => [name, { [name]: value }]),
  )("%s beside a runner, which would not heed it, is refused", (name, option) => {
    const runner = new InMemoryAgentRunner({ store: "isolated" });
    const { field, message } = refusal(runtimeOf({ runner, ...option }));
    expect(field).toBe(name);
    expect(message).toContain("give it to the runner");
    expect(refusal(() => serveRuntime({ agents, runner, ...option })).field).toBe(name);
  });

  test("a runtime tells at once what its runner would refuse later", () => {
    expect(refusal(runtimeOf({ stopGraceMs: -1 })).field).toBe("stopGraceMs");
    expect(refusal(runtimeOf({ limits: { maxThreads: 0 } })).field).toBe("limits.maxThreads");
    expect(refusal(handler({ mode: "single" })).field).toBe("mode");
  });
});
