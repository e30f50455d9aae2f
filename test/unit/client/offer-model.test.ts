import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { APICallError, generateText } from "ai";
import { simulateReadableStream } from "ai/test";
import { BehaviorSubject } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { tabModel } from "../../../src/ai/index.js";
import { connectRuntime } from "../../../src/client/index.js";
import type { OfferedModel, PageModel } from "../../../src/client/page-model.js";
import type { BeforeRequestMiddleware } from "../../../src/runtime/middleware.js";
import { defineAgent, serveRuntime } from "../../../src/worker/index.js";
import { asks, inputOf, runOf } from "../ai/kit.js";
import { whole } from "../runtime/models/kit.js";

/** A page with a host of its own, in one process. */
function page(beforeRequestMiddleware?: BeforeRequestMiddleware) {
  const host = serveRuntime({
    agents: { none: defineAgent(async function* () {}) },
    dbName: `offers-${Math.random()}`,
    ...(beforeRequestMiddleware && { beforeRequestMiddleware }),
  });
  const runtime = connectRuntime({
    hosts: { page: async () => host.connect() },
    startTimeoutMs: 60_000,
    callTimeoutMs: 60_000,
  });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  return runtime;
}

/** Models of other tests must not answer. */
let names = 0;
const fresh = (): string => `model-${names++}`;

function modelOf(text: string, more: Partial<PageModel> = {}) {
  const calls: LanguageModelV4CallOptions[] = [];
  const model: PageModel & Pick<LanguageModelV4, "provider"> = {
    specificationVersion: "v4",
    provider: "test",
    doStream: async (options: LanguageModelV4CallOptions) => {
      calls.push(options);
      return { stream: simulateReadableStream({ chunks: [...whole(text)] }) };
    },
    ...more,
  };
  return { model, calls };
}

test("an agent's model is answered by the page; headers and other secrets stay with the host", async () => {
  const name = fresh();
  const { model, calls } = modelOf("Hello");
  onTestFinished(page().offerModel(name, { model }));
  const { text } = await generateText({
    model: tabModel(name, { waitMs: 60_000 }),
    prompt: "Hi",
    temperature: 0.5,
    headers: { authorization: "Bearer secret" },
  });
  expect(text).toBe("Hello");
  const [{ abortSignal, ...call } = {}] = calls;
  expect(abortSignal).toBeInstanceOf(AbortSignal);
  expect(call).toMatchObject({ prompt: [{ role: "user", content: [{ type: "text", text: "Hi" }] }], temperature: 0.5 });
  expect(JSON.stringify(call)).not.toContain("secret");
});

test("a model with a status is offered while it is ready, and only then", async () => {
  const name = fresh();
  const status$ = new BehaviorSubject({ is: "downloadable" });
  const { model, calls } = modelOf("Hello", { status$ });
  onTestFinished(page().offerModel(name, { model }));
  const asked = generateText({ model: tabModel(name, { waitMs: 60_000 }), prompt: "Hi" });
  status$.next({ is: "downloading" });
  expect(calls).toEqual([]);
  status$.next({ is: "ready" });
  expect((await asked).text).toBe("Hello");
  status$.next({ is: "unavailable" });
  await vi.waitFor(() =>
    expect(generateText({ model: tabModel(name, { waitMs: 1 }), prompt: "Hi", maxRetries: 0 })).rejects.toMatchObject({
      code: "provider-unavailable",
    }),
  );
});

test("a middleware decides who may offer: whoever does is given the prompts of others", async () => {
  const name = fresh();
  const asked: unknown[] = [];
  const runtime = page(({ resolved }) => {
    asked.push(resolved.route);
    return resolved.route === "models/offer" ? new Response("no", { status: 403 }) : undefined;
  });
  const failures: Error[] = [];
  onTestFinished(
    runtime.offerModel(name, { model: modelOf("Hello").model, failed: (error) => void failures.push(error) }),
  );
  await vi.waitFor(() => expect(failures).toMatchObject([{ code: "refused" }]));
  expect(asked.filter((route) => route === "models/offer")).toHaveLength(1);
  await expect(
    generateText({ model: tabModel(name, { waitMs: 1 }), prompt: "Hi", maxRetries: 0 }),
  ).rejects.toMatchObject({ code: "provider-unavailable" });
});

const refused = (statusCode: number, responseHeaders: Record<string, string>): Error =>
  new APICallError({
    message: "slow down",
    url: "http://localhost/",
    requestBodyValues: {},
    statusCode,
    responseHeaders: { "x-secret": "no", ...responseHeaders },
  });
const inStream =
  (error: unknown): PageModel["doStream"] =>
  async () => ({
    stream: simulateReadableStream({ chunks: [whole("a")[0]!, { type: "error", error }] }),
  });

test.each<[string, PageModel["doStream"], object]>([
  [
    "has too many requests",
    () => Promise.reject(refused(429, { "retry-after": "90" })),
    { code: "RATE_LIMITED", metadata: { retryAfterMs: 90_000 } },
  ],
  ["fails in the middle", inStream(refused(503, {})), { code: "PROVIDER_UNAVAILABLE" }],
  ["refuses", () => Promise.reject(refused(401, {})), { code: "AUTHENTICATION" }],
  ["has no memory", inStream(new DOMException("lost the GPU", "OperationError")), { code: "PROVIDER_UNAVAILABLE" }],
  ["says only a word", inStream("no"), { code: "PROVIDER_UNAVAILABLE" }],
])("a page's model that %s ends the run as one that the worker asks itself would", async (_, doStream, end) => {
  const name = fresh();
  onTestFinished(page().offerModel(name, { model: { specificationVersion: "v4", doStream } }));
  const ran = await runOf(
    { model: tabModel(name, { waitMs: 60_000 }), settings: { maxRetries: 0 } },
    inputOf(asks("hi")),
  );
  expect(ran.end).toMatchObject({ type: "RUN_ERROR", ...end });
  expect(JSON.stringify(ran.end)).not.toContain("x-secret");
});

test.each([
  ["", { model: modelOf("a").model }],
  ["m", undefined],
  ["m", {}],
  ["m", { model: {} }],
  ["m", { model: { ...modelOf("a").model, specificationVersion: "v3" } }],
  ["m", { model: modelOf("a").model, continue: true }],
  ["m", { model: modelOf("a").model, continues: "yes" }],
])("offerModel(%j, %j) is refused", (name, offer) => {
  expect(() => page().offerModel(name, offer as OfferedModel)).toThrow(
    expect.objectContaining({ code: "invalid-input" }),
  );
});

test("tabModel refuses what is no name, and no option", () => {
  expect(() => tabModel("")).toThrow(expect.objectContaining({ code: "invalid-input" }));
  expect(() => tabModel("m", { wait: 1 } as object)).toThrow(expect.objectContaining({ code: "invalid-input" }));
});
