import "fake-indexeddb/auto";
import { HttpAgent } from "ag-ui-client-0";
import { IndexedDBAgentRunner, InMemoryAgentRunner, type AgentRunner } from "ag-ui-local-runtime";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { agentOn, agents, BASE, copilotKit, type CoreAgent, frontEnd, Gate, runsOf, serve, textsOf } from "./kit.js";

type Mode = "multi-route" | "single-route";

/** @returns the URL of a runtime with this runner */
type Serve = (runner: AgentRunner, gate: Gate, mode: Mode) => Promise<string>;

const inOurs: Serve = (runner, gate, mode) => {
  const runtime = new AgentRuntime({ agents: agents(gate), runner });
  onTestFinished(() => runtime.close());
  return serve(createNodeHandler(createRuntimeHandler({ runtime, basePath: BASE, mode })));
};
const inTheirs: Serve = (runner, gate, mode) =>
  serve(
    copilotKit.createCopilotNodeListener({
      runtime: new copilotKit.CopilotRuntime({ agents: agents(gate), runner }),
      basePath: BASE,
      mode,
    }),
  );

interface Pair {
  readonly serve: Serve;
  readonly makeRunner: () => AgentRunner;
  /** Its thread routes answer. */
  readonly threads: boolean;
}

let names = 0;
const inMemory = () => new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 });
const durable = () => {
  const runner = new IndexedDBAgentRunner({ dbName: `copilotkit-${process.pid}-${++names}`, stopGraceMs: 50 });
  onTestFinished(() => runner.close());
  return runner;
};
const theirs = () => new copilotKit.InMemoryAgentRunner();

const PAIRS: Readonly<Record<string, Pair>> = {
  "CopilotKit's runner in our runtime": { serve: inOurs, makeRunner: theirs, threads: true },
  "our InMemoryAgentRunner in CopilotKit's runtime": { serve: inTheirs, makeRunner: inMemory, threads: true },
  "our IndexedDBAgentRunner in CopilotKit's runtime": { serve: inTheirs, makeRunner: durable, threads: false },
  "our runner in our runtime": { serve: inOurs, makeRunner: inMemory, threads: true },
};

/** A whole run whose ids the test chooses. */
async function postRun(
  url: string,
  transport: "rest" | "single",
  agentId: string,
  { threadId, runId, content }: { readonly threadId: string; readonly runId: string; readonly content: string },
): Promise<void> {
  const messages = [{ id: `${runId}-user`, role: "user", content }];
  const body = { threadId, runId, messages, state: {}, tools: [], context: [], forwardedProps: {} };
  const single = { method: "agent/run", params: { agentId }, body };
  const response = await fetch(transport === "rest" ? `${url}/agent/${agentId}/run` : url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(transport === "rest" ? body : single),
  });
  expect(await response.text()).toContain("RUN_FINISHED");
}

const ask = (agent: CoreAgent, content: string): void =>
  agent.addMessage({ id: `${agent.threadId}-${content}`, role: "user", content });

describe.each(Object.entries(PAIRS))("%s", (_name, pair) => {
  /** Their in-memory store is one for all. */
  const fresh = (): string => `thread-${++names}`;

  describe.each([
    ["rest", "multi-route"],
    ["single", "single-route"],
  ] as const)("transport %s", (transport, mode) => {
    async function begin() {
      const gate = new Gate();
      const runner = pair.makeRunner();
      const url = await pair.serve(runner, gate, mode);
      const threadId = fresh();
      const { core, errors } = await frontEnd(url, transport);
      return { gate, runner, url, threadId, core, errors };
    }

    test("runs: agents are given messages, state and thread; a reload shows all of it", async () => {
      const { url, core, errors, threadId } = await begin();
      const agent = agentOn(core, "counter", threadId);
      for (const content of ["one", "two"]) {
        ask(agent, content);
        await core.runAgent({ agent });
      }
      const all = [
        "user: one",
        `assistant: ${threadId} has 1, count 1`,
        "user: two",
        `assistant: ${threadId} has 3, count 2`,
      ];
      expect(textsOf(agent)).toEqual(all);

      const reloaded = await frontEnd(url, transport);
      const again = agentOn(reloaded.core, "counter", threadId);
      await reloaded.core.connectAgent({ agent: again });
      expect(textsOf(again)).toEqual(all);
      expect(again.state).toEqual({ count: 2 });
      expect([...errors, ...reloaded.errors]).toEqual([]);
    });

    test("a reload in the middle of a run shows the first half, then the rest", async () => {
      const { url, core, gate, errors, threadId } = await begin();
      const agent = agentOn(core, "slow", threadId);
      ask(agent, "go");
      const running = core.runAgent({ agent });
      await vi.waitFor(() => expect(textsOf(agent)).toEqual(["user: go", "assistant: half "]));
      await agent.detachActiveRun();
      await running;

      const reloaded = await frontEnd(url, transport);
      const again = agentOn(reloaded.core, "slow", threadId);
      const connected = reloaded.core.connectAgent({ agent: again });
      await vi.waitFor(() => expect(textsOf(again)).toEqual(["user: go", "assistant: half "]));
      gate.release();
      await connected;
      expect(textsOf(again)).toEqual(["user: go", "assistant: half whole"]);
      expect([...errors, ...reloaded.errors]).toEqual([]);
    });

    if (pair.serve === inOurs && pair.makeRunner !== theirs) {
      test("after a reload each message is of its own run, that of a live run too", async () => {
        const { url, errors, gate, threadId } = await begin();
        const send = (agentId: string, runId: string, content: string) =>
          postRun(url, transport, agentId, { threadId, runId, content });
        for (const [runId, content] of [
          ["run-1", "one"],
          ["run-2", "two"],
          ["run-3", "three"],
        ] as const) {
          await send("counter", runId, content);
        }
        const reload = async () => {
          const { core, errors: seen } = await frontEnd(url, transport);
          const agent = core.getAgent("counter")!;
          agent.threadId = threadId;
          return { core, agent, seen };
        };
        const settled = await reload();
        await settled.core.connectAgent({ agent: settled.agent });
        const all = ["run-1", "run-1", "run-2", "run-2", "run-3", "run-3"];
        expect(runsOf(settled.core, "counter", settled.agent)).toEqual(all);
        expect(settled.agent.messages.map(({ id }) => id)).toEqual(
          ["run-1", "run-2", "run-3"].flatMap((runId) => [`${runId}-user`, `${runId}-answer`]),
        );
        // Again, with all of them held: nothing is given away from its run.
        await settled.core.connectAgent({ agent: settled.agent });
        expect(runsOf(settled.core, "counter", settled.agent)).toEqual(all);

        const running = send("slow", "run-4", "four");
        const live = await reload();
        const connected = live.core.connectAgent({ agent: live.agent });
        await vi.waitFor(() => expect(textsOf(live.agent).at(-1)).toBe("assistant: half "));
        expect(runsOf(live.core, "counter", live.agent)).toEqual([...all, "run-4", "run-4"]);
        gate.release();
        await Promise.all([running, connected]);
        expect(textsOf(live.agent).at(-1)).toBe("assistant: half whole");
        expect(runsOf(live.core, "counter", live.agent)).toEqual([...all, "run-4", "run-4"]);
        expect([...errors, ...settled.seen, ...live.seen]).toEqual([]);
      });
    }

    test("a stop ends the run, is no error for anybody, and the thread takes the next run", async () => {
      const { url, core, errors, runner, threadId } = await begin();
      const agent = agentOn(core, "slow", threadId);
      ask(agent, "go");
      const running = core.runAgent({ agent });
      await vi.waitFor(() => expect(textsOf(agent)).toEqual(["user: go", "assistant: half "]));
      const other = await frontEnd(url, transport);
      const watching = agentOn(other.core, "slow", threadId);
      const watched = other.core.connectAgent({ agent: watching });
      await vi.waitFor(() => expect(textsOf(watching)).toHaveLength(2));
      core.stopAgent({ agent });
      await Promise.all([running, watched]);
      await vi.waitFor(async () => expect(await runner.isRunning({ threadId })).toBe(false));

      // It says what it does not understand: of CopilotKit's runner an end without ids.
      if (transport === "rest" && pair.makeRunner !== theirs) {
        const plain = new HttpAgent({ url: `${url}/agent/slow/connect`, threadId });
        await plain.runAgent();
        expect(textsOf(plain)).toEqual(["user: go", "assistant: half "]);
      }
      const later = await frontEnd(url, transport);
      const reading = agentOn(later.core, "counter", threadId);
      await later.core.connectAgent({ agent: reading });
      expect(textsOf(reading)).toEqual(["user: go", "assistant: half "]);
      ask(reading, "more");
      await later.core.runAgent({ agent: reading });
      expect(textsOf(reading).at(-1)).toBe(`assistant: ${threadId} has 3, count 1`);
      expect([...errors, ...other.errors, ...later.errors]).toEqual([]);
    });

    test("a tool of the front end, called beside one of the agent, is answered by the page, once", async () => {
      const { url, core, errors, threadId } = await begin();
      core.addTool({ name: "greet", description: "", handler: ({ name }) => Promise.resolve(`hello ${name}`) });
      const agent = agentOn(core, "caller", threadId);
      ask(agent, "go");
      await core.runAgent({ agent });
      const results = ["tool: seen", "tool: hello Ann", "assistant: seen, hello Ann"];
      expect(textsOf(agent).slice(2)).toEqual(results);

      const reloaded = await frontEnd(url, transport);
      const again = agentOn(reloaded.core, "caller", threadId);
      await reloaded.core.connectAgent({ agent: again });
      expect(textsOf(again).slice(2)).toEqual(results);
      expect([...errors, ...reloaded.errors]).toEqual([]);
    });

    test.each([
      ["asking", { resume: [{ interruptId: "i", status: "resolved", payload: "yes" }] }],
      ["asking-langgraph", { forwardedProps: { command: { resume: "yes" } } }],
    ])("what %s asks is answered under the id of the run that asked", async (agentId, answer) => {
      const { url, core, errors, threadId } = await begin();
      const agent = agentOn(core, agentId, threadId);
      ask(agent, "go");
      let runId = "";
      agent.subscribe({ onRunStartedEvent: ({ event }) => void (runId = event.runId) });
      await core.runAgent({ agent });
      expect(textsOf(agent)).toEqual(["user: go", "assistant: may I?"]);
      await core.runAgent({ agent, runId, ...answer });
      const all = ["user: go", "assistant: may I?", "assistant: answered yes"];
      expect(textsOf(agent)).toEqual(all);

      const reloaded = await frontEnd(url, transport);
      const again = agentOn(reloaded.core, agentId, threadId);
      await reloaded.core.connectAgent({ agent: again });
      expect(textsOf(again)).toEqual(all);
      expect([...errors, ...reloaded.errors]).toEqual([]);
    });

    test("an agent that throws is told of, and the thread takes the next run", async () => {
      const { url, core, errors, threadId } = await begin();
      const agent = agentOn(core, "failing", threadId);
      ask(agent, "go");
      await core.runAgent({ agent });
      expect(errors).toEqual([expect.stringContaining("no more")]);
      const later = await frontEnd(url, transport);
      const reading = agentOn(later.core, "counter", threadId);
      await later.core.connectAgent({ agent: reading });
      // CopilotKit's runner has the message without its text.
      expect(textsOf(reading)).toEqual(["user: go", `assistant: ${pair.makeRunner === theirs ? "" : "so far"}`]);
      ask(reading, "more");
      await later.core.runAgent({ agent: reading });
      expect(textsOf(reading).at(-1)).toBe(`assistant: ${threadId} has 3, count 1`);
    });

    test("a busy thread takes no second run, and the first one goes on", async () => {
      const { url, core, gate, threadId, errors } = await begin();
      const agent = agentOn(core, "slow", threadId);
      ask(agent, "go");
      const running = core.runAgent({ agent });
      await vi.waitFor(() => expect(textsOf(agent)).toHaveLength(2));
      const second = await frontEnd(url, transport);
      const refused = agentOn(second.core, "counter", threadId);
      ask(refused, "me too");
      await second.core.runAgent({ agent: refused }).catch(() => undefined);
      expect(textsOf(refused)).toEqual(["user: me too"]);
      // CopilotKit's runtime answers with an empty stream.
      if (pair.serve === inOurs) expect(second.errors.length).toBeGreaterThan(0);
      gate.release();
      await running;
      expect(textsOf(agent)).toEqual(["user: go", "assistant: half whole"]);
      expect(errors).toEqual([]);
    });

    if (mode === "multi-route") {
      test("the thread routes answer as far as the runner can", async () => {
        const { url, core, threadId } = await begin();
        const agent = agentOn(core, "counter", threadId);
        ask(agent, "one");
        await core.runAgent({ agent });
        const get = async (path: string): Promise<{ status: number; body: Record<string, unknown> }> => {
          const response = await fetch(`${url}${path}`);
          return { status: response.status, body: (await response.json()) as Record<string, unknown> };
        };
        const { body: info } = await get("/info");
        const answers = { list: pair.threads, inspect: pair.threads };
        expect(info).toMatchObject({ threadEndpoints: answers });
        if (!pair.threads) {
          for (const path of ["/threads", `/threads/${threadId}/messages`]) expect((await get(path)).status).toBe(422);
          return;
        }
        const listed = await get("/threads?agentId=counter");
        expect(listed.body["threads"]).toContainEqual(
          expect.objectContaining({ id: threadId, agentId: "counter", archived: false }),
        );
        expect((await get("/threads")).body["threads"]).toContainEqual(expect.objectContaining({ id: threadId }));
        expect((await get("/threads?agentId=nobody")).body).toEqual({ threads: [], nextCursor: null });
        const found = await get(`/threads/${threadId}/messages`);
        expect(textsOf(found.body as unknown as { messages: [] })).toEqual([
          "user: one",
          `assistant: ${threadId} has 1, count 1`,
        ]);
        expect((await get(`/threads/${threadId}/state`)).body).toEqual({ state: { count: 1 } });
        const events = (await get(`/threads/${threadId}/events`)).body["events"] as { type: string }[];
        expect(events.map(({ type }) => type)).toEqual(
          expect.arrayContaining(["RUN_STARTED", "TEXT_MESSAGE_CONTENT", "STATE_SNAPSHOT", "RUN_FINISHED"]),
        );
        for (const [path, empty] of [
          ["messages", { messages: [] }],
          ["events", { events: [] }],
          ["state", { state: null }],
        ] as const) {
          expect((await get(`/threads/unknown/${path}`)).body).toEqual(empty);
        }
        const cleared = await fetch(`${url}/threads/clear`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: "{}",
        });
        expect(cleared.status).toBe(204);
        await vi.waitFor(async () => expect((await get("/threads")).body["threads"]).toEqual([]));
        expect((await get(`/threads/${threadId}/messages`)).body).toEqual({ messages: [] });
      });
    }
  });
});
