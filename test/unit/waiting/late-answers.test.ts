import "fake-indexeddb/auto";
import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { expect, test } from "vitest";
import { agentOf } from "../runner/kit.js";
import { hostOf, network, shown, until } from "./kit.js";

/*
 * An answer that waits, while somebody else answers what it answers: only the first one counts. What waits for it stays
 * behind it.
 */

/** Two agents on one thread, one of which needs the network; the thread has a question by now. */
async function asked() {
  const executed: string[] = [];
  const agent = agentOf(async function* ({ threadId, runId, resume = [] }) {
    executed.push(runId);
    if (runId !== "r1" || resume.length > 0) return;
    const interrupts = [{ id: "i1", reason: "confirm" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
  });
  const online = network(true);
  const agentPolicies = { remote: { needsNetwork: true } };
  const { connect } = hostOf({ agents: { remote: agent, local: agent }, agentPolicies, network: online });
  const runtime = connect();
  await runtime.agent("remote", { threadId: "t" }).runAgent({ runId: "r1" });
  online.set(false);
  const resume = [{ interruptId: "i1", status: "resolved" as const, payload: "yes" }];
  /** @param said with the answer */
  const answer = async (agentId: string, runId: string, said?: string) => {
    const its = runtime.agent(agentId, { threadId: "t" });
    await its.connectAgent();
    if (said !== undefined) its.addMessage({ id: `${runId}-u`, role: "user", content: said });
    return its.runAgent({ runId, resume, whenOffline: "wait" });
  };
  const list = async (): Promise<string[]> => shown(await runtime.waiting.list("t"));
  return { runtime, executed, online, answer, list };
}

test("it is dropped, its caller is rejected, and what waits behind it goes on", async () => {
  const { runtime, executed, online, answer, list } = await asked();
  const late = answer("remote", "late");
  const refused = expect(late).rejects.toMatchObject({ code: "cancelled" });
  await until(async () => expect(await list()).toEqual(["late offline"]));
  await answer("local", "first");
  const behind = runtime.agent("remote", { threadId: "t" });
  const next = behind.runAgent({ runId: "next", whenOffline: "wait" });
  await until(async () => expect(await list()).toEqual(["late offline", "next behind"]));
  online.set(true);
  await refused;
  await next;
  expect(executed).toEqual(["r1", "first", "next"]);
  expect(await list()).toEqual([]);
});

test("with a message of somebody it fails, and waits until somebody decides", async () => {
  const { runtime, online, answer, list } = await asked();
  const late = answer("remote", "late", "and be quick");
  late.catch(() => undefined);
  await until(async () => expect(await list()).toEqual(["late offline"]));
  await answer("local", "first");
  online.set(true);
  await until(async () => expect(await list()).toEqual(["late failed"]));
  const [{ reason, messages }] = (await runtime.waiting.list("t")) as [
    Awaited<ReturnType<typeof runtime.waiting.list>>[0],
  ];
  expect(reason).toMatchObject({ error: { code: "interrupts-open" } });
  expect(messages).toMatchObject([{ content: "and be quick" }]);
});

test("under the id of the run that asked, it needs the network and waits for it as under its own (L8)", async () => {
  const { runtime, executed, online, answer, list } = await asked();
  const failing = runtime.agent("remote", { threadId: "t" });
  const resume = [{ interruptId: "i1", status: "resolved" as const, payload: "no" }];
  await expect(failing.runAgent({ runId: "r1", resume })).rejects.toMatchObject({ code: "offline" });
  const waiting = answer("remote", "r1");
  await until(async () => expect(await list()).toEqual(["r1 offline"]));
  online.set(true);
  await waiting;
  expect(executed).toEqual(["r1", "r1"]);
  expect(await list()).toEqual([]);
});

test("it goes ahead of a message that waits for it (L13)", async () => {
  const { runtime, executed, online, answer, list } = await asked();
  const next = runtime.agent("local", { threadId: "t" });
  next.addMessage({ id: "next-u", role: "user", content: "and then?" });
  const message = next.runAgent({ runId: "next", onBusy: "queue" });
  await until(async () => expect(await list()).toEqual(["next interrupts"]));
  const first = answer("remote", "first");
  await until(async () => expect(await list()).toEqual(["first offline", "next behind"]));
  online.set(true);
  await Promise.all([first, message]);
  expect(executed).toEqual(["r1", "first", "next"]);
});

test("a run that brings the result of a tool goes ahead of a message that waits for that (L13)", async () => {
  const executed: string[] = [];
  const agent = agentOf(async function* ({ runId }) {
    executed.push(runId);
    if (runId !== "r1") return;
    yield { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "pay" } as BaseEvent;
    yield { type: EventType.TOOL_CALL_END, toolCallId: "c" } as BaseEvent;
  });
  const { connect } = hostOf({ agents: { test: agent } });
  const runtime = connect();
  const tools = [{ name: "pay", description: "", parameters: {} }];
  await runtime.agent("test", { threadId: "t" }).runAgent({ runId: "r1", tools });
  const list = async (): Promise<string[]> => shown(await runtime.waiting.list("t"));
  const runIn = async (runId: string, said: Message) => {
    const its = runtime.agent("test", { threadId: "t" });
    await its.connectAgent();
    its.addMessage(said);
    return its.runAgent({ runId, onBusy: "queue" });
  };
  const next = runIn("next", { id: "next-u", role: "user", content: "and then?" });
  await until(async () => expect(await list()).toEqual(["next tool-calls"]));
  await Promise.all([runIn("paid", { id: "c-r", role: "tool", toolCallId: "c", content: "yes" }), next]);
  expect(executed).toEqual(["r1", "paid", "next"]);
});
