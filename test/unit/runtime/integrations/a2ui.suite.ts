import { EventType, type BaseEvent } from "@ag-ui/client";
import type { LocalAgent } from "ag-ui-local-runtime/client";
import type { A2UIOptions } from "ag-ui-local-runtime/runtime";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { callOf, inputOf, served, typesOf } from "./kit.js";

const use: A2UIOptions["use"] = () => import("@ag-ui/a2ui-middleware");

/** Says which tools it was given, and draws a surface with the tool of this name. */
const drawer = (tool = "render_a2ui"): ReturnType<typeof defineAgent> =>
  defineAgent(async function* (input) {
    yield { type: EventType.CUSTOM, name: "tools", value: input.tools.map(({ name }) => name) };
    const components = [
      { id: "root", component: "Column", children: ["greeting"] },
      { id: "greeting", component: "Text", text: "Hello" },
    ];
    yield* callOf(`${input.runId}-draw`, tool, { surfaceId: "s", components, data: { name: "Ada" } });
  });

/** The surface as it is in the end. */
const surface = {
  activityType: "a2ui-surface",
  content: {
    a2ui_operations: [
      { createSurface: { surfaceId: "s" } },
      { updateComponents: { surfaceId: "s", components: [{ id: "root" }, { id: "greeting", text: "Hello" }] } },
      { updateDataModel: { surfaceId: "s", value: { name: "Ada" } } },
    ],
  },
};

const toolsOf = (events: readonly BaseEvent[]): unknown =>
  events.find(({ type }) => type === EventType.CUSTOM)?.["value"];
const surfacesOf = (events: readonly BaseEvent[]): BaseEvent[] =>
  events.filter(({ type }) => type === EventType.ACTIVITY_SNAPSHOT);

/** What a runtime with `a2ui` does. */
export function describeA2UI(name: string): void {
  describe(name, () => {
    test("a surface grows while its agent writes it, and is recorded as it grew", async () => {
      const here = served({ agents: { drawer: drawer() }, a2ui: { use } });
      const events = await here.events("/agent/drawer/run", inputOf("t", "r"));
      const surfaces = surfacesOf(events);
      expect(surfaces[0]).toMatchObject({ content: { status: "building" } });
      expect(surfaces.at(-1)).toMatchObject(surface);
      expect(new Set(surfaces.map(({ messageId }) => messageId as unknown)).size).toBe(1);
      expect(typesOf(events).slice(-3)).toEqual([
        EventType.TOOL_CALL_END,
        EventType.TOOL_CALL_RESULT,
        EventType.RUN_FINISHED,
      ]);
      const recorded = (await here.tab().runner().getRunEvents("r")).map(({ event }) => event);
      expect(surfacesOf(recorded)).toEqual(surfaces);
    });

    test("who connects later is shown the surface as it is in the end", async () => {
      const { events } = served({ agents: { drawer: drawer() }, a2ui: { use } });
      await events("/agent/drawer/run", inputOf("t", "r"));
      const shown = await events("/agent/drawer/connect", inputOf("t", "c"));
      const snapshot = shown.find(({ type }) => type === EventType.MESSAGES_SNAPSHOT);
      const messages = snapshot?.["messages"] as { readonly role: string }[];
      expect(messages.filter(({ role }) => role === "activity")).toMatchObject([surface]);
    });

    test("a tab has it in its messages, also one that only follows", async () => {
      const { tab } = served({ agents: { drawer: drawer() }, a2ui: { use } });
      const [own, other] = [tab(), tab()].map((each) => each.agent("drawer", { threadId: "t" })) as [
        LocalAgent,
        LocalAgent,
      ];
      onTestFinished(other.follow());
      own.addMessage({ id: "u", role: "user", content: "draw" });
      await own.runAgent();
      expect(own.messages.find(({ role }) => role === "activity")).toMatchObject(surface);
      await vi.waitFor(() => expect(other.messages).toEqual(own.messages));
    });

    test.each<[string, Partial<A2UIOptions>, object, string[]]>([
      ["by default", {}, {}, []],
      ["where the front end has a catalog", {}, { a2uiCatalogAvailable: true }, ["render_a2ui"]],
      ["where it says something else of it", {}, { a2uiCatalogAvailable: "yes" }, []],
      ["where it is to be given", { injectA2UITool: true }, {}, ["render_a2ui"]],
      ["where it has another name", { injectA2UITool: "draw" }, {}, ["draw"]],
      ["where it is not to be given, catalog or not", { injectA2UITool: false }, { a2uiCatalogAvailable: true }, []],
      ["where it is switched off", { injectA2UITool: true, enabled: false }, {}, []],
      ["where the agent is among those named", { injectA2UITool: true, agents: ["drawer"] }, {}, ["render_a2ui"]],
      ["where it is not", { injectA2UITool: true, agents: ["other"] }, {}, []],
    ])("the tool, %s: options %j, forwardedProps %j", async (_, options, forwardedProps, tools) => {
      const { events } = served({ agents: { drawer: drawer() }, a2ui: { use, ...options } });
      expect(toolsOf(await events("/agent/drawer/run", inputOf("t", "r", { forwardedProps })))).toEqual(tools);
    });

    test.each([{ enabled: false }, { agents: ["other"] }])(
      "where it does not apply nothing is drawn: %j",
      async (options) => {
        const { events } = served({ agents: { drawer: drawer() }, a2ui: { use, ...options } });
        expect(surfacesOf(await events("/agent/drawer/run", inputOf("t", "r")))).toEqual([]);
      },
    );

    test("a tool of another name draws, and the package's own options reach it", async () => {
      const a2ui = { use, injectA2UITool: "draw", a2uiToolNames: ["draw"], defaultCatalogId: "https://example.com/c" };
      const { events } = served({ agents: { drawer: drawer("draw") }, a2ui });
      const [created] = (
        surfacesOf(await events("/agent/drawer/run", inputOf("t", "r"))).at(-1) as BaseEvent & {
          content: { a2ui_operations: unknown[] };
        }
      ).content.a2ui_operations;
      expect(created).toMatchObject({ createSurface: { surfaceId: "s", catalogId: "https://example.com/c" } });
    });

    test("what was done in a surface reaches the agent as a call of its own, and is not recorded as the user's", async () => {
      const seen: unknown[] = [];
      const agent = defineAgent(async function* (input) {
        seen.push(input.messages.slice(-2));
        yield { type: EventType.CUSTOM, name: "seen", value: null };
      });
      const { events, tab } = served({ agents: { agent }, a2ui: { use } });
      const a2uiAction = { userAction: { name: "buy", surfaceId: "s", sourceComponentId: "b", context: { n: 2 } } };
      await events("/agent/agent/run", inputOf("t", "r", { forwardedProps: { a2uiAction } }));
      expect(seen).toMatchObject([
        [{ toolCalls: [{ function: { name: "log_a2ui_event" } }] }, { role: "tool", content: expect.any(String) }],
      ]);
      expect(await tab().runner().getThreadMessages("t")).toMatchObject([{ id: "r-u" }]);
    });
  });
}
