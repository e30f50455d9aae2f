import { EventType } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { responseFilter } from "../../../recipes/response-filtering.js";
import { agentOf, inputOf, makeRunner, textOf, user } from "../../../../test/unit/runner/kit.js";
import { runtimeWith } from "../../../../test/unit/runtime/kit.js";
import { connectedTab, WAYS } from "../../../../test/unit/runtime/ways.js";

/** Thinks of a key and tells it. */
const careless = agentOf(async function* ({ runId }) {
  const [thought, answer] = [`${runId}-t`, `${runId}-a`];
  yield { type: EventType.REASONING_START, messageId: thought };
  yield { type: EventType.REASONING_MESSAGE_START, messageId: thought, role: "reasoning" };
  yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId: thought, delta: "they must not know" };
  yield { type: EventType.REASONING_MESSAGE_END, messageId: thought };
  yield { type: EventType.REASONING_END, messageId: thought };
  yield { type: EventType.TEXT_MESSAGE_START, messageId: answer, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: answer, delta: "sk-123 and sk-456" };
  yield { type: EventType.TEXT_MESSAGE_END, messageId: answer };
  yield { type: EventType.STATE_SNAPSHOT, snapshot: { keys: ["sk-123"] } };
});

const filterEvent = responseFilter({ secrets: [/sk-\d+/g], hideReasoning: true });
const input = inputOf("sk-1", "sk-2", [user("sk-3", "my key is sk-123")]);

describe.each(WAYS)("responseFilter, $name", (way) => {
  test("keeps secrets and reasoning from whoever reads; the log has them", async () => {
    const runner = makeRunner();
    const caller = await way.open(runtimeWith({ agents: { careless }, runner, filterEvent }));
    const run = await caller.run("careless", input);
    expect(textOf(run)).toBe("… and …");
    const readings = [
      run,
      await caller.connect("careless", "sk-1"),
      await caller.messages("sk-1"),
      await caller.events("sk-1"),
      await caller.state("sk-1"),
    ];
    for (const read of readings) {
      expect(JSON.stringify(read)).not.toMatch(/sk-\d{3}|they must not know|reasoning/i);
    }
    expect(JSON.stringify(await runner.getThreadMessages("sk-1"))).toContain("they must not know");
  });
});

test("an agent of a tab runs on, whatever its ids look like", async () => {
  const tab = connectedTab(runtimeWith({ agents: { careless }, filterEvent }));
  const agent = tab.agent("careless", { threadId: "sk-1" });
  for (const runId of ["sk-2", "sk-3"]) {
    agent.addMessage(user(`u-${runId}`, "hello"));
    await agent.runAgent({ runId });
  }
  expect(agent.messages.map(({ role, content }) => `${role}: ${content as string}`)).toEqual([
    "user: hello",
    "assistant: … and …",
    "user: hello",
    "assistant: … and …",
  ]);
});

const context = {
  request: new Request("http://localhost"),
  path: "/",
  resolved: { agentIds: async () => [] },
  threadId: "t",
};

test("nothing is changed where nothing is asked for", () => {
  const event = {
    type: EventType.MESSAGES_SNAPSHOT,
    messages: [{ id: "m", role: "reasoning", content: "sk-1" }],
    n: 1,
    none: null,
  };
  expect(responseFilter({})(event, context)).toEqual(event);
});

test("only messages are of a role: a state may look like one", () => {
  const event = { type: EventType.STATE_SNAPSHOT, snapshot: { steps: [{ role: "reasoning" }] } };
  expect(filterEvent(event, context)).toEqual(event);
});
