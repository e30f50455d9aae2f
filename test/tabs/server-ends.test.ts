import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Ids, serverThat, sse } from "./driver/agent-server.js";
import { type LabTab, LabTabs, useBrowser } from "./driver/scripted.js";
import type { View } from "./pages/scripted.js";

const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

/** An answer that has begun, and what the server does with it then. */
const saying =
  (events: (ids: Ids) => readonly object[], then: (response: ServerResponse) => unknown) =>
  (response: ServerResponse, ids: Ids): void => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(sse(events(ids)), () => then(response));
  };

const begun = (ids: Ids): object[] => [
  { type: "RUN_STARTED", ...ids },
  { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "so far" },
];

function expectCutOff(view: View, text: string): void {
  expect(view).toMatchObject({ run: { last: { status: "errored" } }, text });
  expect(view.ends).toMatchObject([{ type: "RUN_ERROR", code: "INCOMPLETE_STREAM" }]);
}

const tabOn = async (agentId: string): Promise<LabTab> => (await tabs.open()).follow(agentId, "thread");

describe("an agent on a server that ends its answer without an end of the run (L18)", () => {
  test.each([
    ["in the middle", (response: ServerResponse) => response.end()],
    // Once the tabs have it: what a browser has not read of a broken stream is lost.
    ["by a broken connection", (response: ServerResponse) => response.destroy()],
  ] as const)("%s: every tab sees an errored run and what came before", async (_when, end) => {
    let answering!: ServerResponse;
    const { url } = await serverThat(saying(begun, (response) => (answering = response)));
    const [a, b] = [await tabOn("server"), await tabOn("server")];
    await a.start("thread", { url });
    for (const tab of [a, b]) await tab.tab.waitFor(() => window.lab.view("thread").text === "so far");
    end(answering);
    for (const tab of [a, b]) expectCutOff(await tab.settled("thread"), "so far");
  });

  test("at once: every tab sees an errored run", async () => {
    const { url } = await serverThat((response) => void response.writeHead(200).end());
    const [a, b] = [await tabOn("server"), await tabOn("server")];
    await a.start("thread", { url });
    for (const tab of [a, b]) expectCutOff(await tab.settled("thread"), "");
  });
});

describe("an agent that fails when it is stopped (L12)", () => {
  test.each(["server", "fetching"])("%s: every tab sees a stopped run", async (agentId) => {
    const server = await serverThat(saying(begun, () => undefined));
    const [a, b] = [await tabOn(agentId), await tabOn(agentId)];
    await a.start("thread", { url: server.url });
    for (const tab of [a, b]) await tab.tab.waitFor(() => window.lab.view("thread").text === "so far");
    await expect.poll(server.open).toBe(1);
    await b.stop("thread");
    for (const tab of [a, b]) {
      const view = await tab.settled("thread");
      expect(view).toMatchObject({ run: { last: { status: "stopped" } }, text: "so far" });
      expect(view.ends).toEqual([{ type: "RUN_FINISHED", outcome: "cancelled" }]);
    }
    await expect.poll(server.open).toBe(0);
  });
});

describe("a call of a front-end tool that its agent leaves open", () => {
  /** What the page knows of the call when the run is over. */
  const askFor = (tab: LabTab, url: string, stopped: boolean) =>
    tab.tab.evaluate(
      async (content, stops) => {
        const agent = window.lab.runtime.agent("server", { threadId: "tools" });
        const seen = { types: [] as string[], pending: [] as string[] };
        agent.subscribe({
          onEvent: ({ event }) => {
            seen.types.push(event.type);
            if (stops && event.type === "TOOL_CALL_ARGS") agent.abortRun();
          },
          onRunFinishedEvent: (end) => {
            if (end.outcome === "success") seen.pending = end.pendingToolCallIds;
          },
        });
        agent.addMessage({ id: "u", role: "user", content });
        await agent.runAgent({ tools: [{ name: "ask", description: "of the page", parameters: {} }] });
        return { ...seen, roles: agent.messages.map(({ role }) => role) };
      },
      JSON.stringify({ url }),
      stopped,
    );
  const calling = (ids: Ids): object[] => [
    { type: "RUN_STARTED", ...ids },
    { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "ask" },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" },
  ];

  test("by RUN_FINISHED: it is closed, not answered, and pending", async () => {
    const { url } = await serverThat(
      saying(
        (ids) => [...calling(ids), { type: "RUN_FINISHED", ...ids }],
        (response) => response.end(),
      ),
    );
    const { types, pending, roles } = await askFor(await tabs.open(), url, false);
    expect(types.slice(-2)).toEqual(["TOOL_CALL_END", "RUN_FINISHED"]);
    expect({ pending, roles }).toEqual({ pending: ["c"], roles: ["user", "assistant"] });
  });

  test.each([
    ["by a cut-off answer", false, "RUN_ERROR"],
    ["by a stop", true, "RUN_FINISHED"],
  ] as const)("%s: it is closed, and not answered", async (_how, stopped, end) => {
    const { url } = await serverThat(
      saying(calling, (response) => {
        if (!stopped) response.end();
      }),
    );
    const { types, roles } = await askFor(await tabs.open(), url, stopped);
    expect(types.slice(-2)).toEqual(["TOOL_CALL_END", end]);
    expect(roles).toEqual(["user", "assistant"]);
  });
});
