import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { streamText } from "ai";
import { firstValueFrom } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { promptApiModel, type PromptApiModel, type PromptApiStatus } from "../../../src/ai/index.js";
import { ScriptedPromptApi } from "./scripted-prompt-api.js";

const user = (text: string): LanguageModelV4Prompt[number] => ({ role: "user", content: [{ type: "text", text }] });
const assistant = (text: string): LanguageModelV4Prompt[number] => ({
  role: "assistant",
  content: [{ type: "text", text }],
});

const seenOf = (model: PromptApiModel): PromptApiStatus[] => {
  const seen: PromptApiStatus[] = [];
  model.status$.subscribe((status) => seen.push(status));
  return seen;
};

async function parts(
  model: PromptApiModel,
  prompt: LanguageModelV4Prompt,
  options: Partial<LanguageModelV4CallOptions> = {},
) {
  const { stream } = await model.doStream({ prompt, ...options });
  const all: LanguageModelV4StreamPart[] = [];
  for await (const part of stream) all.push(part);
  return all;
}

const text = async (...given: Parameters<typeof parts>): Promise<string> =>
  (await parts(...given)).map((part) => (part.type === "text-delta" ? part.delta : "")).join("");

test("a page without the API has no model, and says so", async () => {
  const model = promptApiModel();
  expect(await firstValueFrom(model.status$)).toEqual({
    is: "unavailable",
    reason: "This browser has no LanguageModel",
  });
  await expect(model.download()).rejects.toMatchObject({ code: "provider-unavailable" });
  await expect(parts(model, [user("a")])).rejects.toMatchObject({ code: "provider-unavailable" });
});

test("an API that fails is unavailable", async () => {
  const api = new ScriptedPromptApi("available");
  api.availability = () => Promise.reject(new DOMException("not in this frame", "NotAllowedError"));
  expect(await firstValueFrom(promptApiModel({ api }).status$)).toEqual({
    is: "unavailable",
    reason: "not in this frame",
  });
});

test("nothing is downloaded unasked: not by a look, not by a call; download() tells its progress", async () => {
  const api = new ScriptedPromptApi("downloadable");
  const model = promptApiModel({ api });
  const seen = seenOf(model);
  await vi.waitFor(() => expect(seen).toEqual([{ is: "downloadable" }]));
  await expect(parts(model, [user("a")])).rejects.toThrow(/downloadable: it must be "ready"; download\(\)/);
  expect(api.creates).toBe(0);
  const downloading = model.download();
  // In the same task as the click.
  expect(api.creates).toBe(1);
  expect(model.download()).toBe(downloading);
  expect(seen.at(-1)).toEqual({ is: "downloading", progress: 0 });
  api.progress(0.5);
  await model.check();
  api.done();
  await downloading;
  expect(seen.slice(1)).toEqual([
    { is: "downloading", progress: 0 },
    { is: "downloading", progress: 0.5 },
    { is: "ready" },
  ]);
  expect(api.creates).toBe(1);
  expect(api.alive).toBe(0);
  expect(await text(model, [user("a")])).toBe("(user: a)");
});

test("a download that fails can be tried again", async () => {
  const api = new ScriptedPromptApi("downloadable");
  const model = promptApiModel({ api });
  const seen = seenOf(model);
  const failing = model.download();
  api.done(new Error("no room"));
  await expect(failing).rejects.toThrow("no room");
  expect(seen.at(-1)).toEqual({ is: "downloadable", reason: "no room" });
  const downloading = model.download();
  api.done();
  await downloading;
  expect(seen.at(-1)).toEqual({ is: "ready" });
});

test("a download that fails here, and goes on in another page, is looked after", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const api = new ScriptedPromptApi("downloading");
  const model = promptApiModel({ api });
  const seen = seenOf(model);
  const failing = model.download();
  api.done(new Error("this page was refused"));
  api.is = "downloading";
  await expect(failing).rejects.toThrow("refused");
  expect(seen.at(-1)).toEqual({ is: "downloading" });
  api.is = "available";
  await vi.advanceTimersByTimeAsync(3_000);
  expect(seen.at(-1)).toEqual({ is: "ready" });
});

test("a prompt becomes one system message, the history, and what is asked", async () => {
  const api = new ScriptedPromptApi("available");
  const prompt: LanguageModelV4Prompt = [
    { role: "system", content: "Be brief." },
    user("Hello"),
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "Hi." },
        { type: "tool-call", toolCallId: "c", toolName: "time", input: {} },
      ],
    },
    {
      role: "tool",
      content: [{ type: "tool-result", toolCallId: "c", toolName: "time", output: { type: "text", value: "noon" } }],
    },
    { role: "system", content: "In English." },
    {
      role: "user",
      content: [
        { type: "text", text: "See" },
        { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
      ],
    },
  ];
  await parts(promptApiModel({ api, expectedInputs: [{ type: "image" }] }), prompt);
  expect(api.prompts).toEqual([
    'system: Be brief.\n\nIn English. | user: Hello | assistant: Hi. [Called the tool time with {}] | user: [The tool time gave {"type":"text","value":"noon"}] >> user: See <image 3>',
  ]);
});

test("an assistant message at the end is gone on with", async () => {
  const api = new ScriptedPromptApi("available");
  await parts(promptApiModel({ api }), [user("Count"), assistant("One,")]);
  expect(api.prompts).toEqual([" >> user: Count | assistant…: One,"]);
});

test("a conversation that goes on is not read again, and no session is left behind", async () => {
  const api = new ScriptedPromptApi("available");
  const model = promptApiModel({ api });
  expect(await text(model, [user("a")])).toBe("(user: a)");
  expect(await text(model, [user("a"), assistant("(user: a)"), user("b")])).toBe("(user: b)");
  expect(api).toMatchObject({ creates: 1, clones: 1, alive: 1 });
  // Another thread.
  expect(await text(model, [user("c")])).toBe("(user: c)");
  expect(api).toMatchObject({ creates: 2, clones: 1, alive: 1 });
});

test("a call that is stopped ends, and its session with it", async () => {
  const api = new ScriptedPromptApi("available");
  api.says = async function* (_prompt, signal) {
    yield "a";
    await new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));
  };
  const model = promptApiModel({ api });
  const ended = new AbortController();
  const { stream } = await model.doStream({ prompt: [user("a")], abortSignal: ended.signal });
  const reader = stream.getReader();
  const came: string[] = [];
  while (came.at(-1) !== "text-delta") came.push((await reader.read()).value!.type);
  const rest = reader.read();
  ended.abort();
  await expect(rest).rejects.toThrow(/abort/i);
  expect(api.alive).toBe(0);
});

test("an answer that fails and is then left leaves no session behind", async () => {
  const api = new ScriptedPromptApi("available");
  const ended = new AbortController();
  api.says = () => ["a", "b"];
  const { stream } = await promptApiModel({ api }).doStream({ prompt: [user("a")], abortSignal: ended.signal });
  ended.abort(new Error("enough"));
  await expect(stream.cancel()).rejects.toThrow("enough");
  expect(api.alive).toBe(0);
});

test("a session is kept until the model is not there any more, or is closed", async () => {
  const api = new ScriptedPromptApi("available");
  const model = promptApiModel({ api });
  await text(model, [user("a")]);
  expect(api.alive).toBe(1);
  api.is = "unavailable";
  await model.check();
  expect(api.alive).toBe(0);
  api.is = "available";
  await text(model, [user("b")]);
  expect(api.alive).toBe(1);
  model.close();
  expect(api.alive).toBe(0);
  await text(model, [user("c")]);
  expect(api.alive).toBe(0);
});

test("a call that the browser refuses leaves no session behind", async () => {
  const api = new ScriptedPromptApi("available");
  api.says = () => {
    throw new TypeError("responseConstraint is not supported");
  };
  await expect(parts(promptApiModel({ api }), [user("a")])).rejects.toThrow(/not supported/);
  expect(api.alive).toBe(0);
});

test("a file that it cannot read does not fail the thread's runs: the model is told that it is missing", async () => {
  const api = new ScriptedPromptApi("available");
  const file = (mediaType: string, data: object) => ({ type: "file", mediaType, data }) as LanguageModelV4FilePart;
  const content = [
    file("application/pdf", { type: "data", data: "AAAA" }),
    file("image/png", { type: "reference", reference: {} }),
    // In the alphabet for URLs.
    file("image/jpeg", { type: "data", data: "_-8A" }),
    file("audio/wav", { type: "data", data: "AAAA" }),
  ];
  const note = (type: string) => `[A part of this message, of type ${type}, cannot be read and was left out]`;
  const unread = `${note("application/pdf")} ${note("image/png")}`;
  await parts(promptApiModel({ api }), [{ role: "user", content }]);
  await parts(promptApiModel({ api, expectedInputs: [{ type: "image" }] }), [{ role: "user", content }]);
  expect(api.prompts).toEqual([
    ` >> user: ${unread} ${note("image/jpeg")} ${note("audio/wav")}`,
    ` >> user: ${unread} <image 3> ${note("audio/wav")}`,
  ]);
});

test("what the model does not have is a warning; a schema constrains it", async () => {
  const api = new ScriptedPromptApi("available");
  const schema = { type: "object" } as const;
  const [first] = await parts(promptApiModel({ api }), [user("a")], {
    temperature: 0.5,
    tools: [],
    stopSequences: ["x"],
    responseFormat: { type: "json", schema },
  });
  expect(first).toEqual({
    type: "stream-start",
    warnings: ["temperature", "stopSequences"].map((feature) => ({ type: "unsupported", feature })),
  });
  expect(api.constraints).toEqual([schema]);
});

test("the AI SDK takes it", async () => {
  const api = new ScriptedPromptApi("available");
  const model = promptApiModel({ api });
  expect(await streamText({ model, prompt: "a" }).text).toBe("(user: a)");
  const { content, finishReason } = await model.doGenerate({ prompt: [user("b")] });
  expect({ content, finishReason }).toEqual({
    content: [{ type: "text", text: "(user: b)" }],
    finishReason: { unified: "stop", raw: undefined },
  });
});

test("an option that there is not is refused", () => {
  expect(() => promptApiModel({ temprature: 1 } as object)).toThrow(/has no option temprature/);
});
