import { EventType, type BaseEvent } from "@ag-ui/client";
import type { LocalAgent } from "ag-ui-local-runtime/client";
import type { McpAppsOptions } from "ag-ui-local-runtime/runtime";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { callOf, inputOf, served, typesOf, type Served } from "./kit.js";

/** The servers that the suite needs: addresses of `startMcpServer`. */
export interface McpServers {
  readonly url: string;
  readonly sseUrl: string;
}

/** The user interface of `startMcpServer`'s tool. */
const WEATHER_UI = "ui://weather/view.html";

const use: McpAppsOptions["use"] = () => import("@ag-ui/mcp-apps-middleware");

/** Calls every tool that it is given for Oslo; asked for nothing it waits until it is let on. */
function caller(): { readonly agent: ReturnType<typeof defineAgent>; readonly given: string[][]; letOn: () => void } {
  const given: string[][] = [];
  let letOn = (): void => undefined;
  const gate = new Promise<void>((resolve) => (letOn = resolve));
  const agent = defineAgent(async function* (input, { signal }) {
    given.push(input.tools.map(({ name }) => name));
    if (input.messages.at(-1)?.content === "wait") {
      await Promise.race([gate, new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))]);
    }
    for (const { name } of input.tools) yield* callOf(`${input.runId}-${name}`, name, { place: "Oslo" });
  });
  return { agent, given, letOn };
}

const proxied = (method: string, params: object, serverId = "w"): { forwardedProps: object } => ({
  forwardedProps: { __proxiedMCPRequest: { serverId, serverHash: "", method, params } },
});
const inRome = proxied("tools/call", { name: "weather", arguments: { place: "Rome" } });
const rainInRome = { content: [{ type: "text", text: "Rain in Rome" }] };

const activity = {
  activityType: "mcp-apps",
  content: {
    result: { content: [{ type: "text", text: "Rain in Oslo" }] },
    resourceUri: WEATHER_UI,
    serverId: "w",
    toolInput: { place: "Oslo" },
  },
};

const runsOf = async ({ tab }: Served, threadId: string): Promise<string[]> =>
  (await tab().runner().listRuns(threadId)).map(({ runId }) => runId);

/** What a runtime with `mcpApps` does, over real servers. */
export function describeMcpApps(name: string, servers: () => McpServers): void {
  const weather = () => {
    const { url } = servers();
    const { agent, ...rest } = caller();
    return {
      ...rest,
      ...served({
        agents: { agent },
        mcpApps: { use, servers: [{ type: "http", url, serverId: "w", allowedTools: ["weather"] }] },
      }),
    };
  };

  describe(name, () => {
    test.each(["http", "sse"] as const)("a tool of a server (%s) is called, and its result recorded", async (type) => {
      const { agent, given } = caller();
      const url = type === "http" ? servers().url : servers().sseUrl;
      const here = served({ agents: { agent }, mcpApps: { use, servers: [{ type, url, serverId: "w" }] } });
      const events = await here.events("/agent/agent/run", inputOf("t", "r"));
      expect(given).toEqual([["weather"]]);
      expect(typesOf(events).slice(-4)).toEqual([
        EventType.TOOL_CALL_END,
        EventType.TOOL_CALL_RESULT,
        EventType.ACTIVITY_SNAPSHOT,
        EventType.RUN_FINISHED,
      ]);
      expect(events.slice(-3)).toMatchObject([{ toolCallId: "r-weather", content: "Rain in Oslo" }, activity, {}]);
      const recorded = await here.tab().runner().getRunEvents("r");
      expect(recorded.map(({ event }) => event.type)).toEqual(typesOf(events));
    });

    test("who connects later is shown the result and the activity", async () => {
      const { events } = weather();
      await events("/agent/agent/run", inputOf("t", "r"));
      const shown = await events("/agent/agent/connect", inputOf("t", "c"));
      const { messages } = shown.find(({ type }) => type === EventType.MESSAGES_SNAPSHOT) as BaseEvent & {
        messages: unknown[];
      };
      expect(messages).toMatchObject([
        { role: "user" },
        { role: "assistant" },
        { role: "tool", content: "Rain in Oslo" },
        { role: "activity", ...activity },
      ]);
    });

    test("a tab has them in its messages, also one that only follows", async () => {
      const { tab } = weather();
      const [own, other] = [tab(), tab()].map((each) => each.agent("agent", { threadId: "t" })) as [
        LocalAgent,
        LocalAgent,
      ];
      onTestFinished(other.follow());
      own.addMessage({ id: "u", role: "user", content: "weather?" });
      await own.runAgent();
      const roles = ["user", "assistant", "tool", "activity"];
      expect(own.messages.map(({ role }) => role)).toEqual(roles);
      expect(own.messages.at(-1)).toMatchObject(activity);
      await vi.waitFor(() => expect(other.messages).toEqual(own.messages));
    });

    test("what a user interface asks of its server is answered, and is no run of the thread", async () => {
      const { given, ...here } = weather();
      await here.events("/agent/agent/run", inputOf("t", "r"));
      const [started, finished, ...more] = await here.events("/agent/agent/run", inputOf("t", "p", inRome));
      expect([started, finished, more]).toMatchObject([
        { type: EventType.RUN_STARTED, threadId: "t", runId: "p" },
        { type: EventType.RUN_FINISHED, threadId: "t", runId: "p", result: rainInRome },
        [],
      ]);
      expect(given).toHaveLength(1);
      expect(await runsOf(here, "t")).toEqual(["r"]);
    });

    test("such an answer has no cursor that a reader could come back with", async () => {
      const { fetch } = weather();
      const body = JSON.stringify(inputOf("t", "p", inRome));
      const headers = { "content-type": "application/json" };
      const answer = await fetch("/agent/agent/run", { method: "POST", headers, body });
      expect(await answer.text()).not.toMatch(/^id:/m);
    });

    test("a user interface reads its resource, and may not ask for everything", async () => {
      const { events } = weather();
      const ask = async (method: string, params: object, serverId?: string): Promise<unknown> =>
        (await events("/agent/agent/run", inputOf("t", "p", proxied(method, params, serverId)))).at(-1);
      expect(await ask("resources/read", { uri: WEATHER_UI })).toMatchObject({
        result: { contents: [{ uri: WEATHER_UI, text: "<p>weather</p>" }] },
      });
      expect(await ask("tools/list", {})).toMatchObject({ result: { error: expect.stringContaining("not allowed") } });
      expect(await ask("ping", {}, "x")).toMatchObject({
        result: { error: expect.stringContaining("Unknown server") },
      });
    });

    test("a user interface is answered while a run of its thread is live (L5)", async () => {
      const { letOn, ...here } = weather();
      const live = here.tab().agent("agent", { threadId: "t" });
      live.addMessage({ id: "u", role: "user", content: "wait" });
      const run = live.runAgent({ runId: "r" });
      await vi.waitFor(async () => expect(await runsOf(here, "t")).toEqual(["r"]));
      const answer = await here.events("/agent/agent/run", inputOf("t", "p", inRome));
      expect(answer.at(-1)).toMatchObject({ result: rainInRome });
      letOn();
      await run;
      expect(live.messages.at(-1)).toMatchObject(activity);
      expect(await runsOf(here, "t")).toEqual(["r"]);
    });

    test("a tab that asks for its user interface loses no message by it (L2)", async () => {
      const here = weather();
      const agent = here.tab().agent("agent", { threadId: "t" });
      agent.addMessage({ id: "u", role: "user", content: "weather?" });
      await agent.runAgent();
      const before = [...agent.messages];
      agent.addMessage({ id: "next", role: "user", content: "not sent yet" });
      const { result, newMessages } = await agent.runAgent(inRome);
      expect([result, newMessages]).toMatchObject([rainInRome, []]);
      expect(agent.messages).toEqual([...before, { id: "next", role: "user", content: "not sent yet" }]);
      await agent.runAgent();
      const other = here.tab().agent("agent", { threadId: "t" });
      await other.connectAgent();
      expect(other.messages).toEqual(agent.messages);
      expect(other.messages.filter(({ role }) => role === "user").map(({ id }) => id)).toEqual(["u", "next"]);
    });

    test("a tab that asks for its user interface loses no edit by it (L2)", async () => {
      const here = weather();
      const agent = here.tab().agent("agent", { threadId: "t" });
      agent.addMessage({ id: "u", role: "user", content: "weather?" });
      await agent.runAgent();
      agent.setMessages([{ id: "u", role: "user", content: "weather, please" }]);
      await agent.runAgent(inRome);
      await agent.runAgent();
      const messages = await here.tab().runner().getThreadMessages("t");
      expect(messages.filter(({ role }) => role === "user")).toMatchObject([{ content: "weather, please" }]);
    });

    test("nobody who follows the thread takes it for a run (L2)", async () => {
      const { tab } = weather();
      const [one, other] = [tab(), tab()].map((each) => each.agent("agent", { threadId: "t" })) as [
        LocalAgent,
        LocalAgent,
      ];
      const told = new Set<string>();
      for (const each of [one, other]) {
        onTestFinished(each.follow());
        const watching = each.run$.subscribe((run) => {
          const runId = run.is === "running" ? run.runId : run.last?.runId;
          if (runId !== undefined) told.add(runId);
        });
        onTestFinished(() => watching.unsubscribe());
      }
      one.addMessage({ id: "u", role: "user", content: "weather?" });
      await one.runAgent({ runId: "r" });
      await one.runAgent({ runId: "p", ...inRome });
      await other.runAgent({ runId: "last" });
      await vi.waitFor(() => expect(told).toContain("last"));
      expect([...told]).toEqual(["r", "last"]);
    });
  });
}
