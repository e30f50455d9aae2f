import type { Message } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { aiAgent, type AiTools } from "ag-ui-local-runtime/ai";
import type { ContinuingAgent, HostedRun } from "../../../src/run/hosted.js";
import { hostOf, until } from "../waiting/kit.js";
import { asks, inputOf, runOf, servedModel } from "./kit.js";

const it = servedModel();
const again: HostedRun = { attempt: { of: "broken", number: 2, said: "a" }, committed: async () => undefined };

const callOf = (id: string, name: string, args = "{}"): Message => ({
  id: `m-${id}`,
  role: "assistant",
  toolCalls: [{ id, type: "function", function: { name, arguments: args } }],
});

/** Counts how often each call is executed. */
function counting(more: Partial<Record<"needsApproval" | "repeatable", boolean>> = {}) {
  const executed: string[] = [];
  const tools: AiTools = {
    pay: {
      parameters: {},
      execute: (_: unknown, { toolCallId }) => {
        executed.push(toolCallId);
        return "paid";
      },
      ...more,
    },
  };
  return { executed, tools };
}

const contentsOf = (messages: readonly Message[], role: string): unknown[] =>
  messages.filter((message) => message.role === role).map(({ content }) => content);

describe("issue 16.6: an aiAgent goes on with a run that broke", () => {
  test("it says so, with the tools that may run twice, also of its clones", () => {
    const { tools } = counting({ repeatable: true });
    const agent = aiAgent({ model: it.model, tools, repeatableTools: ["mcp"] }).clone() as ContinuingAgent & {
      clone(): ContinuingAgent;
    };
    for (const each of [agent, agent.clone()]) {
      expect(each).toMatchObject({ continues: true, repeatableTools: ["mcp", "pay"] });
      expect(each.hosted).toBeUndefined();
    }
  });

  test("text that was cut off goes on under its id", async () => {
    it.server.script({ text: [" brown fox"] });
    const cut = asks("say it", { id: "a", role: "assistant", content: "The quick" });
    const { messages, events } = await runOf({ model: it.model }, inputOf(cut), { hosted: again });
    expect(messages.slice(1)).toMatchObject([
      { id: "a", content: "The quick brown fox", metadata: { finishReason: "stop" } },
    ]);
    expect(events.filter(({ type }) => type === EventType.TEXT_MESSAGE_START)).toHaveLength(1);
    const sent = it.server.requests[0]?.body["messages"] as { role: string; content: string }[];
    expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(sent[2]?.content).toContain("cut off");
    // Nothing of that stays in the thread.
    expect(JSON.stringify(messages)).not.toContain("cut off");
  });

  test("an object that was cut off is one with what follows, which no format makes begin anew", async () => {
    it.server.script({ text: ['"Rome"}'] });
    const cut = asks("where?", { id: "a", role: "assistant", content: '{"city":' });
    const options = { model: it.model, output: z.object({ city: z.string() }) };
    const { end } = await runOf(options, inputOf(cut), { hosted: again });
    expect(end).toMatchObject({ type: EventType.RUN_FINISHED, result: { city: "Rome" } });
    expect(it.server.requests[0]?.body).not.toHaveProperty("response_format");
  });

  test("an answer that was complete is not asked for again", async () => {
    const done = asks("say it", {
      id: "a",
      role: "assistant",
      content: "All of it",
      metadata: { finishReason: "stop" },
    });
    const { end, messages } = await runOf({ model: it.model }, inputOf(done), { hosted: again });
    expect(end).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: "success" } });
    expect(messages).toHaveLength(2);
    expect(it.server.requests).toHaveLength(0);
  });

  test("an answer of an earlier run is not that of the attempt: the model is asked (L18)", async () => {
    it.server.script({ text: ["again"] });
    const done = asks("say it", { id: "b", role: "assistant", content: "before", metadata: { finishReason: "stop" } });
    const { end, messages } = await runOf({ model: it.model }, inputOf(done), { hosted: again });
    expect(end.type).toBe(EventType.RUN_FINISHED);
    expect(contentsOf(messages, "assistant")).toEqual(["before", "again"]);
    expect(it.server.requests[0]?.body["messages"]).toHaveLength(2);
  });

  test("reasoning that was cut off is not given back to the model, which has not signed it", async () => {
    it.server.script({ text: ["ok"] });
    const cut = asks("think", { id: "r", role: "reasoning", content: "Half a thou" });
    await runOf({ model: it.model }, inputOf(cut), { hosted: again });
    expect(it.server.requests[0]?.body["messages"]).toEqual([{ role: "user", content: "think" }]);
  });

  test("calls without a result are executed first, under their ids; results that are there are kept", async () => {
    it.server.script({ text: ["thanks"] });
    const { executed, tools } = counting();
    const broken = asks(
      "pay twice",
      callOf("c1", "pay"),
      { id: "r1", role: "tool", toolCallId: "c1", content: "paid before" },
      callOf("c2", "pay"),
    );
    const { messages } = await runOf({ model: it.model, tools }, inputOf(broken), { hosted: again });
    expect(executed).toEqual(["c2"]);
    expect(contentsOf(messages, "tool")).toEqual(["paid before", "paid"]);
    expect(it.server.requests).toHaveLength(1);
  });

  test("a call whose arguments were cut off is answered with an error, and the model writes it anew", async () => {
    it.server.script({ text: ["again"] });
    const { executed, tools } = counting();
    const { messages } = await runOf({ model: it.model, tools }, inputOf(asks("pay", callOf("c1", "pay", '{"a":'))), {
      hosted: again,
    });
    expect(executed).toEqual([]);
    expect(String(contentsOf(messages, "tool")[0])).toContain("not complete");
  });

  test("a call that waits for an approval still waits for it", async () => {
    const { executed, tools } = counting({ needsApproval: true });
    const { end } = await runOf({ model: it.model, tools }, inputOf(asks("pay", callOf("c1", "pay"))), {
      hosted: again,
    });
    expect(end).toMatchObject({ outcome: { type: "interrupt", interrupts: [{ toolCallId: "c1" }] } });
    expect(executed).toEqual([]);
  });

  test("without an attempt a call that may have run is not run again, unless it is repeatable", async () => {
    it.server.script({ text: ["ok"] });
    for (const repeatable of [false, true]) {
      const { executed, tools } = counting({ repeatable });
      const { messages } = await runOf({ model: it.model, tools }, inputOf(asks("pay", callOf("c1", "pay"))));
      expect(executed).toEqual(repeatable ? ["c1"] : []);
      expect(String(contentsOf(messages, "tool")[0])).toContain(repeatable ? "paid" : "not known");
    }
  });

  test("issue 16.6: a tool starts once its call is in the log, and not where it cannot be written", async () => {
    it.server.script({ calls: [{ name: "pay", args: {} }] }, { text: ["done"] });
    const { executed, tools } = counting();
    const order: string[] = [];
    const hosted: HostedRun = {
      committed: async () => {
        await new Promise((resolve) => setImmediate(resolve));
        order.push(`committed, ${executed.length} executed`);
      },
    };
    await runOf({ model: it.model, tools }, inputOf(asks("pay")), { hosted });
    expect(order).toEqual(["committed, 0 executed"]);
    expect(executed).toHaveLength(1);
    it.server.reset();
    it.server.script({ calls: [{ name: "pay", args: {} }] });
    const lost: HostedRun = { committed: () => Promise.reject(new Error("fenced")) };
    const { end } = await runOf({ model: it.model, tools }, inputOf(asks("pay")), { hosted: lost });
    expect(end.type).toBe(EventType.RUN_ERROR);
    expect(executed).toHaveLength(1);
  });

  test("an attempt in a host asks the model where its run said nothing, and goes on with what it said (L18)", async () => {
    const cut = { text: ["Half of"], finish: null };
    it.server.script({ text: ["before"] }, { status: 503, body: "{}" }, cut, { text: [" it"] });
    const assistant = aiAgent({ model: it.model, settings: { maxRetries: 0 } });
    const options = { agents: { assistant }, agentPolicies: { assistant: { recovery: "auto" } } } as const;
    const runtime = hostOf(options).connect();
    const agent = runtime.agent("assistant", { threadId: "t" });
    agent.follow();
    agent.addMessage({ id: "u", role: "user", content: "hi" });
    await agent.runAgent();
    await agent.runAgent({ runId: "r" });
    for (const attempt of ["r~2", "r~3"]) {
      await until(async () => expect(await runtime.waiting.list("t")).toMatchObject([{ runId: attempt }]));
      await runtime.waiting.retry("t", attempt);
    }
    await until(() => expect(contentsOf(agent.messages, "assistant")).toEqual(["before", "Half of it"]));
    expect(it.server.requests).toHaveLength(4);
  });
});
