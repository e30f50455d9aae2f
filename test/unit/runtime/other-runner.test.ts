import { AbstractAgent, EventType, type BaseEvent, type Message } from "@ag-ui/client";
import type { AgentRunner, AgentRunnerConnectRequest, AgentRunnerRunRequest } from "ag-ui-local-runtime";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { defer, from, of, Subject } from "rxjs";
import { describe, expect, test } from "vitest";
import { user } from "../runner/kit.js";
import { HeadersAgent, runtimeWith } from "./kit.js";

/** A runner of another make: notes what it is given. */
class OtherRunner implements AgentRunner {
  readonly runs: AgentRunnerRunRequest[] = [];
  readonly connects: AgentRunnerConnectRequest[] = [];

  run(request: AgentRunnerRunRequest) {
    this.runs.push(request);
    const { threadId, runId } = request.input;
    return of<BaseEvent[]>(
      { type: EventType.RUN_STARTED, threadId, runId } as BaseEvent,
      { type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent,
    );
  }

  connect(request: AgentRunnerConnectRequest) {
    this.connects.push(request);
    return from<BaseEvent[]>([]);
  }

  isRunning = () => Promise.resolve(false);
  stop = () => Promise.resolve(false);
}

const record = (id: string, agentId: string, archived = false) => ({
  id,
  name: null,
  agentId,
  organizationId: "",
  createdById: "",
  archived,
  createdAt: "2026-01-01T00:00:00.000Z",
  updatedAt: "2026-01-01T00:00:00.000Z",
});

/** One that tells of its threads, as CopilotKit's do: at once, or later. */
class TellingRunner extends OtherRunner {
  readonly ɵsupportsLocalThreadEndpoints = true;
  cleared = 0;
  constructor(private readonly later: boolean) {
    super();
  }
  private tell<T>(value: T): T | Promise<T> {
    return this.later ? Promise.resolve(value) : value;
  }
  listThreads = () => this.tell([record("a", "counter"), record("b", "other"), record("c", "counter", true)]);
  getThreadMessages = (threadId: string) => this.tell<Message[]>(threadId === "a" ? [user("u", "hello")] : []);
  getThreadEvents = () => this.tell([{ type: EventType.RUN_FINISHED, threadId: "a", runId: "r" } as BaseEvent]);
  getThreadState = (threadId: string) => this.tell(threadId === "a" ? { count: 1 } : null);
  clearThreads = () => void this.cleared++;
}

const input = (messages: Message[]) => ({
  threadId: "thread",
  runId: "run",
  messages,
  tools: [],
  context: [],
  state: { count: 1 },
  forwardedProps: {},
});

function serve(runner: AgentRunner, agent: AbstractAgent = new HeadersAgent({ "x-own": "agent" })) {
  const runtime = runtimeWith({ runner, agents: { counter: agent }, forwardHeaders: { allow: ["x-tenant", "x-own"] } });
  const handle = createRuntimeHandler({ runtime });
  return async (path: string, body?: unknown, method = body === undefined ? "GET" : "POST") => {
    const headers = { cookie: "secret=1", "x-tenant": "t", "x-own": "reader", "content-type": "application/json" };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await handle(new Request(`http://local${path}`, init));
    const text = await response.text();
    return { status: response.status, text, json: () => JSON.parse(text) as Record<string, unknown> };
  };
}

describe("a runner of another make", () => {
  test("is given a clone that knows its thread, messages and state", async () => {
    const runner = new OtherRunner();
    const agent = new HeadersAgent();
    const ask = serve(runner, agent);
    const messages = [user("u1", "one"), user("u2", "two")];
    expect((await ask("/agent/counter/run", input(messages))).text).toContain("RUN_FINISHED");
    const [run] = runner.runs;
    expect(run!.agent).not.toBe(agent);
    expect(run!.agent).toMatchObject({ agentId: "counter", threadId: "thread", messages, state: { count: 1 } });
    expect(run).toMatchObject({ threadId: "thread", input: { runId: "run", messages } });
    expect(agent).toMatchObject({ messages: [], state: {} });
  });

  test("is told of its reader's headers what may go upstream, the agent's own first, and no cookie", async () => {
    const runner = new OtherRunner();
    await serve(runner)("/agent/counter/connect", input([]));
    expect(runner.connects).toEqual([
      { threadId: "thread", agentId: "counter", headers: { "x-own": "agent", "x-tenant": "t" } },
    ]);
  });

  test("that tells nothing of its threads is said to, and asked for nothing", async () => {
    const ask = serve(new OtherRunner());
    const no = { list: false, inspect: false, mutations: false, realtimeMetadata: false };
    expect((await ask("/info")).json()).toMatchObject({ threadEndpoints: no });
    for (const path of ["/threads", "/threads/a/messages", "/threads/a/events", "/threads/a/state"]) {
      expect((await ask(path)).status).toBe(422);
    }
    expect((await ask("/threads/clear", {})).status).toBe(422);
  });

  test.each([false, true])(
    "that tells of its threads answers the thread routes as far as it can (later: %s)",
    async (later) => {
      const runner = new TellingRunner(later);
      const ask = serve(runner);
      expect((await ask("/info")).json()).toMatchObject({
        threadEndpoints: { list: true, inspect: true, mutations: false },
      });
      const idsOf = async (query: string) =>
        ((await ask(`/threads${query}`)).json() as { threads: { id: string }[] }).threads.map(({ id }) => id);
      expect(await idsOf("")).toEqual(["a", "b"]);
      expect(await idsOf("?agentId=counter")).toEqual(["a"]);
      expect(await idsOf("?agentId=counter&includeArchived=true")).toEqual(["a", "c"]);
      expect((await ask("/threads/a/messages")).json()).toEqual({
        messages: [{ id: "u", role: "user", content: "hello" }],
      });
      expect((await ask("/threads/b/messages")).json()).toEqual({ messages: [] });
      expect((await ask("/threads/a/events")).json()).toMatchObject({ events: [{ type: "RUN_FINISHED" }] });
      expect((await ask("/threads/a/state")).json()).toEqual({ state: { count: 1 } });
      expect((await ask("/threads/b/state")).json()).toEqual({ state: null });
      expect((await ask("/threads/clear", {})).status).toBe(204);
      expect(runner.cleared).toBe(1);
      for (const [path, body, method] of [
        ["/threads/a", { name: "n" }, "PATCH"],
        ["/threads/a", undefined, "DELETE"],
        ["/threads/a/archive", {}, "POST"],
      ] as const) {
        expect((await ask(path, body, method)).status).toBe(422);
      }
    },
  );
});

describe("a runner of another make that behaves oddly", () => {
  const of$ = (...events: unknown[]) => from(events as BaseEvent[]); // as an agent may emit them
  const started = { type: EventType.RUN_STARTED, threadId: "thread", runId: "run" };
  const finished = { type: EventType.RUN_FINISHED, threadId: "thread", runId: "run" };
  const own: Record<string, unknown> = { type: EventType.CUSTOM, name: "own" };
  own["value"] = own;
  const deep = JSON.parse(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`) as unknown;
  const throwing = (field: string) =>
    Object.defineProperty({ type: EventType.CUSTOM, name: "n" } as object, field, {
      enumerable: true,
      get: () => {
        throw new Error("looked at");
      },
    });

  /** One whose `run` and `connect` return this. */
  function returning(given: () => unknown) {
    const returns = given as OtherRunner["run"]; // whatever it is
    const runner = Object.assign(new OtherRunner(), { run: returns, connect: returns });
    const ended: unknown[] = [];
    const runtime = runtimeWith({
      runner,
      agents: { counter: new HeadersAgent() },
      afterRequestMiddleware: ({ path }) => void ended.push(path),
    });
    const handle = createRuntimeHandler({ runtime });
    const ask = async (path: string) => {
      const headers = { "content-type": "application/json" };
      const response = await handle(
        new Request(`http://local${path}`, { method: "POST", headers, body: JSON.stringify(input([])) }),
      );
      return { status: response.status, text: await response.text().catch(() => "cut off") };
    };
    return { ask, ended, runtime };
  }

  const ROUTES = ["/agent/counter/run", "/agent/counter/connect"];

  test("may hand over its Observable later", async () => {
    const { ask, ended } = returning(async () => of$(started, finished));
    for (const path of ROUTES) expect((await ask(path)).text).toContain("RUN_FINISHED");
    await expect.poll(() => ended).toEqual(ROUTES);
  });

  test("is as busy as one that throws where it says so later", async () => {
    const { ask } = returning(() => Promise.reject(new Error("Thread already running")));
    expect((await ask(ROUTES[0]!)).status).toBe(409);
  });

  // Any of these used to end the process, by an error or a rejection that nobody handled: the run of the test fails then.
  test.each<[string, () => unknown, number]>([
    ["no Observable", () => undefined, 500],
    ["a Promise of none", async () => null, 500],
    ["a Promise that rejects", () => Promise.reject(new Error("secret")), 500],
    ["one that throws when it is subscribed to", () => ({ subscribe: () => JSON.stringify(throwing("value")) }), 200],
    ["an event that is null", () => of$(started, null, finished), 200],
    ["an event of no type", () => of$(started, {}, finished), 200],
    ["an event that holds itself", () => of$(started, own, finished), 200],
    ["an event that is nested too deep to be walked", () => of$(started, { ...own, value: deep }, finished), 200],
    ["an event whose type throws", () => of$(started, throwing("type")), 200],
    ["an event whose value throws", () => of$(started, throwing("value"), finished), 200],
  ])("costs its own request and nothing else: %s", async (_, given, status) => {
    const { ask, ended, runtime } = returning(given);
    for (const path of ROUTES) {
      const answer = await ask(path);
      expect(answer.status).toBe(status);
      expect(answer.text).not.toContain("secret");
    }
    await expect.poll(() => ended).toEqual(ROUTES);
    expect(await runtime.health()).toMatchObject({ liveThreads: 0 });
  });

  test("has its agent run once where its Observable starts it anew for each subscriber", async () => {
    let runs = 0;
    const cold$ = defer(() => {
      runs++;
      return of$(started, finished);
    });
    const { ask, ended, runtime } = returning(() => cold$);
    expect((await ask(ROUTES[0]!)).text.match(/RUN_FINISHED/g)).toHaveLength(1);
    await expect.poll(() => ended).toEqual([ROUTES[0]]);
    expect(runs).toBe(1);
    expect(await runtime.health()).toMatchObject({ liveThreads: 0 });
  });

  test("runs on without its reader", async () => {
    const events$ = new Subject<BaseEvent>();
    const runner = Object.assign(new OtherRunner(), { run: () => events$.asObservable() });
    const { ended, leave, runtime } = leaving(runner, "/agent/counter/run", input([]));
    await expect.poll(() => events$.observed).toBe(true);
    leave();
    expect((await ended).status).toBe(200);
    expect(await runtime.health()).toMatchObject({ liveThreads: 1 });
    events$.complete();
    await expect.poll(() => runtime.health()).toMatchObject({ liveThreads: 0 });
  });

  const never = () => new Promise<never>(() => undefined);
  test.each<[string, string, unknown?]>([
    ["run", "/agent/counter/run", input([])],
    ["connect", "/agent/counter/connect", input([])],
    ["stop", "/agent/counter/stop/thread", {}],
    ["listThreads", "/threads"],
    ["getThreadMessages", "/threads/a/messages"],
    ["getThreadEvents", "/threads/a/events"],
    ["getThreadState", "/threads/a/state"],
    ["clearThreads", "/threads/clear", {}],
  ])("that never answers %s holds no request longer than its client stays", async (call, path, body) => {
    let asked = false;
    const answers = () => {
      asked = true;
      return never();
    };
    const { ended, leave } = leaving(Object.assign(new TellingRunner(false), { [call]: answers }), path, body);
    await expect.poll(() => asked).toBe(true);
    leave();
    await ended;
  });

  /** A request whose client may leave. */
  function leaving(runner: object, path: string, body?: unknown) {
    // Whatever it is.
    const runtime = runtimeWith({ runner: runner as AgentRunner, agents: { counter: new HeadersAgent() } });
    const client = new AbortController();
    const headers = { "content-type": "application/json" };
    const sent = body === undefined ? {} : { method: "POST", headers, body: JSON.stringify(body) };
    const request = new Request(`http://local${path}`, { ...sent, signal: client.signal });
    return { runtime, ended: createRuntimeHandler({ runtime })(request), leave: () => client.abort() };
  }
});
