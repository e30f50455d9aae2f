import { EventType } from "@ag-ui/core";
import { expectSame, expectThat } from "../../../../src/conformance/expect.js";
import { MAX_BODY_BYTES } from "./contract-agents.js";
import { expectJson, expectRefusal, refusalOf, type ContractBench, type ContractCase } from "./contract-bench.js";
import { EventReader, typesOf } from "./reading.js";

/** Each route: where it is, and how it is asked. */
const ROUTES = [
  ["/info", ["GET", "HEAD"]],
  ["/health", ["GET", "HEAD"]],
  ["/transcribe", ["POST"]],
  ["/agent/echo/run", ["POST"]],
  ["/agent/echo/connect", ["POST"]],
  ["/agent/echo/suggest", ["POST"]],
  ["/agent/echo/stop/t", ["POST"]],
  ["/threads", ["GET", "HEAD"]],
  ["/threads/clear", ["POST"]],
  ["/threads/t", ["PATCH", "DELETE"]],
  ["/threads/t/archive", ["POST"]],
  ["/threads/t/messages", ["GET", "HEAD"]],
  ["/threads/t/events", ["GET", "HEAD"]],
  ["/threads/t/state", ["GET", "HEAD"]],
] as const;

/** Those that can be sent from a page too. */
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

const wrongMethods = ROUTES.flatMap(([path, methods]) =>
  METHODS.filter((method) => !(methods as readonly string[]).includes(method)).map((method): ContractCase => ({
    name: `${method} ${path} is no request of that route`,
    needs: "routes",
    check: async ({ way }) => {
      const answer = await way.request(path, { method });
      expectSame(answer.status, 405, "a wrong method must be refused");
      expectSame(answer.headers.get("Allow"), methods.join(", "), "the answer must say which methods there are");
      if (method !== "HEAD") await expectRefusal(answer, 405, { error: "Method not allowed" });
    },
  })),
);

const heads = ROUTES.filter(([, methods]) => (methods as readonly string[]).includes("HEAD")).map(
  ([path]): ContractCase => ({
    name: `HEAD ${path} is what GET says, without a body`,
    needs: "routes",
    check: async (bench) => {
      const [head, get] = [await bench.way.request(path, { method: "HEAD" }), await bench.get(path)];
      const headersOf = ({ status, headers }: Response) => [status, headers.get("Content-Type")];
      expectSame(headersOf(head), headersOf(get), "HEAD must be answered as GET is");
      expectSame(await head.text(), "", "HEAD must have no body");
      await get.text();
    },
  }),
);

const nowhere: readonly ContractCase[] = [
  "/",
  "/nothing",
  "/agent",
  "/agent/echo",
  "/agent/echo/",
  "/agent/echo/nothing",
  "/agent//run",
  "/agent/echo/run/more",
  "/agent/echo/stop",
  "/agent/echo/stop/",
  "/agent/echo/stop/t/more",
  "/agent/../run",
  "/agent/%zz/run",
  "/threads/",
  "/threads//messages",
  "/threads/t/nothing",
  "/threads/subscribe",
  "/INFO",
  "//info",
  "/more/agent/echo/run",
].map((path) => ({
  name: `${path} leads nowhere`,
  needs: "routes",
  // "/threads/" is the list, which is not POSTed to.
  check: async (bench) => {
    const answer = await bench.post(path, bench.inputOf({ threadId: bench.id("t") }));
    if (path === "/threads/") await expectRefusal(answer, 405);
    else await expectRefusal(answer, 404, { error: "Not found" });
  },
}));

const WORKS = ["run", "connect", "suggest"] as const;

const agentWorks: readonly ContractCase[] = WORKS.flatMap((work): readonly ContractCase[] => [
  ...["nobody", "__proto__", "constructor", "toString", "echo ", "ECHO"].map((agentId): ContractCase => ({
    name: `${work} of the agent "${agentId}", which is not there, is refused`,
    check: async (bench) => {
      const said = await expectRefusal(await bench.ask(work, agentId, { threadId: bench.id("t") }), 404, {
        error: "Agent not found",
      });
      expectThat(String(said["message"]).includes(agentId), "the message must name the agent", String(said["message"]));
    },
  })),
  ...["a/b", "clear", "👋 agent"].map((agentId): ContractCase => ({
    name: `${work} finds the agent "${agentId}"`,
    check: async (bench) => {
      const threadId = bench.id("t");
      const events = await new EventReader(await bench.ask(work, agentId, { threadId })).all();
      expectSame(
        events.at(-1)?.event.type,
        work === "connect" ? undefined : EventType.RUN_FINISHED,
        "an agent of any id must be found",
      );
    },
  })),
  ...(
    [
      ["no JSON", "{"],
      ["nothing", ""],
      ["null", "null"],
      ["a list", "[]"],
      ["a text", '"text"'],
      ["an empty object", "{}"],
      ["a thread id that is a number", { threadId: 1 }],
      ["an empty thread id", { threadId: "" }],
      ["an empty run id", { runId: "" }],
      ["messages that are none", { messages: {} }],
      ["a message without id", { messages: [{ role: "user", content: "" }] }],
      ["a message of an unknown role", { messages: [{ id: "m", role: "nobody", content: "" }] }],
      ["tools that are none", { tools: "x" }],
      ["a field __proto__", '{"threadId":"t","runId":"r","messages":[],"__proto__":{"state":1}}'],
      ["a field __proto__ deep inside", '{"threadId":"t","runId":"r","messages":[],"state":{"a":[{"__proto__":1}]}}'],
      [
        "a nesting that is too deep",
        `{"threadId":"t","runId":"r","messages":[],"state":${"[".repeat(300)}${"]".repeat(300)}}`,
      ],
    ] as const
  ).map(([what, body]): ContractCase => ({
    name: `${work} refuses a body with ${what}`,
    // In an envelope some of these are no text any more.
    ...(typeof body === "string" && { needs: "routes" }),
    check: async (bench) => {
      const input = typeof body === "string" ? body : { ...bench.inputOf({ threadId: bench.id("t") }), ...body };
      await expectRefusal(await bench.post(`/agent/echo/${work}`, input), 400, { error: "Invalid request body" });
    },
  })),
  ...["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"].map(
    (type): ContractCase => ({
      name: `${work} refuses a body of ${type}`,
      needs: "routes",
      check: async (bench) => {
        const body = JSON.stringify(bench.inputOf({ threadId: bench.id("t") }));
        const headers = { "Content-Type": type };
        const answer = await bench.way.request(`/agent/echo/${work}`, { method: "POST", headers, body });
        await expectRefusal(answer, 415);
      },
    }),
  ),
  ...["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.ag-ui+json"].map(
    (type): ContractCase => ({
      name: `${work} takes a body of ${type}`,
      needs: "routes",
      check: async (bench) => {
        const answer = await bench.ask(work, "echo", { threadId: bench.id("t"), headers: { "Content-Type": type } });
        await new EventReader(answer).all();
      },
    }),
  ),
  {
    name: `${work} refuses a compressed body`,
    needs: "routes",
    check: async (bench) => {
      const headers = { "Content-Encoding": "gzip" };
      await expectRefusal(await bench.ask(work, "echo", { threadId: bench.id("t"), headers }), 415);
    },
  },
  {
    name: `${work} refuses a body that is too long`,
    check: async (bench) => {
      const says = "x".repeat(MAX_BODY_BYTES);
      await expectRefusal(await bench.ask(work, "echo", { threadId: bench.id("t"), says }), 413);
    },
  },
]);

/** Ids are any text; a URL can carry all but the names of folders. */
const THREAD_IDS = [
  "__proto__",
  "constructor",
  "a/b",
  "clear",
  "subscribe",
  "👋",
  "a b+c%20d",
  "?x=1#y",
  "%2e",
  "…/",
  " ",
];

const oddThreads = THREAD_IDS.map((odd): ContractCase => ({
  name: `a thread may be called "${odd}"`,
  // An envelope's ids must have something in them that is seen, as CopilotKit's.
  ...(odd.trim() === "" && { needs: "routes" }),
  check: async (bench) => {
    const threadId = odd;
    const runId = bench.id("run");
    await bench.run("echo", { threadId, runId, says: "odd" });
    const said = (await bench.messages(threadId)).find(({ id }) => id === `${runId}-answer`);
    expectSame(said?.["content"], "You said: odd", "its messages must be told");
    const state = (await expectJson(await bench.get(`/threads/${encodedId(threadId)}/state`))) as object;
    expectThat("state" in state && state.state !== null, "its state must be told");
    const events = (await bench.history(threadId)).map(({ event }) => event);
    expectThat(
      events.some(({ type }) => type === EventType.MESSAGES_SNAPSHOT),
      "connect must tell its history",
    );
    expectSame(
      await expectJson(await bench.stop(threadId)),
      { stopped: false, message: `No active run for thread '${threadId}'.` },
      "a stop must be about this thread",
    );
    await expectDeleted(bench, threadId);
  },
}));

/** An id where it stands as a word of its own: `/threads/clear` is the route. */
function encodedId(id: string): string {
  return id === "clear" || id === "subscribe"
    ? `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`
    : encodeURIComponent(id);
}

async function expectDeleted(bench: ContractBench, threadId: string): Promise<void> {
  const answer = await bench.way.request(`/threads/${encodedId(threadId)}`, { method: "DELETE" });
  expectThat(answer.ok, "it must be deleted by this id", `${answer.status} ${await answer.text()}`);
  expectSame(await bench.messages(threadId), [], "a deleted thread must have no messages");
}

const said: readonly ContractCase[] = [
  {
    name: "info says which agents there are and what the runtime can do",
    check: async (bench) => {
      const info = (await expectJson(await bench.get("/info"))) as Record<string, unknown>;
      const { version, agents, ...rest } = info;
      const { single } = bench.way;
      const threadEndpoints = { list: true, inspect: true, mutations: true, realtimeMetadata: false };
      expectThat(
        typeof version === "string" && /^\d+\.\d+\.\d+/.test(version),
        "info must tell a version",
        String(version),
      );
      expectSame(
        rest,
        {
          audioFileTranscriptionEnabled: true,
          mode: "sse",
          threadEndpoints,
          ...(single === true && { singleRoute: { resourceOperations: true, threadEndpoints } }),
          suggestions: true,
          a2uiEnabled: false,
          openGenerativeUIEnabled: false,
          telemetryDisabled: true,
        },
        "info must tell what CopilotKit's front end reads",
      );
      const found = agents as Record<string, { readonly name: string; readonly description: string }>;
      expectSame(found["echo"]?.name, "echo", "an agent must be told by its id");
      expectSame(found["echo"]?.description, "of the contract", "an agent must be described");
      expectSame(found["absent"]?.name, "absent", "an agent that is loaded at its first run must be told of");
      expectThat(Object.hasOwn(found, "a/b"), "an agent of any id must be told of");
    },
  },
  {
    name: "health says that it can run agents",
    needs: "routes",
    check: async (bench) => {
      const health = (await expectJson(await bench.get("/health"))) as Record<string, unknown>;
      expectSame(health["status"], "ok", "a runtime that can run agents must say so");
      expectThat(typeof health["liveThreads"] === "number", "health must tell how many threads are live");
    },
  },
  {
    name: "an agent that cannot be loaded is an error of the run, and the thread stays free",
    check: async (bench) => {
      const threadId = bench.id("t");
      const answer = await bench.ask("run", "absent", { threadId });
      expectSame(answer.status, 500, "an agent that is not there must be told of");
      const refusal = await refusalOf(answer);
      expectSame(refusal["error"], "internal_error", "what a factory throws must be told to nobody");
      expectThat(typeof refusal["id"] === "string", "the log must have it by the id that is told");
      await bench.expectFree(threadId);
    },
  },
  {
    name: "an envelope for a runtime with an endpoint for each route is told so",
    needs: "routes",
    check: async (bench) => {
      await expectRefusal(await bench.post("", { method: "info" }), 404, {
        code: "single_route_envelope_against_multi_route_runtime",
      });
    },
  },
  {
    name: "what a stream is made of is not kept by anybody on its way",
    check: async (bench) => {
      const answer = await bench.ask("run", "echo", { threadId: bench.id("t") });
      expectThat(/\bno-cache\b/.test(answer.headers.get("Cache-Control") ?? ""), "a stream must not be cached");
      const events = await new EventReader(answer).all();
      expectSame(typesOf(events).at(0), EventType.RUN_STARTED, "a run must begin with RUN_STARTED");
      expectThat(
        events.every(({ id }) => id !== undefined && /^\d+\.\d+\.\d+$/.test(id)),
        "each event of a run must have an id",
      );
    },
  },
];

export const ROUTE_CASES: readonly ContractCase[] = [
  ...said,
  ...wrongMethods,
  ...heads,
  ...nowhere,
  ...agentWorks,
  ...oddThreads,
];
