import "fake-indexeddb/auto";
import type { Message } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { LocalRunParameters } from "../../../src/client/local-agent.js";
import { nextTask } from "../../../src/platform/clock.js";
import { freshDb, user } from "../runner/kit.js";
import { gatedAgent, hostOf, network, shown, until } from "./kit.js";

const said = (messages: readonly Message[]): string[] =>
  messages.map(({ role, content }) => `${role}: ${String(content)}`);

/** Asks an agent of its own in thread `t`; the run's id is the question. */
function ask(runtime: RuntimeConnection, runId: string, more: LocalRunParameters = {}, agentId = "gated") {
  const agent = runtime.agent(agentId, { threadId: "t" });
  agent.addMessage({ id: `${runId}-u`, role: "user", content: runId });
  const running = agent.runAgent({ runId, ...more });
  running.catch(() => undefined);
  return { agent, running };
}

const queue: LocalRunParameters = { onBusy: "queue" };
const list = async (runtime: RuntimeConnection): Promise<string[]> => shown(await runtime.waiting.list("t"));
const waitFor = (runtime: RuntimeConnection, expected: readonly string[]): Promise<void> =>
  until(async () => expect(await list(runtime)).toEqual(expected));

describe("a run that waits for its turn (L5, L8)", () => {
  test("waits while another is live, in order, is shown in other tabs, and runs by itself", async () => {
    const { agent, executed, letOn, open } = gatedAgent();
    const { connect } = hostOf({ agents: { gated: agent } });
    const [one, other] = [connect(), connect()];
    const live = ask(one, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    const first = ask(one, "r1", queue);
    await waitFor(other, ["r1 busy"]);
    const second = ask(other, "r2", queue);
    await waitFor(one, ["r1 busy", "r2 behind"]);
    const [{ messages, agentId }] = (await one.waiting.list("t")) as [Awaited<ReturnType<typeof one.waiting.list>>[0]];
    expect([agentId, said(messages)]).toEqual(["gated", ["user: r1"]]);
    expect(said(first.agent.messages)).toEqual([]);
    letOn("r0");
    await live.running;
    await waitFor(one, ["r2 busy"]);
    open();
    const { newMessages } = await first.running;
    expect(said(newMessages)).toEqual(["assistant: r1"]);
    await second.running;
    expect(executed).toEqual(["r0", "r1", "r2"]);
    expect(said((await one.threads.messages("t")).messages)).toEqual(
      ["r0", "r1", "r2"].flatMap((id) => [`user: ${id}`, `assistant: ${id}`]),
    );
    expect(await list(one)).toEqual([]);
  });

  test("starts at once where nothing keeps it, and is refused as ever without the option", async () => {
    const { agent, executed, open } = gatedAgent();
    const { connect } = hostOf({ agents: { gated: agent } });
    const runtime = connect();
    ask(runtime, "r0", queue);
    await until(() => expect(executed).toEqual(["r0"]));
    expect(await list(runtime)).toEqual([]);
    await expect(ask(runtime, "r1").running).rejects.toMatchObject({ code: "thread-busy" });
    await expect(ask(runtime, "r2", { whenOffline: "wait" }).running).rejects.toMatchObject({ code: "thread-busy" });
    expect(await list(runtime)).toEqual([]);
    open();
  });

  test("is over, with its messages, also where its tab ends its following in the middle of it (L13)", async () => {
    const { agent, executed, letOn } = gatedAgent();
    const { connect } = hostOf({ agents: { gated: agent } });
    const runtime = connect();
    const live = ask(runtime, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    const queued = runtime.agent("gated", { threadId: "t" });
    const end = queued.follow();
    queued.addMessage({ id: "r1-u", role: "user", content: "r1" });
    const running = queued.runAgent({ runId: "r1", ...queue });
    await waitFor(runtime, ["r1 busy"]);
    letOn("r0");
    await live.running;
    await until(() => expect(said(queued.messages)).toContain("assistant: "));
    end();
    letOn("r1");
    expect(said((await running).newMessages)).toEqual(["assistant: r1"]);
    expect(said(queued.messages).slice(-2)).toEqual(["user: r1", "assistant: r1"]);
  });

  test("begins also where its tab is closed in the same turn of the event loop (L11)", async () => {
    const { agent, executed, open } = gatedAgent();
    const { connect } = hostOf({ agents: { gated: agent } });
    const [one, other] = [connect(), connect()];
    await other.threads.list();
    await one.threads.list();
    open();
    ask(one, "r0", queue);
    // As a page that unloads: what it has asked until now is on its way, and nothing more comes.
    await new Promise((resolve) => setTimeout(resolve));
    await one.close();
    await until(() => expect(executed).toEqual(["r0"]));
    await until(async () =>
      expect(said((await other.threads.messages("t")).messages)).toEqual(["user: r0", "assistant: r0"]),
    );
  });

  test("is moved, cancelled and stopped by its id; a cancelled run rejects, and its message is nowhere", async () => {
    const { agent, executed, open } = gatedAgent();
    const { connect } = hostOf({ agents: { gated: agent } });
    const runtime = connect();
    ask(runtime, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    const runs = [];
    for (const id of ["r1", "r2", "r3", "r4"]) {
      runs.push(ask(runtime, id, queue));
      await until(async () => expect((await list(runtime)).at(-1)).toMatch(id));
    }
    expect(await runtime.waiting.move("t", "r3", "r1")).toBe(true);
    expect(await runtime.waiting.cancel("t", "r2")).toBe(true);
    expect(await runtime.waiting.cancel("t", "r2")).toBe(false);
    expect(await runtime.runner().stop({ threadId: "t", runId: "r4" })).toBe(true);
    await expect(runs[1]!.running).rejects.toMatchObject({ code: "cancelled" });
    await expect(runs[3]!.running).rejects.toMatchObject({ code: "cancelled" });
    expect(await list(runtime)).toEqual(["r3 busy", "r1 behind"]);
    open();
    await Promise.all([runs[0]!.running, runs[2]!.running]);
    expect(executed).toEqual(["r0", "r3", "r1"]);
  });

  test("an agent that follows shows it with its answer, and resolves as for a run of its own", async () => {
    const { agent, executed, letOn } = gatedAgent();
    const { connect } = hostOf({ agents: { gated: agent } });
    const runtime = connect();
    const local = runtime.agent("gated", { threadId: "t" });
    const unfollow = local.follow();
    ask(connect(), "r0");
    await until(() => expect(said(local.messages)).toEqual(["user: r0", "assistant: "]));
    local.addMessage({ id: "r1-u", role: "user", content: "r1" });
    const told: string[] = [];
    const running = local.runAgent(
      { runId: "r1", onBusy: "queue" },
      { onTextMessageEndEvent: ({ textMessageBuffer }) => void told.push(textMessageBuffer) },
    );
    await waitFor(runtime, ["r1 busy"]);
    expect(said(local.messages)).toEqual(["user: r0", "assistant: "]);
    letOn("r0");
    await until(() => expect(executed).toEqual(["r0", "r1"]));
    letOn("r1");
    expect(said((await running).newMessages)).toEqual(["assistant: r1"]);
    expect(said(local.messages)).toEqual(["user: r0", "assistant: r0", "user: r1", "assistant: r1"]);
    expect(told).toEqual(["r1"]);
    unfollow();
  });

  test("an agent waits behind a run of its own", async () => {
    const { agent, executed, open } = gatedAgent();
    const runtime = hostOf({ agents: { gated: agent } }).connect();
    const local = runtime.agent("gated", { threadId: "t" });
    local.addMessage({ id: "r0-u", role: "user", content: "r0" });
    const first = local.runAgent({ runId: "r0" });
    await until(() => expect(executed).toEqual(["r0"]));
    local.addMessage({ id: "r1-u", role: "user", content: "r1" });
    const second = local.runAgent({ runId: "r1", onBusy: "queue" });
    await waitFor(runtime, ["r1 busy"]);
    open();
    await Promise.all([first, second]);
    expect(said(local.messages)).toEqual(["user: r0", "assistant: r0", "user: r1", "assistant: r1"]);
  });

  test("supersede ends the live run in favour of this one", async () => {
    const { agent, executed, letOn } = gatedAgent();
    const runtime = hostOf({ agents: { gated: agent } }).connect();
    const live = ask(runtime, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    letOn("r1");
    await ask(runtime, "r1", { onBusy: "supersede" }).running;
    await live.running;
    expect((await runtime.runner().listRuns("t")).map(({ runId, status }) => `${runId} ${status}`)).toEqual([
      "r1 finished",
      "r0 superseded",
    ]);
  });
});

describe("a run of an agent that needs the network", () => {
  const policies = { gated: { needsNetwork: true } };

  test("is refused where there is none, or waits for it; others run", async () => {
    const { agent, executed, open } = gatedAgent();
    open();
    const online = network(false);
    const { connect } = hostOf({ agents: { gated: agent, local: agent }, agentPolicies: policies, network: online });
    const runtime = connect();
    await expect(ask(runtime, "r0").running).rejects.toMatchObject({ code: "offline" });
    await expect(ask(runtime, "r0", queue).running).rejects.toMatchObject({ code: "offline" });
    const waiting = ask(runtime, "r1", { whenOffline: "wait" });
    await waitFor(runtime, ["r1 offline"]);
    // Who does not wait goes first.
    await ask(runtime, "r2", { whenOffline: "wait" }, "local").running;
    online.set(true);
    await waiting.running;
    expect(executed).toEqual(["r2", "r1"]);
    // A resent run is no new one.
    online.set(false);
    expect(await list(runtime)).toEqual([]);
  });
});

describe("a run that cannot start", () => {
  test("stays first and says why, until it is tried again; those behind it wait", async () => {
    const { agent, executed, open } = gatedAgent();
    let isAllowed = false;
    const { connect } = hostOf({
      agents: { gated: agent },
      beforeRequestMiddleware: ({ resolved }) =>
        resolved.route === "agent/run" && resolved.runId === "r1" && !isAllowed
          ? new Response("no", { status: 403 })
          : undefined,
    });
    const runtime = connect();
    ask(runtime, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    const refused = ask(runtime, "r1", queue);
    await waitFor(runtime, ["r1 busy"]);
    const behind = ask(runtime, "r2", queue);
    await waitFor(runtime, ["r1 busy", "r2 behind"]);
    open();
    await waitFor(runtime, ["r1 failed", "r2 behind"]);
    expect((await runtime.waiting.list("t"))[0]?.reason).toMatchObject({ error: { code: "refused" } });
    expect(await runtime.waiting.move("t", "r1", null)).toBe(true);
    await behind.running;
    await waitFor(runtime, ["r1 failed"]);
    isAllowed = true;
    expect(await runtime.waiting.retry("t", "r1")).toBe(true);
    await refused.running.catch(() => undefined);
    expect(executed).toEqual(["r0", "r2", "r1"]);
  });

  test("is tried again in time, also where the time of day is set back meanwhile", async () => {
    const { agent, executed, open } = gatedAgent();
    let refusals = 0;
    const { connect } = hostOf({
      agents: { gated: agent },
      beforeRequestMiddleware: ({ resolved }) =>
        resolved.route === "agent/run" && resolved.runId === "r1" && refusals++ === 0
          ? new Response("later", { status: 503 })
          : undefined,
    });
    const runtime = connect();
    ask(runtime, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    const asked = ask(runtime, "r1", queue);
    await waitFor(runtime, ["r1 busy"]);
    open();
    await waitFor(runtime, ["r1 retry"]);
    const { now } = Date;
    const setBack = vi.spyOn(Date, "now").mockImplementation(() => now() - 5 * 3_600_000);
    onTestFinished(() => setBack.mockRestore());
    await asked.running;
    expect(executed).toEqual(["r0", "r1"]);
  });

  test("an unknown agent is refused when it is asked for", async () => {
    const { agent, executed, open } = gatedAgent();
    const runtime = hostOf({ agents: { gated: agent } }).connect();
    ask(runtime, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    await expect(ask(runtime, "r1", queue, "nobody").running).rejects.toMatchObject({ code: "unknown-agent" });
    expect(await list(runtime)).toEqual([]);
    open();
  });
});

describe("a host that ends (L1, L9)", () => {
  test("leaves waiting runs to the next one, which starts them in order; headers are those of a connected tab", async () => {
    const dbName = freshDb();
    const { agent, executed, open } = gatedAgent();
    const seen: (string | null)[] = [];
    const options = {
      dbName,
      agents: { gated: agent },
      beforeRequestMiddleware: ({ request, resolved }: { request: Request; resolved: { route?: string } }) => {
        if (resolved.route === "agent/run") seen.push(request.headers.get("x-who"));
        return undefined;
      },
    };
    const first = hostOf(options);
    const runtime = first.connect({ headers: { "x-who": "first" } });
    ask(runtime, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    for (const id of ["r1", "r2"]) {
      ask(runtime, id, queue);
      await until(async () => expect((await list(runtime)).at(-1)).toMatch(id));
    }
    await runtime.close();
    await first.host.close();
    open();
    const next = hostOf(options).connect({ headers: { "x-who": "next" } });
    await until(async () =>
      expect((await next.runner().listRuns("t")).map(({ runId }) => runId)).toEqual(["r2", "r1", "r0"]),
    );
    await waitFor(next, []);
    expect(executed).toEqual(["r0", "r1", "r2"]);
    expect(seen).toEqual(["first", "next", "next"]);
  });

  test("a repeated call adds nothing, and a deleted thread has none", async () => {
    const { agent, executed, open } = gatedAgent();
    const runtime = hostOf({ agents: { gated: agent } }).connect();
    ask(runtime, "r0");
    await until(() => expect(executed).toEqual(["r0"]));
    const one = ask(runtime, "r1", queue);
    await waitFor(runtime, ["r1 busy"]);
    ask(runtime, "r1", queue);
    await until(async () => expect(await list(runtime)).toEqual(["r1 busy"]));
    await runtime.threads.delete("t");
    await expect(one.running).rejects.toMatchObject({ code: "cancelled" });
    expect(await list(runtime)).toEqual([]);
    expect(executed).toEqual(["r0"]);
    open();
  });
});

test("a page that is closed while a run waits behind one that it follows is told by its run alone (L13)", async () => {
  const { agent } = gatedAgent();
  const { connect } = hostOf({ agents: { gated: agent } });
  const runtime = connect();
  const following = runtime.agent("gated", { threadId: "t" });
  onTestFinished(following.follow());
  const other = connect().agent("gated", { threadId: "t" });
  other.addMessage(user("u"));
  const live = other.runAgent({ runId: "live" });
  live.catch(() => undefined);
  await until(() => expect(following.messages).toHaveLength(2));
  following.addMessage(user("v"));
  const waiting = following.runAgent({ runId: "waits", onBusy: "queue" });
  await until(async () => expect(shown(await runtime.waiting.list("t"))).toEqual(["waits busy"]));
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  onTestFinished(() => void process.off("unhandledRejection", unhandled));
  await runtime.close();
  await expect(waiting).rejects.toMatchObject({ code: "closed" });
  await nextTask();
  expect(unhandled).not.toHaveBeenCalled();
});
