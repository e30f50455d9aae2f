import { EventType, type AbstractAgent, type BaseEvent } from "@ag-ui/client";
import { defer, throwError } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { FrontendTools } from "../../../src/client/tools/frontend-tools.js";
import { ThreadStore } from "../../../src/client/store/thread-store.js";
import { RunnerError } from "../../../src/run/errors.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, freshDb, gated } from "../runner/kit.js";
import { network } from "../waiting/kit.js";
import { caller, callsAre, host, hostOf, runsOf, shows, tool } from "./frontend-tools-kit.js";

/*
 * Calls of front-end tools beside runs that the host refuses, or lets wait; and whom the thread belongs to behind them.
 */

/** A host whose agents, or those that are named, need the network. */
function online(agents: Readonly<Record<string, AbstractAgent>>, needy = Object.keys(agents)) {
  const net = network();
  const agentPolicies = Object.fromEntries(needy.map((agentId) => [agentId, { needsNetwork: true }]));
  return { net, ...hostOf(serveRuntime({ dbName: freshDb(), stopGraceMs: 50, agents, network: net, agentPolicies })) };
}

/** A tool that gives "kept" once it is let on. */
function slowTool() {
  const { gate, letOn } = gated();
  const aborted = vi.fn();
  const slow = tool("a", async (_args, { signal }) => {
    signal.addEventListener("abort", aborted);
    await gate;
    return "kept";
  });
  return { slow, aborted, letOn };
}

const messageId = (store: ThreadStore, role: string): string =>
  store.getSnapshot().messages.find((message) => message.role === role)!.id;

test.each<[string, (store: ThreadStore) => Promise<unknown>]>([
  ["a message", (store) => store.send("never")],
  ["an edit", (store) => store.edit(messageId(store, "user"), "never")],
  ["a regeneration", (store) => store.regenerate(messageId(store, "assistant"))],
  ["a retry", (store) => store.retry()],
])("%s that is refused leaves calls as they are: handlers run on, and the agent goes on", async (_name, call) => {
  const { net, tab } = online({ caller: caller() });
  const { slow, aborted, letOn } = slowTool();
  const one = tab(slow);
  await one.store.send("a");
  await callsAre(one, "running here");
  net.set(false);
  // Whoever tells of messages meanwhile has them looked at as they are then.
  const hooks = one.store.agent.subscribe({ onRunInitialized: () => one.store.agent.show(one.store.agent.messages) });
  await expect(call(one.store)).rejects.toMatchObject({ code: "offline" });
  hooks.unsubscribe();
  net.set(true);
  await callsAre(one, "running here");
  letOn();
  await shows(one, "a: kept");
  expect(aborted).not.toHaveBeenCalled();
});

test("a run that goes on with results is given what the run was given that has called, not what waits or was refused", async () => {
  const given: unknown[] = [];
  const net = network();
  const asking = agentOf(async function* (input): AsyncGenerator<BaseEvent> {
    given.push(input.forwardedProps);
    if (input.messages.at(-1)!.role !== "user") return;
    yield { type: EventType.TOOL_CALL_START, toolCallId: input.runId, toolCallName: "a" } as BaseEvent;
    yield { type: EventType.TOOL_CALL_END, toolCallId: input.runId } as BaseEvent;
  });
  const agentPolicies = { caller: { needsNetwork: true } };
  const { tab } = hostOf(
    serveRuntime({ dbName: freshDb(), stopGraceMs: 50, agents: { caller: asking }, network: net, agentPolicies }),
  );
  const { slow, letOn } = slowTool();
  const one = tab(slow);
  await one.store.send("first", { forwardedProps: { of: 1 } });
  await callsAre(one, "running here");
  net.set(false);
  await expect(one.store.send("refused", { forwardedProps: { of: 0 } })).rejects.toMatchObject({ code: "offline" });
  net.set(true);
  await one.store.send("second", { onBusy: "queue", forwardedProps: { of: 2 } });
  letOn();
  await vi.waitFor(() => expect(given).toEqual([{ of: 1 }, { of: 1 }, { of: 2 }, { of: 2 }]), 10_000);
  await vi.waitFor(async () => expect(await runsOf(one)).toHaveLength(4));
});

/** Calls a tool where somebody asks; notes who ran. */
const named = (ran: string[], name: string): AbstractAgent =>
  agentOf(async function* (input): AsyncGenerator<BaseEvent> {
    ran.push(name);
    if (input.messages.at(-1)!.content !== "go") return;
    yield { type: EventType.TOOL_CALL_START, toolCallId: input.runId, toolCallName: "a" } as BaseEvent;
    yield { type: EventType.TOOL_CALL_END, toolCallId: input.runId } as BaseEvent;
  });

test("a tab that goes on for another agent sends its next message to its own", async () => {
  const ran: string[] = [];
  const { tab } = host({ caller: named(ran, "caller"), critic: named(ran, "critic") });
  const [a, b] = [tab(tool("a")), tab(tool("a"))];
  await a.store.send("go", { agentId: "critic" });
  await callsAre(b, "open");
  await b.store.answerToolCall(b.store.getSnapshot().toolCalls[0]!.toolCallId, "x");
  await vi.waitFor(async () => expect((await runsOf(a)).map(({ status }) => status)).toEqual(["finished", "finished"]));
  await vi.waitFor(() => expect(b.store.getSnapshot().run.is).toBe("idle"));
  await b.store.send("next");
  await vi.waitFor(() => expect(ran).toEqual(["critic", "critic", "caller"]));
});

test("an agent that was named for a message that is refused is not that of the next one", async () => {
  const ran: string[] = [];
  const { net, tab } = online({ caller: named(ran, "caller"), critic: named(ran, "critic") }, ["critic"]);
  const one = tab();
  net.set(false);
  await expect(one.store.send("refused", { agentId: "critic" })).rejects.toMatchObject({ code: "offline" });
  await one.store.send("next");
  await vi.waitFor(() => expect(ran).toEqual(["caller"]));
});

test("a list of calls that could not be read at first is told as an error until it has been read", async () => {
  const runtime = host().connect();
  const { toolCalls } = runtime;
  const watch = toolCalls.watch.bind(toolCalls);
  let failures = 0;
  vi.spyOn(toolCalls, "watch").mockImplementation((threadId) =>
    defer(() => (++failures === 1 ? throwError(() => new RunnerError("storage-lost")) : watch(threadId))),
  );
  const tools = new FrontendTools();
  tools.add(tool("a"));
  const store = new ThreadStore(runtime, { agentId: "caller", threadId: "t", tools });
  const errors: unknown[] = [];
  onTestFinished(store.subscribe(() => void errors.push(store.getSnapshot().error)));
  await store.send("a");
  await vi.waitFor(() => expect(store.getSnapshot().toolCalls).toMatchObject([{ status: "open" }]), 10_000);
  await vi.waitFor(() => expect(store.getSnapshot().failure).toBeUndefined());
  expect(errors).toContainEqual(expect.objectContaining({ code: "storage-lost" }));
});

test("results that the agent could not go on with are told as an error until it goes on", async () => {
  const { net, tab } = online({ caller: caller() });
  const { slow, letOn } = slowTool();
  const one = tab(slow);
  await one.store.send("a");
  await callsAre(one, "running here");
  net.set(false);
  letOn();
  await vi.waitFor(() => expect(one.store.getSnapshot().failure).toMatchObject({ code: "offline" }), 10_000);
  net.set(true);
  await shows(one, "a: kept");
  await vi.waitFor(() => expect(one.store.getSnapshot().failure).toBeUndefined());
});
