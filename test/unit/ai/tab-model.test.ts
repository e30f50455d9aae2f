import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { streamText } from "ai";
import type { Message } from "@ag-ui/core";
import { tabModel } from "ag-ui-local-runtime/ai";
import { expect, test, vi } from "vitest";
import { promptOf } from "../../../src/ai/prompt.js";
import { tabModels } from "../../../src/runtime/models/tab-models.js";
import type { ModelFrame } from "../../../src/wire/model-frames.js";
import { asks } from "./kit.js";
import { FakeTab, whole } from "../runtime/models/kit.js";

const CALL: LanguageModelV4CallOptions = { prompt: [{ role: "user", content: [{ type: "text", text: "Hi" }] }] };

/** A call that a tab answers at once as a whole, of which one part was read. */
async function inBurst(name: string) {
  const told: unknown[] = [];
  const tab = new FakeTab(tabModels(), { model: name }, (_call, port) => {
    port.onmessage = ({ data }) => told.push(data);
    for (const part of whole("a", "b", "c")) port.postMessage({ type: "part", part } satisfies ModelFrame);
  });
  const call = new AbortController();
  const { stream } = await tabModel(name).doStream({ ...CALL, abortSignal: call.signal });
  const reader = stream.getReader();
  await reader.read();
  return { tab, told, call, reader };
}

test("a stop in a burst of parts leaves the tab, whether the call or its stream is stopped", async () => {
  const one = await inBurst("aborted");
  one.call.abort();
  const other = await inBurst("cancelled");
  await other.reader.cancel();
  for (const { told } of [one, other]) await vi.waitFor(() => expect(told).toContainEqual({ type: "detach" }));
});

test("an answer that is aborted in a burst of parts ends with why", async () => {
  const { call, reader } = await inBurst("aborted with a reason");
  call.abort(new Error("enough"));
  const read = async (): Promise<void> => ((await reader.read()).done ? undefined : read());
  await expect(read()).rejects.toThrow("enough");
});

test("a call that was aborted before asks no tab, and fails with why", async () => {
  const call = tabModel("never offered").doStream({ ...CALL, abortSignal: AbortSignal.abort(new Error("enough")) });
  await expect(call).rejects.toThrow("enough");
});

test("a file of a model's that stands at a URL does not fail the thread's runs: the model is told that it is missing", async () => {
  const tab = new FakeTab(tabModels(), { model: "seeing" }, (_call, port) => {
    for (const part of whole("ok")) port.postMessage({ type: "part", part } satisfies ModelFrame);
    port.postMessage({ type: "end" } satisfies ModelFrame);
  });
  const activity = { mediaType: "image/png", url: "https://a.test/a.png" };
  const file: Message = { id: "f", role: "activity", activityType: "file", content: activity };
  await streamText({ model: tabModel("seeing"), messages: promptOf(asks("draw", file, "again")) }).consumeStream();
  expect(tab.calls).toMatchObject([
    { prompt: [{}, { content: [{ type: "text", text: expect.stringContaining("image/png") }] }, {}] },
  ]);
});
