import { AbstractAgent, EventType, type BaseEvent, type Message } from "@ag-ui/client";
import type { AgentRunner, AgentRunnerConnectRequest, AgentRunnerRunRequest } from "ag-ui-local-runtime";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { from, of } from "rxjs";
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
