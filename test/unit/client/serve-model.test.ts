import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { simulateReadableStream } from "ai/test";
import { Subject } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { oneAtATime } from "../../../src/ai/index.js";
import type { PageModel } from "../../../src/client/page-model.js";
import { serveModel } from "../../../src/client/serve-model.js";
import { inTurns } from "../../../src/platform/in-turns.js";
import type { ModelFrame, OfferOrder } from "../../../src/wire/model-frames.js";
import { DrivenClock } from "../lock/driven-clock.js";
import { CALL, forEver, textOf, whole } from "../runtime/models/kit.js";

/** A model that answers each call with its number, once the test lets it. */
function gatedModel() {
  const calls: { readonly signal: AbortSignal | undefined; readonly letOn: () => void }[] = [];
  const doStream = async ({ abortSignal: signal }: LanguageModelV4CallOptions) => {
    const text = String(calls.length);
    await new Promise<void>((letOn) => calls.push({ signal, letOn }));
    return { stream: simulateReadableStream({ chunks: [...whole(text)] }) };
  };
  const model: PageModel = { specificationVersion: "v4", doStream };
  return { model, calls };
}

/** Offers a model to a host, whose requests the test makes. */
function served(model: PageModel, concurrent: boolean) {
  const orders$ = new Subject<OfferOrder>();
  const serving = serveModel(
    model,
    concurrent,
    (_visible, begun) => {
      begun(() => undefined);
      return orders$;
    },
    () => undefined,
  );
  onTestFinished(() => serving.unsubscribe());
  return () => {
    const { port1: port, port2 } = new MessageChannel();
    const frames: ModelFrame[] = [];
    port.onmessage = ({ data }: MessageEvent<ModelFrame>) => void frames.push(data);
    const over = new Promise((resolve) => port.addEventListener("close", resolve, { once: true }));
    orders$.next({ type: "request", call: CALL, port: port2 });
    const text = async (): Promise<string> => {
      await over;
      return textOf(frames.flatMap((frame) => (frame.type === "part" ? [frame.part] : [])));
    };
    return { text, over, stop: () => port.postMessage({ type: "detach" }) };
  };
}

test("calls are made one after the other; one that is stopped while it waits reaches neither the model nor the others", async () => {
  const { model, calls } = gatedModel();
  const ask = served(model, false);
  const [first, second, third] = [ask(), ask(), ask()];
  await vi.waitFor(() => expect(calls).toHaveLength(1));
  second.stop();
  await second.over;
  expect(calls).toMatchObject([{ signal: { aborted: false } }]);
  calls[0]!.letOn();
  expect(await first.text()).toBe("0");
  await vi.waitFor(() => expect(calls).toHaveLength(2));
  calls[1]!.letOn();
  expect(await third.text()).toBe("1");
});

test("a model that takes several calls is asked at once, where its offer says so", async () => {
  const { model, calls } = gatedModel();
  const ask = served(model, true);
  const asked = [ask(), ask()];
  await vi.waitFor(() => expect(calls).toHaveLength(2));
  for (const { letOn } of calls) letOn();
  expect(await Promise.all(asked.map(({ text }) => text()))).toEqual(["0", "1"]);
});

test("a model that does not end when it is stopped keeps the next call waiting for a while only (L13)", async () => {
  const clock = new DrivenClock();
  const calls: unknown[] = [];
  const stuck = {
    doStream: async (options: { readonly abortSignal?: AbortSignal }) => {
      calls.push(options);
      await forEver(new AbortController().signal);
      return { stream: new ReadableStream() };
    },
  };
  const ask = inTurns(stuck, clock);
  const stopped = new AbortController();
  void ask({ abortSignal: stopped.signal });
  void ask({});
  await vi.waitFor(() => expect(calls).toHaveLength(1));
  stopped.abort();
  expect(clock.waiting).toBe(1);
  clock.pass(10_000);
  await vi.waitFor(() => expect(calls).toHaveLength(2));
});

test("a model of the worker is asked one call after the other, however often it is wrapped", async () => {
  const { model, calls } = gatedModel();
  const wrapped = { ...model, provider: "p", modelId: "m", supportedUrls: {} } as LanguageModelV4;
  const [one, other] = [oneAtATime(wrapped), oneAtATime(wrapped)];
  const first = one.doGenerate({ prompt: [] });
  const second = other.doGenerate({ prompt: [] });
  await vi.waitFor(() => expect(calls).toHaveLength(1));
  calls[0]!.letOn();
  expect(await first).toMatchObject({ content: [{ text: "0" }] });
  await vi.waitFor(() => expect(calls).toHaveLength(2));
  calls[1]!.letOn();
  expect(await second).toMatchObject({ content: [{ text: "1" }] });
  const older = { ...wrapped, specificationVersion: "v3" } as unknown as LanguageModelV4;
  expect(() => oneAtATime(older)).toThrow(expect.objectContaining({ code: "invalid-input" }));
});
