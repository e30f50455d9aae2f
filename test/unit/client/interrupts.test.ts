import { EventType, type RunAgentInput } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, collect, freshDb, inputOf, user } from "../runner/kit.js";

/** Asks, unless it is answered; then it says by whom. */
const asker = (seen: RunAgentInput[]) =>
  agentOf(async function* (input) {
    const { threadId, runId, resume } = input;
    seen.push({ ...input });
    if (resume === undefined) {
      const interrupts = [{ id: "ask", reason: "confirm" }];
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
      return;
    }
    const messageId = `${runId}-${seen.length}`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: JSON.stringify(resume) };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
  });

function tabs() {
  const seen: RunAgentInput[] = [];
  const host = serveRuntime({ dbName: freshDb(), stopGraceMs: 50, agents: { asker: asker(seen) } });
  onTestFinished(() => host.close());
  const connect = () => {
    const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  return { seen, connect, agent: () => connect().agent("asker", { threadId: "t" }) };
}

const resume = [{ interruptId: "ask", status: "resolved" as const }];
const refusal = { code: "interrupts-open", details: { interruptIds: ["ask"], missing: ["ask"] } };

test("a tab that knows nothing of the open interrupt is refused, by LocalAgent and by RemoteRunner", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  const { agent, connect, seen } = tabs();
  const first = agent();
  await first.runAgent({ runId: "r1" });
  const unattached = agent();
  unattached.addMessage(user("u"));
  await expect(unattached.runAgent({ runId: "r2" })).rejects.toMatchObject(refusal);
  const remote = connect()
    .runner()
    .run({ threadId: "t", agent: { agentId: "asker" }, input: inputOf("t", "r3") });
  await expect(collect(remote)).rejects.toMatchObject(refusal);
  expect(seen).toHaveLength(1);
  await unattached.runAgent({ runId: "r4", resume });
  expect(seen.at(-1)?.messages.map(({ id }) => id)).toEqual(["u"]);
});

test("an answer under the id of the run that asked comes to each tab once, to those that follow too (L2)", async () => {
  const { agent, connect } = tabs();
  const one = agent();
  const other = agent();
  onTestFinished(one.follow());
  onTestFinished(other.follow());
  one.addMessage(user("u"));
  for (const more of [{}, { resume }]) await one.runAgent({ runId: "r", ...more });
  // Asked again and again, so that the follower has frames of several runs of one id to pass over.
  for (const more of [{}, { resume }]) await one.runAgent({ runId: "r2", ...more });
  const texts = (messages: typeof one.messages): readonly unknown[] => messages.map(({ content }) => content);
  const answer = JSON.stringify(resume);
  await vi.waitFor(() => expect(texts(other.messages)).toEqual(["from u", answer, answer]));
  await one.connectAgent();
  expect(texts(one.messages)).toEqual(["from u", answer, answer]);
  await vi.waitFor(() => expect([one.pendingInterrupts, other.pendingInterrupts]).toEqual([[], []]));

  const runner = connect().runner();
  const events = await collect(runner.run({ threadId: "t", agent: { agentId: "asker" }, input: inputOf("t", "q") }));
  const again = runner.run({ threadId: "t", agent: { agentId: "asker" }, input: { ...inputOf("t", "q"), resume } });
  expect(events.at(-1)).toMatchObject({ runId: "q", outcome: { type: "interrupt" } });
  expect((await collect(again)).at(-1)).toMatchObject({ runId: "q", type: EventType.RUN_FINISHED });
  // Who comes late to the first is handed the first.
  const late = runner.run({ threadId: "t", agent: { agentId: "asker" }, input: inputOf("t", "q") });
  expect(await collect(late)).toEqual(events);
  expect(await collect(late)).toEqual(events);
});

test("after an open interrupt, another thread of the same agent takes a message", async () => {
  const one = tabs().agent();
  await one.runAgent({ runId: "r1" });
  expect(one.pendingInterrupts).toHaveLength(1);
  one.threadId = "other";
  one.setMessages([]);
  await one.connectAgent();
  expect(one.pendingInterrupts).toEqual([]);
  one.addMessage(user("u"));
  await one.runAgent({ runId: "r2" });
});

test("a thread whose newest run failed, on a branch that leaves the question, has no open interrupt in any tab", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  let fails = false;
  const agents = {
    asker: agentOf(async function* ({ threadId, runId }) {
      if (fails) throw new Error("no");
      const interrupts = [{ id: "ask", reason: "confirm" }];
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
    }),
  };
  const host = serveRuntime({ dbName: freshDb(), agents });
  onTestFinished(() => host.close());
  const agent = () => {
    const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
    onTestFinished(() => runtime.close());
    return runtime.agent("asker", { threadId: "t" });
  };
  const [one, other] = [agent(), agent()];
  one.addMessage(user("u"));
  await one.runAgent({ runId: "r1" });
  await other.connectAgent();
  expect(other.pendingInterrupts).toHaveLength(1);
  fails = true;
  one.setMessages([{ id: "u", role: "user", content: "another question" }]);
  one.pendingInterrupts = [];
  await one.runAgent({ runId: "r2" }).catch(() => undefined);
  await other.connectAgent().catch(() => undefined);
  expect(other.messages).toEqual(one.messages);
  expect(other.pendingInterrupts).toEqual([]);
});
