import { transfer } from "comlink";
import { expect, onTestFinished, test } from "vitest";
import { HostLink } from "../../../src/client/host-link.js";
import type { RunnerError } from "../../../src/run/errors.js";
import type { ThreadPlace } from "../../../src/run/thread-order.js";
import type { HostApi } from "../../../src/runtime/host-api.js";
import type { AgentRuntime, BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { inputOf } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { WAYS } from "./ways.js";

/** What a tab asks its host for, and how a middleware sees that. */
interface Row {
  readonly ask: (call: HostLink["call"], port: MessagePort) => Promise<unknown>;
  readonly seen: readonly [method: string, address: string];
  /** What it leads to is seen, too. */
  readonly andThen?: readonly string[];
  /** It names a thread, `mine`. */
  readonly ofThread?: true;
}

const run = (threadId: string) => ({ threadId, agentId: "counter", input: inputOf(threadId, "new") });

/** Each call of {@link HostApi}, once for each way in which a middleware sees it. */
const ROWS = {
  run: [
    {
      ask: (call, port) => call("run", run("mine"), transfer(port, [port])),
      seen: ["POST", "/agent/counter/run"],
    },
  ],
  attach: [
    {
      ask: (call, port) => call("attach", { threadId: "mine" }, transfer(port, [port])),
      seen: ["GET", "/threads/mine/events"],
      ofThread: true,
    },
    {
      ask: (call, port) => call("attach", { threadId: "mine", agentId: "counter" }, transfer(port, [port])),
      seen: ["POST", "/agent/counter/connect"],
    },
    {
      ask: (call, port) => call("attach", { threadId: "mine", runId: "r" }, transfer(port, [port])),
      seen: ["GET", "/threads/mine/events"],
      ofThread: true,
    },
  ],
  stop: [
    { ask: (call) => call("stop", { threadId: "mine" }), seen: ["POST", "/threads/mine/stop"], ofThread: true },
    {
      ask: (call) => call("stop", { threadId: "mine", agentId: "counter", runId: "r" }),
      seen: ["POST", "/agent/counter/stop/mine"],
      ofThread: true,
    },
  ],
  isRunning: [
    { ask: (call) => call("isRunning", { threadId: "mine" }), seen: ["GET", "/threads/mine/running"], ofThread: true },
  ],
  listThreads: [
    {
      ask: (call) => call("listThreads", { limit: 2, agentId: "counter", archived: false }),
      seen: ["GET", "/threads?limit=2&agentId=counter&archived=false"],
    },
    { ask: (call) => call("listThreads", { before: 5 }), seen: ["GET", "/threads?before=5"] },
    {
      ask: (call) => call("listThreads", { before: { updatedAt: 5, threadId: "mine" } }),
      seen: ["GET", `/threads?${new URLSearchParams({ before: '{"updatedAt":5,"threadId":"mine"}' }).toString()}`],
    },
  ],
  messages: [
    {
      ask: (call) => call("messages", { threadId: "mine", limit: 2 }),
      seen: ["GET", "/threads/mine/messages?limit=2"],
      ofThread: true,
    },
  ],
  listRuns: [
    {
      ask: (call) => call("listRuns", { threadId: "mine", status: "finished" }),
      seen: ["GET", "/threads/mine/runs?status=finished"],
      ofThread: true,
    },
  ],
  getRun: [
    { ask: (call) => call("getRun", { runId: "r" }), seen: ["GET", "/runs/r"] },
    {
      ask: (call) => call("getRun", { runId: "r", threadId: "mine" }),
      seen: ["GET", "/threads/mine/runs/r"],
      ofThread: true,
    },
  ],
  activateRun: [
    {
      ask: (call) => call("activateRun", { threadId: "mine", runId: "r" }),
      seen: ["POST", "/threads/mine/runs/r/activate"],
    },
    {
      ask: (call) => call("activateRun", { threadId: "mine", runId: "r", runIndex: 0 }),
      seen: ["POST", "/threads/mine/runs/r/activate"],
    },
  ],
  getRunEvents: [
    { ask: (call) => call("getRunEvents", { runId: "r" }), seen: ["GET", "/runs/r/events"] },
    {
      ask: (call) => call("getRunEvents", { runId: "r", threadId: "mine" }),
      seen: ["GET", "/threads/mine/runs/r/events"],
      ofThread: true,
    },
  ],
  getThreadMessages: [
    {
      ask: (call) => call("getThreadMessages", { threadId: "mine" }),
      seen: ["GET", "/threads/mine/messages"],
      ofThread: true,
    },
  ],
  getThreadEvents: [
    {
      ask: (call) => call("getThreadEvents", { threadId: "mine" }),
      seen: ["GET", "/threads/mine/events"],
      ofThread: true,
    },
  ],
  getThreadState: [
    {
      ask: (call) => call("getThreadState", { threadId: "mine" }),
      seen: ["GET", "/threads/mine/state"],
      ofThread: true,
    },
  ],
  getThread: [
    { ask: (call) => call("getThread", { threadId: "mine" }), seen: ["GET", "/threads/mine"], ofThread: true },
  ],
  updateThread: [
    {
      ask: (call) => call("updateThread", { threadId: "mine", changes: { title: "Named" } }),
      seen: ["PATCH", "/threads/mine"],
    },
  ],
  deleteThread: [
    { ask: (call) => call("deleteThread", { threadId: "mine" }), seen: ["DELETE", "/threads/mine"], ofThread: true },
  ],
  clearThreads: [{ ask: (call) => call("clearThreads"), seen: ["POST", "/threads/clear"] }],
  watchThreads: [
    {
      ask: (call, port) => call("watchThreads", transfer(port, [port])),
      seen: ["POST", "/threads/subscribe"],
    },
  ],
  watchToolCalls: [
    {
      ask: (call, port) => call("watchToolCalls", { threadId: "mine" }, transfer(port, [port])),
      seen: ["GET", "/threads/mine/tool-calls"],
      ofThread: true,
    },
  ],
  claimToolCall: [
    {
      ask: (call) => call("claimToolCall", { threadId: "mine", toolCallId: "c", token: "1" }),
      seen: ["POST", "/threads/mine/tool-calls/claim"],
    },
  ],
  answerToolCall: [
    {
      ask: (call) =>
        call("answerToolCall", { threadId: "mine", toolCallId: "c", token: "1", by: "user", content: "yes" }),
      seen: ["POST", "/threads/mine/tool-calls/answer"],
    },
  ],
  offerModel: [
    {
      ask: (call, port) => call("offerModel", { model: "m", continues: true, visible: true }, transfer(port, [port])),
      seen: ["POST", "/models/m/offer"],
    },
  ],
  enqueue: [
    {
      ask: (call) => call("enqueue", { run: run("mine"), onBusy: "queue", whenOffline: "fail" }),
      seen: ["POST", "/threads/mine/waiting"],
      // It need not wait: the host begins it.
      andThen: ["POST", "/agent/counter/run"],
    },
  ],
  watchWaiting: [
    {
      ask: (call, port) => call("watchWaiting", { threadId: "mine" }, transfer(port, [port])),
      seen: ["GET", "/threads/mine/waiting"],
      ofThread: true,
    },
    {
      ask: (call, port) => call("watchWaiting", {}, transfer(port, [port])),
      seen: ["GET", "/threads/waiting"],
    },
  ],
  moveWaiting: [
    {
      ask: (call) => call("moveWaiting", { threadId: "mine", runId: "r", before: null }),
      seen: ["POST", "/threads/mine/waiting/move"],
    },
  ],
  cancelWaiting: [
    {
      ask: (call) => call("cancelWaiting", { threadId: "mine", runId: "r" }),
      seen: ["POST", "/threads/mine/waiting/cancel"],
    },
  ],
  retryWaiting: [
    {
      ask: (call) => call("retryWaiting", { threadId: "mine", runId: "r" }),
      seen: ["POST", "/threads/mine/waiting/retry"],
    },
  ],
  unlock: [],
  lock: [],
  changeKey: [],
  // How the host is: how many tabs it has, whether it keeps anything. A tab that could not ask would not know that its
  // host lives.
  watch: [],
  // Its answer comes by the port, and is what the middleware made of the request itself.
  fetch: [],
} satisfies Readonly<Record<keyof HostApi, readonly Row[]>>;

const CASES = Object.entries<readonly Row[]>(ROWS).flatMap(([name, rows]) =>
  rows.map((row) => [`${name}, as ${row.seen.join(" ")}`, row] as const),
);
const OF_THREAD = CASES.filter(([, { ofThread }]) => ofThread);

/** A tab of a host with this middleware. */
function connected(runtime: AgentRuntime) {
  const host = serveRuntime(runtime);
  const link = new HostLink({
    hosts: { page: async () => host.connect() },
    startTimeoutMs: 60_000,
    callTimeoutMs: 60_000,
    extendedLifetime: false,
  });
  onTestFinished(() => link.close());
  const { port1, port2 } = new MessageChannel();
  const heard: unknown[] = [];
  port1.onmessage = ({ data }) => heard.push(data);
  onTestFinished(() => port1.close());
  return { ask: ({ ask }: Row) => ask((...asked) => link.call(...asked), port2), heard };
}

/** A runtime with the threads `mine` and `yours`, each of one run `r`, which the middleware has not seen. */
async function withThreads(beforeRequestMiddleware: BeforeRequestMiddleware): Promise<AgentRuntime> {
  let isReady = false;
  const runtime = runtimeWith({
    beforeRequestMiddleware: (context) => (isReady ? beforeRequestMiddleware(context) : undefined),
  });
  const caller = await WAYS[0]!.open(runtime);
  await caller.run("counter", inputOf("mine", "r"));
  await caller.run("other", inputOf("yours", "r"));
  isReady = true;
  return runtime;
}

test.each(CASES)("a middleware sees %s", async (_, row) => {
  const seen: string[][] = [];
  const runtime = await withThreads(({ request, path }) => {
    const { pathname, search } = new URL(request.url);
    expect(path).toBe(pathname);
    seen.push([request.method, pathname + search]);
  });
  // That several threads have a run of this id is an answer, too, and that a call does not wait.
  await connected(runtime)
    .ask(row)
    .catch((error: unknown) => expect(["invalid-input", "call-over"]).toContain((error as RunnerError).code));
  expect(seen).toEqual([row.seen, ...(row.andThen === undefined ? [] : [row.andThen])]);
});

test.each(CASES)("a middleware that refuses everything refuses %s, and nothing comes", async (_, row) => {
  const runtime = await withThreads(() => {
    throw { status: 401 };
  });
  const { ask, heard } = connected(runtime);
  await expect(ask(row)).rejects.toMatchObject({ code: "refused", details: { status: 401 } });
  // What the host does before its next answer, it has done by then.
  await expect(ask(ROWS.clearThreads[0]!)).rejects.toMatchObject({ code: "refused" });
  expect(heard).toEqual([]);
  expect((await (await runtime.runner()).isRunning({ threadId: "mine" })) === true).toBe(false);
});

test.each(OF_THREAD)("a middleware gives %s another thread, as it does over HTTP", async (_, row) => {
  const told: (string | undefined)[] = [];
  const runtime = runtimeWith({
    beforeRequestMiddleware: ({ request }) => new Request(request.url.replace("mine", "yours"), request),
    afterRequestMiddleware: ({ threadId }) => void told.push(threadId),
  });
  await connected(runtime).ask(row);
  // Others are over when they are answered, an attachment when it is read.
  await expect.poll(() => told).toEqual(["yours"]);
});

test.each(
  OF_THREAD.flatMap(([name, row]) => [
    [`${name}: another address`, row, (request: Request) => new Request(new URL("/info", request.url))] as const,
    [`${name}: more of it`, row, (request: Request) => new Request(`${request.url}/more`, request)] as const,
    [`${name}: another method`, row, (request: Request) => new Request(request.url, { method: "PUT" })] as const,
  ]),
)("a middleware cannot make another call of %s", async (_, row, made) => {
  const runtime = await withThreads(({ request }) => made(request));
  await expect(connected(runtime).ask(row)).rejects.toMatchObject({ code: "invalid-input" });
});

test("a middleware keeps a list to an agent", async () => {
  const runtime = await withThreads(({ request }) => {
    const url = new URL(request.url);
    url.searchParams.set("agentId", "other");
    return new Request(url, request);
  });
  const threads = await connected(runtime).ask(ROWS.listThreads[0]!);
  expect(threads).toEqual([expect.objectContaining({ threadId: "yours", agentId: "other" })]);
});

test("a middleware that keeps a list to an agent keeps it on its second page", async () => {
  const runtime = await withThreads(({ request }) => {
    const url = new URL(request.url);
    url.searchParams.set("agentId", "other");
    return new Request(url, request);
  });
  const { ask } = connected(runtime);
  const page = (before?: ThreadPlace | number): Promise<unknown> =>
    ask({ ...ROWS.listThreads[0]!, ask: (call) => call("listThreads", before === undefined ? {} : { before }) });
  const [yours] = (await page()) as [ThreadPlace];
  const { updatedAt, threadId } = yours;
  expect(await page({ updatedAt: updatedAt + 1, threadId: "" })).toEqual([yours]);
  expect(await page({ updatedAt, threadId })).toEqual([]);
  expect(await page(updatedAt + 1)).toEqual([yours]);
});

test("a middleware changes another thread than was asked for, and otherwise", async () => {
  const runtime = await withThreads(({ request }) =>
    request.method === "PATCH"
      ? new Request(request.url.replace("mine", "yours"), { method: "PATCH", body: JSON.stringify({ title: "Other" }) })
      : undefined,
  );
  const tab = connected(runtime);
  expect(await tab.ask(ROWS.updateThread[0]!)).toMatchObject({ threadId: "yours", title: "Other" });
  expect(await tab.ask(ROWS.getThread[0]!)).not.toMatchObject({ title: "Other" });
});

test("a middleware reads another page than was asked for", async () => {
  const runtime = await withThreads(({ request }) => {
    const url = new URL(request.url);
    url.searchParams.set("limit", "1");
    return new Request(url, request);
  });
  expect(await connected(runtime).ask(ROWS.messages[0]!)).toMatchObject({
    messages: [{ role: "assistant" }],
    earlier: true,
  });
});

test("a middleware gives a stop another run", async () => {
  const runtime = await withThreads(({ request }) =>
    request.url.endsWith("/stop/mine")
      ? new Request(request, { method: "POST", body: JSON.stringify({ runId: "another" }) })
      : undefined,
  );
  await (await WAYS[0]!.open(runtime)).runAndLeave("silent", inputOf("mine", "live"));
  const ask: Row["ask"] = (call) => call("stop", { threadId: "mine", agentId: "counter", runId: "live" });
  expect(await connected(runtime).ask({ ...ROWS.stop[1]!, ask })).toBe(false);
  expect(await (await runtime.runner()).isRunning({ threadId: "mine" })).toBe(true);
});

test.each(["moveWaiting", "cancelWaiting", "retryWaiting"] as const)(
  "a middleware knows the run of %s",
  async (name) => {
    const runs: (string | undefined)[] = [];
    const runtime = await withThreads(({ resolved }) => void runs.push(resolved.runId));
    await connected(runtime).ask(ROWS[name][0]!);
    expect(runs).toEqual(["r"]);
  },
);

test("what a middleware leaves out of a call is left out", async () => {
  const runtime = await withThreads(
    ({ request }) => new Request(request, { method: "POST", body: JSON.stringify({ toolCallId: "c" }) }),
  );
  const asked = connected(runtime).ask(ROWS.claimToolCall[0]!);
  await expect(asked).rejects.toMatchObject({ code: "invalid-input", details: { field: "token" } });
});
