import { createRuntimeHandler, AgentRuntime, type BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { agentOf, counter, freshDb, inputOf, silent } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";

const post = (path: string, body: unknown, init: RequestInit = {}): Request =>
  new Request(`http://localhost${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    ...init,
    headers: { "content-type": "application/json", ...init.headers },
  });

/** Counts the attachments that are open. */
class CountingRunner extends IndexedDBAgentRunner {
  open = 0;

  override async *attach(...given: Parameters<IndexedDBAgentRunner["attach"]>): AsyncGenerator<Frame, void> {
    this.open++;
    try {
      yield* super.attach(...given);
    } finally {
      this.open--;
    }
  }
}

describe("a request that is over leaves nothing behind (L14)", () => {
  test("whose answer to connect is cancelled before anything of it is read", async () => {
    const runner = new CountingRunner({ dbName: freshDb(), stopGraceMs: 50 });
    onTestFinished(() => runner.close());
    const runtime = runtimeWith({ runner });
    const run = runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") });
    const reading = run.subscribe();
    const answer = await createRuntimeHandler({ runtime })(post("/agent/counter/connect", inputOf("t", "c")));
    expect(runner.open).toBe(1);
    await answer.body!.cancel();
    await vi.waitFor(() => expect(runner.open).toBe(0));
    reading.unsubscribe();
  });
});

describe("a runtime that is closed", () => {
  const suggesting = () => {
    let running = 0;
    const agent = agentOf(async function* (input, context) {
      running++;
      try {
        yield* silent(input, context);
      } finally {
        running--;
      }
    });
    const runtime = new AgentRuntime({ agents: { silent: agent }, dbName: freshDb(), stopGraceMs: 50 });
    onTestFinished(() => runtime.close());
    return { runtime, handler: createRuntimeHandler({ runtime }), running: () => running };
  };

  test("ends its suggestions, too", async () => {
    const { runtime, handler, running } = suggesting();
    const answer = await handler(post("/agent/silent/suggest", inputOf("t", "r")));
    const text = answer.text();
    await vi.waitFor(() => expect(running()).toBe(1));
    await runtime.close();
    await text;
    // On a busy machine the run is settled when its time is over, and the agent ends a turn later.
    await vi.waitFor(() => expect(running()).toBe(0));
  });

  test("starts none", async () => {
    const { runtime, handler, running } = suggesting();
    await runtime.close();
    const answer = await handler(post("/agent/silent/suggest", inputOf("t", "r")));
    expect(answer.status).toBe(503);
    expect(running()).toBe(0);
  });
});

test.each([
  { sseKeepAliveIntervalSeconds: -1 },
  { sseKeepAliveIntervalSeconds: NaN },
  { maxBodyBytes: NaN },
  { maxBodyBytes: -1 },
])("%j is refused when the runtime is made, not when somebody asks", (options) => {
  expect(() => new AgentRuntime({ agents: { counter: agentOf(counter(1)) }, ...options })).toThrow(
    expect.objectContaining({ code: "invalid-input" }),
  );
});

test("a runner of another make that is busy is a busy thread over HTTP", async () => {
  const runner = {
    run: () => {
      throw new Error("Thread already running");
    },
    connect: () => {
      throw new Error("not asked");
    },
    isRunning: async () => true,
    stop: async () => true,
  };
  const runtime = runtimeWith({ runner });
  const answer = await createRuntimeHandler({ runtime })(post("/agent/counter/run", inputOf("t", "r")));
  expect([answer.status, await answer.json()]).toEqual([
    409,
    { error: "Thread already running", code: "agent_thread_locked", threadId: "t" },
  ]);
});

test("a middleware that has read the body is told so", async () => {
  const error = vi.fn();
  const beforeRequestMiddleware: BeforeRequestMiddleware = async ({ request }) => void (await request.text());
  const runtime = runtimeWith({ beforeRequestMiddleware, logger: { error, warn: () => undefined } });
  const answer = await createRuntimeHandler({ runtime })(post("/agent/counter/run", inputOf("t", "r")));
  expect(answer.status).toBe(500);
  const { id } = (await answer.json()) as { readonly id: string };
  expect(error).toHaveBeenCalledWith(
    expect.stringContaining(id),
    { path: "/agent/counter/run" },
    expect.objectContaining({ message: expect.stringContaining("request.clone()") }),
  );
});

test("a page of an origin that cors does not name cannot post a recording", async () => {
  const transcribeFile = vi.fn(async () => "said");
  const runtime = runtimeWith({ transcriptionService: { transcribeFile } });
  const handler = createRuntimeHandler({ runtime, cors: { origin: "https://friend.example" } });
  const posted = (origin: string): Promise<Response> => {
    const body = new FormData();
    body.set("audio", new File(["x"], "a.webm", { type: "audio/webm" }));
    return handler(new Request("http://localhost/transcribe", { method: "POST", body, headers: { origin } }));
  };
  expect((await posted("https://evil.example")).status).toBe(403);
  expect(transcribeFile).not.toHaveBeenCalled();
  expect((await posted("https://friend.example")).status).toBe(200);
});

test.each([{}, { cors: true }])(
  "a Response that a middleware returns twice is a clean 500 the second time, %j",
  async (options) => {
    const no = new Response("no", { status: 403 });
    const errors: unknown[] = [];
    const runtime = runtimeWith({
      beforeRequestMiddleware: () => no,
      metrics: { error: ({ error }) => void errors.push(error) },
    });
    const handler = createRuntimeHandler({ runtime, ...options });
    const answers = [await handler(new Request("http://localhost/info"))];
    expect(await answers[0]!.text()).toBe("no");
    const again = await handler(new Request("http://localhost/info"));
    expect([again.status, await again.json()]).toEqual([500, { error: "internal_error", id: expect.any(String) }]);
    expect(String(errors[0])).toContain("new Response");
  },
);
