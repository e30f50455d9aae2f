import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { generateText } from "ai";
import { simulateReadableStream } from "ai/test";
import { BehaviorSubject } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { tabModel } from "../../../src/ai/index.js";
import { connectRuntime } from "../../../src/client/index.js";
import type { OfferedModel, PageModel } from "../../../src/client/page-model.js";
import type { BeforeRequestMiddleware } from "../../../src/runtime/middleware.js";
import { defineAgent, serveRuntime } from "../../../src/worker/index.js";
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
