import { EventType } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { editMessage, regenerate } from "../../../src/copilotkit/branches.js";
import { liveAgent, refusalOf } from "../../../src/copilotkit/live-agent.js";
import { agentOf, user } from "../runner/kit.js";
import { hostOf, network, until } from "../waiting/kit.js";

/** As CopilotKit's core, which reports what fails and resolves. */
const core = { runAgent: ({ agent }: { readonly agent: LocalAgent }) => agent.runAgent().catch(() => undefined) };

/** An agent that asks whether it may go on, on a host whose network can be cut. */
async function asked() {
  const net = network();
  const asker = agentOf(async function* ({ threadId, runId }) {
    yield { type: EventType.TEXT_MESSAGE_CHUNK, messageId: `${runId}-a`, role: "assistant", delta: "may I?" };
    const interrupts = [{ id: "ask", reason: "confirm" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
  });
  const { connect } = hostOf({ agents: { asker }, network: net, agentPolicies: { asker: { needsNetwork: true } } });
  const runtime = connect();
  const agent = liveAgent(runtime.agent("asker", { threadId: "t" }));
  onTestFinished(() => void agent.detachActiveRun());
  await agent.connectAgent();
  agent.addMessage(user("u"));
  await core.runAgent({ agent });
  let refusal: Error | undefined;
  onTestFinished(() => refusals.unsubscribe());
  const refusals = refusalOf(agent).subscribe((error) => (refusal = error));
  return { net, runtime, agent, refusal: () => refusal };
}

describe("on a CopilotKit page", () => {
  test("a branch that is refused leaves the messages and the question as they were", async () => {
    const { net, runtime, agent, refusal } = await asked();
    const { messages, pendingInterrupts } = agent;
    expect([messages.length, pendingInterrupts.length]).toEqual([2, 1]);
    net.set(false);
    for (const branch of [() => regenerate(core, agent), () => editMessage(core, agent, "u", "another one")]) {
      await branch();
      expect(refusal()).toMatchObject({ code: "offline" });
      expect(agent.messages).toEqual(messages);
      expect(agent.pendingInterrupts).toEqual(pendingInterrupts);
    }
    expect(await runtime.threads.messages("t")).toMatchObject({ messages });
  });

  test("a message may be edited while its answer asks something", async () => {
    const { agent } = await asked();
    await editMessage(core, agent, "u", "another one");
    await vi.waitFor(() => expect(agent.messages.map(({ content }) => content)).toEqual(["another one", "may I?"]));
    await until(() => expect(agent.pendingInterrupts).toHaveLength(1));
  });

  test("another thread does not show why a run of this one was refused", async () => {
    const { net, agent, refusal } = await asked();
    net.set(false);
    await regenerate(core, agent);
    expect(refusal()).toMatchObject({ code: "offline" });
    await agent.detachActiveRun();
    await agent.connectAgent();
    expect(refusal()).toMatchObject({ code: "offline" });
    agent.threadId = "other";
    await agent.detachActiveRun();
    await agent.connectAgent();
    expect(refusal()).toBeUndefined();
  });
});
