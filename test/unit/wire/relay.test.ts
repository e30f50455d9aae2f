import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { BODY_FRAME_BYTES, type RelayHandler } from "../../../src/wire/relay.js";
import { relayResponse } from "../../../src/wire/relay-response.js";
import { WINDOW_FRAMES, WINDOW_SIZE } from "../../../src/wire/window.js";
import { times } from "../property.js";
import { counting, HOST, mute, relayed, requestOf, settled } from "./relay-kit.js";

const encoder = new TextEncoder();
const never = (): Promise<never> => new Promise(() => undefined);

describe("a request", () => {
  test("reaches the handler as it was made, with the base path", async () => {
    const headers = { "content-type": "application/json", "x-own": "a, b" };
    const request = requestOf("/api/run?x=1", { method: "POST", body: `{"a":"ü"}`, headers });
    const seen: unknown[] = [];
    const handle: RelayHandler = async (it, { basePath }) => {
      seen.push(it.method, it.url, it.headers.get("x-own"), it.headers.get("content-type"), await it.json(), basePath);
      return new Response("ok");
    };
    await (
      await relayed(handle, request, "/api")
    ).response;
    expect(seen).toEqual(["POST", "http://site.test/api/run?x=1", "a, b", "application/json", { a: "ü" }, "/api"]);
  });

  test("without a body has none", async () => {
    const bodies: unknown[] = [];
    const handle: RelayHandler = async (it) => {
      bodies.push(await it.text());
      return new Response(null);
    };
    await (
      await relayed(handle, requestOf("/", { method: "POST" }))
    ).response;
    await (
      await relayed(handle)
    ).response;
    expect(bodies).toEqual(["", ""]);
  });
});

describe("an answer", () => {
  test("has the handler's status, headers and text, and tells who gives it", async () => {
    const init = { status: 409, statusText: "Busy", headers: { "content-type": "text/plain", "x-own": "1" } };
    const { response, heads, ends } = await relayed(async () => new Response("thread busy", init));
    const answer = await response;
    expect([answer.status, answer.statusText, answer.headers.get("x-own")]).toEqual([409, "Busy", "1"]);
    expect(await answer.text()).toBe("thread busy");
    expect(heads).toEqual([HOST]);
    expect(ends()).toBe(1);
  });

  test.each([204, 205, 304])("of status %i has no body", async (status) => {
    const { response, answered, ends } = await relayed(async () => new Response(null, { status }));
    const answer = await response;
    expect(answer.status).toBe(status);
    expect(answer.body).toBe(null);
    await answered;
    await vi.waitFor(() => expect(ends()).toBe(1));
  });

  test("to HEAD has no body, whatever the handler makes of it", async () => {
    const body = counting(() => new Uint8Array(10));
    const { response, answered } = await relayed(
      async () => new Response(body.stream),
      requestOf("/", { method: "HEAD" }),
    );
    expect((await response).body).toBe(null);
    await answered;
    expect(body.made()).toBe(0);
    expect(body.cancelled()).toBe(true);
  });

  test("arrives piece by piece, while the handler goes on", async () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const { response, answered } = await relayed(async () => new Response(readable));
    const reader = (await response).body!.getReader();
    for (const piece of ["one", "two", "three"]) {
      const written = writer.write(encoder.encode(piece));
      expect(new TextDecoder().decode((await reader.read()).value)).toBe(piece);
      await written;
    }
    await writer.close();
    expect((await reader.read()).done).toBe(true);
    await answered;
  });

  test("is the same however the handler cuts it", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 60 }),
        fc.integer({ min: 1, max: 700 }),
        async (chunks, factor) => {
          // Some are larger than a frame.
          const sent = chunks.map(
            (chunk) => new Uint8Array(Buffer.concat(Array.from({ length: factor }, () => chunk))),
          );
          const { stream } = counting((n) => sent[n]);
          const { response, answered } = await relayed(async () => new Response(stream));
          const got = Buffer.from(await (await response).arrayBuffer());
          expect(got.equals(Buffer.concat(sent))).toBe(true);
          await answered;
        },
      ),
      times(40),
    );
  });

  test("of 20 MB in one piece comes in frames of at most 64 KB, and the handler keeps its bytes", async () => {
    const bytes = new Uint8Array(20 * 1_024 * 1_024).map((_, n) => n % 251);
    const sent = bytes.slice();
    const { stream } = counting((n) => (n === 0 ? sent : undefined));
    const { response } = await relayed(async () => new Response(stream));
    let at = 0;
    for await (const piece of (await response).body!) {
      expect(piece.byteLength).toBeLessThanOrEqual(BODY_FRAME_BYTES);
      expect(Buffer.compare(piece, bytes.subarray(at, at + piece.byteLength))).toBe(0);
      at += piece.byteLength;
    }
    expect(at).toBe(bytes.byteLength);
    expect(sent.byteLength).toBe(bytes.byteLength);
  });
});

describe("a reader that takes nothing", () => {
  test("costs a window of frames; nothing is read of the handler's body beyond it (L14)", async () => {
    const body = counting(() => new Uint8Array(1));
    const { frames, bodies } = await mute(async () => new Response(body.stream));
    await vi.waitFor(() => expect(bodies()).toBe(WINDOW_FRAMES));
    await settled();
    expect(frames[0]?.type).toBe("head");
    expect(bodies()).toBe(WINDOW_FRAMES);
    expect(body.made()).toBe(WINDOW_FRAMES);
  });

  test("costs a window of bytes (L14)", async () => {
    const body = counting(() => new Uint8Array(10 * BODY_FRAME_BYTES));
    const { bodies } = await mute(async () => new Response(body.stream));
    await vi.waitFor(() => expect(bodies()).toBe(WINDOW_SIZE / BODY_FRAME_BYTES));
    await settled();
    expect(bodies()).toBe(WINDOW_SIZE / BODY_FRAME_BYTES);
    expect(body.made()).toBe(1);
  });

  test("but has the Response costs the same (L14)", async () => {
    const body = counting(() => new Uint8Array(BODY_FRAME_BYTES));
    const { response } = await relayed(async () => new Response(body.stream));
    const { body: unread } = await response;
    await vi.waitFor(() => expect(body.made()).toBe(WINDOW_SIZE / BODY_FRAME_BYTES));
    await settled();
    expect(body.made()).toBe(WINDOW_SIZE / BODY_FRAME_BYTES);
    const reader = unread!.getReader();
    for (let n = 0; n < 100; n++) await reader.read();
    await settled();
    expect(body.made()).toBeLessThanOrEqual(100 + WINDOW_SIZE / BODY_FRAME_BYTES);
    await reader.cancel();
    await vi.waitFor(() => expect(body.cancelled()).toBe(true));
  });

  test.each([-1, 0, 0.5, Number.NaN, "many", null, undefined, {}])(
    "gets nothing more for saying that it has consumed %s (L14)",
    async (frames) => {
      const body = counting(() => new Uint8Array(1));
      const { say, bodies } = await mute(async () => new Response(body.stream));
      await vi.waitFor(() => expect(bodies()).toBe(WINDOW_FRAMES));
      for (let n = 0; n < 100; n++) say({ type: "credit", frames });
      for (const wrong of [null, 1, "abort", [], { type: "credit" }, { type: "other" }]) say(wrong);
      await settled();
      expect(bodies()).toBe(WINDOW_FRAMES);
    },
  );
});

describe("an asker that leaves", () => {
  /** A handler that notes the end of its request. */
  function noting() {
    const body = counting(() => new Uint8Array(BODY_FRAME_BYTES));
    let signal: AbortSignal | undefined;
    const handle: RelayHandler = async (request) => {
      ({ signal } = request);
      return new Response(body.stream);
    };
    return { handle, body, aborted: () => signal?.aborted };
  }

  test("before the head aborts the request, and is told its own reason", async () => {
    let signal: AbortSignal | undefined;
    const { response, asking, answered, ends } = await relayed((request) => {
      ({ signal } = request);
      return never();
    });
    await vi.waitFor(() => expect(signal).toBeDefined());
    asking.abort();
    await expect(response).rejects.toMatchObject({ name: "AbortError" });
    await answered;
    expect(signal?.aborted).toBe(true);
    expect(ends()).toBe(1);
  });

  test("in the middle of the body aborts the request; body and handler's stream end", async () => {
    const { handle, body, aborted } = noting();
    const { response, asking, answered } = await relayed(handle);
    const reader = (await response).body!.getReader();
    await reader.read();
    expect(aborted()).toBe(false);
    asking.abort();
    await expect(reader.read()).rejects.toMatchObject({ name: "AbortError" });
    await answered;
    expect([aborted(), body.cancelled()]).toEqual([true, true]);
  });

  test("by cancelling the body does the same", async () => {
    const { handle, body, aborted } = noting();
    const { response, answered, ends } = await relayed(handle);
    await (await response).body!.cancel();
    await answered;
    expect([aborted(), body.cancelled(), ends()]).toEqual([true, true, 1]);
  });

  test("while the handler's body has nothing to give ends that read", async () => {
    let cancelled = false;
    const silent = new ReadableStream({ cancel: () => void (cancelled = true) });
    const { response, asking, answered } = await relayed(async () => new Response(silent));
    await response;
    asking.abort();
    await answered;
    expect(cancelled).toBe(true);
  });

  test("leaves a late answer to be let go of", async () => {
    const body = counting(() => new Uint8Array(1));
    let answer!: (response: Response) => void;
    const { response, asking, answered } = await relayed(() => new Promise((resolve) => (answer = resolve)));
    await vi.waitFor(() => expect(answer).toBeDefined());
    asking.abort();
    await expect(response).rejects.toThrow();
    await answered;
    answer(new Response(body.stream));
    await vi.waitFor(() => expect(body.cancelled()).toBe(true));
  });

  test("does not come of an answer that was read whole: the request is not aborted by its end", async () => {
    let signal: AbortSignal | undefined;
    const { response, answered } = await relayed(async (request) => {
      ({ signal } = request);
      return new Response("all");
    });
    expect(await (await response).text()).toBe("all");
    await answered;
    expect(signal?.aborted).toBe(false);
  });

  test("before it asks asks nobody", async () => {
    const { port1, port2 } = new MessageChannel();
    onTestFinished(() => port2.close());
    await expect(relayResponse(port1, AbortSignal.abort())).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("a host", () => {
  test("that ends before the head is lost", async () => {
    const { response, hostEnds, answered } = await relayed(never);
    hostEnds.abort();
    await expect(response).rejects.toMatchObject({ code: "host-lost" });
    await answered;
  });

  test("that ends in the middle is lost to the reader", async () => {
    const open = new ReadableStream<Uint8Array>({ start: (it) => it.enqueue(encoder.encode("one")) });
    const { response, hostEnds } = await relayed(async () => new Response(open));
    const reader = (await response).body!.getReader();
    await reader.read();
    hostEnds.abort();
    await expect(reader.read()).rejects.toMatchObject({ code: "host-lost" });
  });

  test("whose death is only told by the signal errors the body with its reason", async () => {
    const open = new ReadableStream<Uint8Array>({ start: (it) => it.enqueue(encoder.encode("one")) });
    const { response, asking } = await relayed(async () => new Response(open));
    const reader = (await response).body!.getReader();
    await reader.read();
    asking.abort(new RunnerError("host-lost"));
    await expect(reader.read()).rejects.toMatchObject({ code: "host-lost" });
  });

  test("that has sent everything may die: what has come is read", async () => {
    const { response, answered, asking, hostEnds, ends } = await relayed(async () => new Response("x".repeat(100_000)));
    const answer = await response;
    await answered;
    await vi.waitFor(() => expect(ends()).toBe(1));
    hostEnds.abort();
    asking.abort(new RunnerError("host-lost"));
    expect((await answer.text()).length).toBe(100_000);
  });

  test.each<[string, RelayHandler]>([
    ["rejects", () => Promise.reject(new RangeError("no"))],
    [
      "throws",
      () => {
        throw new RangeError("no");
      },
    ],
    ["gives no Response", async () => undefined as never],
    ["gives a network error", async () => Response.error()],
  ])("whose handler %s says so", async (_, handle) => {
    const { response, answered } = await relayed(handle);
    await expect(response).rejects.toMatchObject({ code: "host-failed" });
    await answered;
  });

  test.each<[string, (it: ReadableStreamDefaultController<unknown>) => void]>([
    ["fails", (it) => it.error(new RangeError("no"))],
    ["has text in it", (it) => it.enqueue("text")],
  ])("whose handler's body %s errors the reader's", async (_, begin) => {
    let controller!: ReadableStreamDefaultController<unknown>;
    const stream = new ReadableStream({ start: (it) => void (controller = it) });
    const { response, answered } = await relayed(async () => new Response(stream as ReadableStream<Uint8Array>));
    const answer = await response;
    begin(controller);
    await expect(answer.text()).rejects.toMatchObject({ code: "host-failed" });
    await answered;
  });

  const head = { type: "head", status: 200, statusText: "", headers: [], hasBody: true, ...HOST };
  test.each<[string, readonly unknown[]]>([
    ["nothing known", [{ type: "other" }]],
    ["null", [null]],
    ["a body without a head", [{ type: "body", bytes: new Uint8Array(1) }]],
    ["an end without a head", [{ type: "end" }]],
    ["a status that is none", [{ ...head, status: 99 }]],
    ["a status of text", [{ ...head, status: "200" }]],
    ["headers that are none", [{ ...head, headers: [["a b", "c"]] }]],
    ["headers that are no pairs", [{ ...head, headers: ["ab"] }]],
    ["no host's id", [{ ...head, hostId: 1 }]],
    ["an error without a code", [{ type: "error", error: { message: "m" } }]],
    ["an error that is null", [{ type: "error", error: null }]],
  ])("that says %s has no valid answer", async (_, frames) => {
    const { port1, port2 } = new MessageChannel();
    const response = relayResponse(port1, new AbortController().signal);
    for (const frame of frames) port2.postMessage(frame);
    onTestFinished(() => port2.close());
    await expect(response).rejects.toMatchObject({ code: "host-failed" });
  });

  test.each<[string, unknown]>([
    ["a second head", head],
    ["bytes that are none", { type: "body", bytes: [1] }],
    ["nothing known", { type: "other" }],
  ])("that says %s in the middle errors the body", async (_, frame) => {
    const { port1, port2 } = new MessageChannel();
    const response = relayResponse(port1, new AbortController().signal);
    port2.postMessage(head);
    port2.postMessage(frame);
    onTestFinished(() => port2.close());
    await expect((await response).text()).rejects.toMatchObject({ code: "host-failed" });
  });
});
