import { EventType, type Message, type RunAgentInput } from "@ag-ui/client";
import { describe, expect, onTestFinished, test } from "vitest";
import { inputOf } from "../../../../test/unit/ai/kit.js";
import { opened } from "../../../../test/unit/langgraph/kit.js";
import { collect } from "../../../../test/unit/runner/kit.js";
import { hostOf } from "../../../../test/unit/waiting/kit.js";
import { ShopModel, shopGraph, type ShopParts } from "../../../../test/tabs/pages/recipe-graph.js";
import { graphAgent } from "../../../recipes/langgraph.js";

/** A tab on the shop's graph. */
function shop(parts: Partial<ShopParts> = {}) {
  const model = new ShopModel({});
  const agent = graphAgent(shopGraph({ checkpointer: opened(), model, ...parts }));
  const runtime = hostOf({ agents: { shop: agent } }).connect();
  const tab = runtime.agent("shop", { threadId: "t" });
  const other = runtime.agent("shop", { threadId: "t" });
  onTestFinished(other.follow());
  let asked = 0;
  const say = async (content: string): Promise<void> => {
    tab.addMessage({ id: `u${asked++}`, role: "user", content });
    await tab.runAgent();
  };
  return { model, tab, other, say, runtime };
}

const textsOf = (messages: readonly Message[]): string[] =>
  messages.map(({ role, content }) => `${role}: ${String(content ?? "")}`);

describe("a graph of LangGraph.js as an agent", () => {
  test("what its model says streams, and its memory is the thread", async () => {
    const { model, tab, say, runtime } = shop();
    await say("hello");
    await say("again");
    const told = ["user: hello", "assistant: You said: hello", "user: again", "assistant: You said: again"];
    expect(textsOf(tab.messages)).toEqual(told);
    expect(model.asked.at(-1)).toEqual(["hello", "You said: hello", "again"]);
    const [run] = await runtime.runner().listRuns("t");
    const events = (await runtime.runner().getRunEvents(run!.runId)).map(({ event }) => event);
    const deltas = events.flatMap((event) => (event.type === EventType.TEXT_MESSAGE_CONTENT ? [event["delta"]] : []));
    expect(deltas).toEqual(["You ", "said: ", "again"]);
  });

  test("asks a person by an interrupt, and goes on with the answer", async () => {
    const { tab, say } = shop();
    const seen: unknown[] = [];
    tab.subscribe({ onCustomEvent: ({ event }) => void seen.push(event.value) });
    await say("order lamp");
    expect(tab.pendingInterrupts).toMatchObject([{ reason: "input_required", message: "Order a lamp?" }]);
    expect(tab.messages.at(-1)).toMatchObject({
      content: "I order.",
      toolCalls: [{ id: "call-lamp", function: { name: "order", arguments: '{"article":"lamp"}' } }],
    });
    const interruptId = tab.pendingInterrupts[0]!.id;
    await tab.runAgent({ resume: [{ interruptId, status: "resolved", payload: { approved: true } }] });
    expect(textsOf(tab.messages)).toEqual([
      "user: order lamp",
      "assistant: I order.",
      "tool: ordered lamp",
      "assistant: Done: ordered lamp",
    ]);
    expect(tab.pendingInterrupts).toEqual([]);
    // The node begins anew with the answer.
    expect(seen).toEqual(["lamp", "lamp"]);
  });

  test("two calls of a step ask one after the other; a refusal is told as none", async () => {
    const { tab, say } = shop();
    await say("order lamp rope");
    for (const [n, message] of ["Order a lamp?", "Order a rope?"].entries()) {
      expect(tab.pendingInterrupts).toMatchObject([{ message }]);
      const interruptId = tab.pendingInterrupts[0]!.id;
      const answer =
        n === 0 ? { status: "resolved" as const, payload: { approved: true } } : { status: "cancelled" as const };
      await tab.runAgent({ resume: [{ interruptId, ...answer }] });
    }
    expect(textsOf(tab.messages).slice(2)).toEqual(["tool: ordered lamp", "tool: no rope", "assistant: Done: no rope"]);
  });

  test.each(["u1", "edited"])("an edit in a page is one in the graph: the question is %s", async (id) => {
    const { model, tab, other, say } = shop();
    await say("hello");
    await say("again");
    tab.setMessages([...tab.messages.slice(0, 2), { id, role: "user", content: "anew" }]);
    await tab.runAgent();
    expect(model.asked.at(-1)).toEqual(["hello", "You said: hello", "anew"]);
    expect(textsOf(tab.messages).slice(2)).toEqual(["user: anew", "assistant: You said: anew"]);
    await expect.poll(() => other.messages).toEqual(tab.messages);
  });

  describe("goes on after its host died", () => {
    const question: Message = { id: "u", role: "user", content: "order lamp" };
    const cutOff = (content: string): Message => ({ id: "cut", role: "assistant", content });

    /** The shop, whose tool fails once; and what an attempt makes of what is in the log. */
    function broken() {
      const model = new ShopModel({});
      let dies = true;
      const before = async (): Promise<void> => {
        if (!dies) return;
        dies = false;
        throw new Error("killed");
      };
      const agent = graphAgent(shopGraph({ checkpointer: opened(), model, before }));
      const run = async (messages: Message[], more: object = {}, input: Partial<RunAgentInput> = {}) => {
        const copy = Object.assign(agent.clone(), more);
        copy.threadId = "t";
        copy.setMessages(messages);
        await copy.runAgent(input);
        return copy;
      };
      const attempt = { hosted: { attempt: { of: "r", number: 2 }, committed: async () => undefined } };
      /** Without AG-UI's client, which prints how a run failed. */
      const dying = (messages: Message[]) => collect(agent.clone().run(inputOf(messages)));
      return { model, run, dying, again: (messages: Message[], input = {}) => run(messages, attempt, input) };
    }

    test("at the node that was under way: what it had said is replaced, what others had said is kept", async () => {
      const { model, run, dying, again } = broken();
      await expect(dying([question])).rejects.toThrow("killed");
      const copy = await again([question, cutOff("I or")]);
      expect(model.asked).toHaveLength(1);
      expect(textsOf(copy.messages)).toEqual(["user: order lamp", "assistant: I order."]);
      expect(copy.pendingInterrupts).toMatchObject([{ message: "Order a lamp?" }]);
      const interruptId = copy.pendingInterrupts[0]!.id;
      const resume = [{ interruptId, status: "resolved" as const, payload: { approved: true } }];
      const done = await run(copy.messages, {}, { resume });
      expect(done.messages.at(-1)).toMatchObject({ content: "Done: ordered lamp" });
      // The end of the run that was answered is not in the log: nobody is asked twice.
      const shown = await again([...copy.messages, cutOff("Do")], { resume });
      expect(textsOf(shown.messages)).toEqual(textsOf(done.messages));
      expect(model.asked).toHaveLength(2);
    });

    test("at its beginning, where the graph knows nothing of the question", async () => {
      const { model, again } = broken();
      const copy = await again([{ id: "u", role: "user", content: "hello" }]);
      expect(textsOf(copy.messages)).toEqual(["user: hello", "assistant: You said: hello"]);
      expect(model.asked).toHaveLength(1);
    });
  });
});
