import { aiAgent } from "ag-ui-local-runtime/ai";
import { describe, expect, test } from "vitest";
import type { RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { AgentPolicy } from "../../../src/runtime/agent-policies.js";
import type { Script } from "../../openai/server.js";
import { modelAt, servedModel } from "../ai/kit.js";
import { freshDb } from "../runner/kit.js";
import { hostOf, network, until } from "./kit.js";

const it = servedModel();

const KEY = "a-key";
const keyed = { headers: { "X-Model-Key": KEY } };
const keyless = { headers: { "x-model-key": "" } };

/** Knows the key. */
const strict: Script = ({ headers }) =>
  headers["authorization"] === `Bearer ${KEY}`
    ? { text: ["the answer"] }
    : { status: 401, body: JSON.stringify({ error: { message: "missing key", type: "error" } }) };

/** A worker with an agent that needs the key of the person who asks; each call is another start of it, on one database. */
function worker(policy: AgentPolicy) {
  const dbName = freshDb();
  const assistant = aiAgent({
    model: ({ headers }) => modelAt(it.server.url, headers["x-model-key"] || "none"),
    settings: { maxRetries: 0 },
  });
  return (online = network()) =>
    hostOf({ dbName, agents: { assistant }, agentPolicies: { assistant: policy }, network: online });
}

/** Asks where there is no network; then the worker ends. */
async function askAndEnd(start: ReturnType<typeof worker>): Promise<void> {
  const { host, connect } = start(network(false));
  const runtime = connect(keyed);
  const agent = runtime.agent("assistant", { threadId: "t" });
  agent.addMessage({ id: "u", role: "user", content: "hello" });
  agent.runAgent({ runId: "r", whenOffline: "wait" }).catch(() => undefined);
  await until(async () => expect(await runtime.waiting.list("t")).toHaveLength(1));
  await runtime.close();
  await host.close();
}

const textsOf = async (runtime: RuntimeConnection): Promise<unknown[]> =>
  (await runtime.runner().getThreadMessages("t")).map(({ content }) => content);

describe("a run that starts without the call that asked for it", () => {
  const needs: AgentPolicy = { needsNetwork: true, needsHeaders: ["x-model-key"] };

  test("waits for a tab with the headers that its agent needs, says so, and loses nothing", async () => {
    it.server.script(strict);
    const start = worker(needs);
    await askAndEnd(start);
    const { connect } = start();
    const first = connect(keyless);
    const reason = { is: "headers", names: ["x-model-key"] };
    await until(async () => expect(await first.waiting.list("t")).toMatchObject([{ runId: "r", reason }]));
    const [waiting] = await first.waiting.list("t");
    expect(waiting!.messages).toMatchObject([{ content: "hello" }]);
    expect(it.server.requests).toEqual([]);
    await connect(keyed).threads.list();
    await until(async () => expect(await textsOf(first)).toEqual(["hello", "the answer"]));
    expect(await first.waiting.list("t")).toEqual([]);
    expect(it.server.requests).toHaveLength(1);
  });

  test("goes on with a broken run in the same way", async () => {
    it.server.script({ text: [], holds: true }, strict);
    const { connect } = worker({ ...needs, recovery: { backoffMs: 0 } })();
    const watching = connect(keyless);
    let tabs: number | undefined;
    watching.status$.subscribe((status) => (tabs = "tabs" in status ? status.tabs : undefined));
    const leaving = connect(keyed);
    const agent = leaving.agent("assistant", { threadId: "t" });
    agent.addMessage({ id: "u", role: "user", content: "hello" });
    agent.runAgent({ runId: "r" }).catch(() => undefined);
    await it.server.when(() => it.server.requests.length === 1);
    // The tab leaves with its key, then the answer breaks off.
    await leaving.close();
    await until(() => expect(tabs).toBe(1));
    it.server.cut();
    await until(async () =>
      expect(await watching.waiting.list("t")).toMatchObject([{ runId: "r~2", reason: { is: "headers" } }]),
    );
    await connect(keyed).threads.list();
    await until(async () => expect(await textsOf(watching)).toEqual(["hello", "the answer"]));
  });

  test("whose agent names no headers starts without them: its error says what is missing, and the message is there", async () => {
    it.server.script(strict);
    const start = worker({ needsNetwork: true });
    await askAndEnd(start);
    const runtime = start().connect(keyless);
    const ended = async () => (await runtime.runner().getRunEvents("r", { threadId: "t" })).at(-1)?.event;
    await until(async () => expect(await ended()).toMatchObject({ type: "RUN_ERROR", code: "AUTHENTICATION" }));
    expect(await textsOf(runtime)).toEqual(["hello"]);
  });

  test("a call that starts its run at once is told what it lacks", async () => {
    it.server.script(strict);
    const runtime = worker(needs)().connect(keyless);
    const agent = runtime.agent("assistant", { threadId: "t" });
    const codes: unknown[] = [];
    agent.subscribe({ onRunErrorEvent: ({ event }) => void codes.push(event.code) });
    agent.addMessage({ id: "u", role: "user", content: "hello" });
    await agent.runAgent({ onBusy: "queue", whenOffline: "wait" });
    expect(codes).toEqual(["AUTHENTICATION"]);
  });
});
