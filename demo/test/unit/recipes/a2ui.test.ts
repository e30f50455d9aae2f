import { aiAgent } from "ag-ui-local-runtime/ai";
import { expect, onTestFinished, test } from "vitest";
import { servedModel } from "../../../../test/unit/ai/kit.js";
import { hostOf, until } from "../../../../test/unit/waiting/kit.js";
import { a2ui, act, CATALOG, surfacesOf } from "../../../recipes/a2ui.js";

const it = servedModel();

const components = [
  { id: "root", component: "Column", children: ["buy"] },
  { id: "buy", component: "Button", child: "label", action: { event: { name: "buy", context: { count: 2 } } } },
  { id: "label", component: "Text", text: { path: "/label" } },
];
const args = { surfaceId: "order", components, data: { label: "Buy two" } };

test("a model draws a surface in every tab, and is told what a person did in it", async () => {
  it.server.script({ text: ["Here it is"], calls: [{ name: "render_a2ui", args }] }, { text: ["Bought"] });
  const { connect } = hostOf({ agents: { assistant: aiAgent({ model: it.model }) }, a2ui });
  const [agent, other] = [connect(), connect()].map((tab) => tab.agent("assistant", { threadId: "t" }));
  onTestFinished(other!.follow());
  agent!.addMessage({ id: "u", role: "user", content: "a lamp" });
  await agent!.runAgent();
  const surfaces = surfacesOf(agent!.messages);
  expect(surfaces).toMatchObject([
    {
      operations: [
        { createSurface: { surfaceId: "order" } },
        { updateComponents: { surfaceId: "order", components } },
        { updateDataModel: { surfaceId: "order", value: { label: "Buy two" } } },
      ],
    },
  ]);
  await until(() => expect(surfacesOf(other!.messages)).toEqual(surfaces));
  expect(JSON.stringify(it.server.requests[0]!.body["messages"])).toContain(CATALOG[0].props.children);

  await act(other!, { surfaceId: "order", sourceComponentId: "buy", name: "buy", context: { count: 2 } });
  expect(other!.messages.at(-1)).toMatchObject({ role: "assistant", content: "Bought" });
  const told = it.server.requests[1]!.body["messages"] as readonly {
    readonly role: string;
    readonly content: string;
  }[];
  expect(told.at(-1)).toMatchObject({ role: "tool", content: expect.stringContaining('{"count":2}') });
  // It is nobody's message.
  expect(other!.messages.filter(({ role }) => role === "user")).toHaveLength(1);
});

test("a surface that has begun has nothing to draw yet; other activities are none", () => {
  const activity = (activityType: string, content: object) => ({
    id: "a",
    role: "activity" as const,
    activityType,
    content,
  });
  const building = activity("a2ui-surface", { status: "building" });
  expect(surfacesOf([building, activity("mcp-apps", { a2ui_operations: [] })])).toEqual([{ id: "a", operations: [] }]);
});
