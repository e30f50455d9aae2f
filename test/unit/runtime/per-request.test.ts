import { EventType } from "@ag-ui/client";
import { InMemoryAgentRunner, resetInMemoryStore } from "ag-ui-local-runtime";
import { AgentRuntime, createRuntimeHandler, type AgentRuntimeOptions } from "ag-ui-local-runtime/runtime";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { countLasting } from "../worker/lasting.js";

/* Without a database: as a server in Node is, whose handlers make a runtime for each request. */

const hello = defineAgent(async function* ({ runId, messages }) {
  const messageId = `${runId}-a`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `hello ${messages.length}` };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
});
const waiting = defineAgent(async function* (_input, { signal }) {
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  yield* [];
});

const runtimeWith = (options: Partial<AgentRuntimeOptions> = {}): AgentRuntime =>
  new AgentRuntime({
    agents: { hello, waiting },
    ...(options.runner === undefined && { dbName: "per-request", stopGraceMs: 50 }),
    ...options,
  });

const post = (path: string, runId: string, threadId: string): Request =>
  new Request(`http://local${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      threadId,
      runId,
      messages: [{ id: `${runId}-u`, role: "user", content: "hi" }],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    }),
  });

async function serveOne(options: Partial<AgentRuntimeOptions>, runId: string): Promise<WeakRef<AgentRuntime>> {
  const runtime = runtimeWith(options);
  const response = await createRuntimeHandler({ runtime })(post("/agent/hello/run", runId, "t"));
  expect(await response.text()).toContain("RUN_FINISHED");
  return new WeakRef(runtime);
}

afterEach(() => resetInMemoryStore());

describe("a runtime for each request", () => {
  test.each<[string, () => Partial<AgentRuntimeOptions>]>([
    ["of options", () => ({})],
    [
      "with a runner of its own",
      () => ({ runner: new InMemoryAgentRunner({ dbName: "per-request", stopGraceMs: 50 }) }),
    ],
  ])("%s leaves nothing behind", async (_name, options) => {
    const warned = vi.fn<(warning: Error) => void>();
    process.on("warning", warned);
    onTestFinished(() => void process.off("warning", warned));
    const lasting = countLasting();
    const served: WeakRef<AgentRuntime>[] = [];
    const serve = async (upTo: number): Promise<void> => {
      while (served.length < upTo) served.push(await serveOne(options(), `r${served.length}`));
    };
    const alive = (): number => served.filter((runtime) => runtime.deref() !== undefined).length;
    await serve(20);
    const before = await lasting();
    await serve(120);
    let after = before;
    // What has just ended is let go of in its own time.
    await vi.waitFor(async () => {
      after = await lasting();
      expect(alive()).toBeLessThanOrEqual(20);
      // Those who listen for a runtime are let go of after it.
      expect(after.subscribers).toBeLessThanOrEqual(before.subscribers + 20);
      expect(after.abortListeners).toBeLessThanOrEqual(before.abortListeners + 20);
    }, 30_000);
    expect(after.followers).toBe(before.followers);
    expect(warned).not.toHaveBeenCalled();
    // The store is whole.
    const last = runtimeWith();
    onTestFinished(() => last.close());
    const listed = await createRuntimeHandler({ runtime: last })(new Request("http://local/threads/t/messages"));
    const { messages } = (await listed.json()) as { messages: { id: string }[] };
    expect(messages.map(({ id }) => id)).toEqual(served.flatMap((_, n) => [`r${n}-u`, `r${n}-a`]));
  });

  test("a runtime that closes ends its own runs, and no others of the store", async () => {
    const [one, other] = [runtimeWith(), runtimeWith()];
    onTestFinished(() => other.close());
    const start = (runtime: AgentRuntime, threadId: string) =>
      createRuntimeHandler({ runtime })(post("/agent/waiting/run", `run-${threadId}`, threadId));
    const [ofOne, ofOther] = await Promise.all([start(one, "a"), start(other, "b")]);
    const runner = await other.runner();
    await vi.waitFor(async () => {
      for (const threadId of ["a", "b"]) expect(await runner.isRunning({ threadId })).toBe(true);
    });
    await one.close();
    expect(await ofOne!.text()).toContain("RUN_FINISHED");
    expect(await runner.isRunning({ threadId: "a" })).toBe(false);
    expect(await runner.isRunning({ threadId: "b" })).toBe(true);
    expect((await start(one, "a")).status).toBe(503);
    await Promise.all([one.close(), other.close(), other.close()]);
    expect(await ofOther!.text()).toContain("RUN_FINISHED");
  });

  test("runtimes of other options are on the same store, with what they were told", async () => {
    const [one, impatient] = [runtimeWith(), runtimeWith({ maxRunMs: 20 })];
    onTestFinished(async () => void (await Promise.all([one.close(), impatient.close()])));
    const ended = await createRuntimeHandler({ runtime: impatient })(post("/agent/waiting/run", "r", "t"));
    expect(await ended.text()).toContain("RUN_TIMEOUT");
    const state = await createRuntimeHandler({ runtime: one })(new Request("http://local/threads"));
    expect(await state.json()).toMatchObject({ threads: [{ id: "t" }] });
  });

  test("a runtime stores of inputs what it was told to, whatever another one on its store was told", async () => {
    const stored = async (threadId: string, options: Partial<AgentRuntimeOptions>): Promise<string> => {
      const runtime = runtimeWith(options);
      onTestFinished(() => runtime.close());
      const handle = createRuntimeHandler({ runtime });
      const request = post("/agent/hello/run", "r", threadId);
      const body = { ...((await request.json()) as object), forwardedProps: { token: "secret" } };
      const { url, method, headers } = request;
      await (await handle(new Request(url, { method, headers, body: JSON.stringify(body) }))).text();
      return (await handle(new Request(`http://local/threads/${threadId}/events`))).text();
    };
    expect(await stored("told", { recordInput: ["forwardedProps"] })).toContain("secret");
    expect(await stored("not-told", {})).not.toContain("secret");
    expect(await stored("told-again", { recordInput: ["forwardedProps"] })).toContain("secret");
  });

  test("a public runtime reads nothing of a guarded one of another dbName", async () => {
    const guarded = runtimeWith({
      dbName: "guarded",
      beforeRequestMiddleware: () => new Response(null, { status: 401 }),
    });
    const filling = runtimeWith({ dbName: "guarded" });
    const open = runtimeWith({ dbName: "public" });
    onTestFinished(async () => void (await Promise.all([guarded, filling, open].map((runtime) => runtime.close()))));
    await (await createRuntimeHandler({ runtime: filling })(post("/agent/hello/run", "r", "secret"))).text();
    const handle = createRuntimeHandler({ runtime: open });
    expect(await (await handle(new Request("http://local/threads"))).json()).toMatchObject({ threads: [] });
    expect(await (await handle(new Request("http://local/threads/secret/messages"))).json()).toEqual({ messages: [] });
    expect(await (await handle(post("/agent/hello/connect", "c", "secret"))).text()).toBe("");
    const asked = await createRuntimeHandler({ runtime: guarded })(new Request("http://local/threads"));
    expect(asked.status).toBe(401);
  });
});
