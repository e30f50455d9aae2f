import { EventType, type BaseEvent } from "@ag-ui/client";
import { createNodeHandler, type NodeHandlerOptions } from "ag-ui-local-runtime/node";
import { createRuntimeHandler, type AgentRuntimeOptions } from "ag-ui-local-runtime/runtime";
import { Observable } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { streamOfEvents } from "../../../src/runtime/http/streams.js";
import { agentOf, inputOf, silent } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { say, serve, until } from "./node-kit.js";

const MB = 1024 * 1024;
/** Enough of them that what each costs counts. */
const READERS = 30;

/** A thread of 4 MB, in texts of 64 KB: more than a connection that nobody reads takes. */
const large = agentOf(async function* (input) {
  for (let n = 0; n < 64; n++) {
    const messageId = `${input.runId}-${n}`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "x".repeat(MB / 16) };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
  }
});

async function serving(options: Partial<AgentRuntimeOptions> = {}, node: NodeHandlerOptions = {}) {
  const runtime = runtimeWith({ agents: { large, silent: agentOf(silent) }, ...options });
  const served = await serve(createNodeHandler(createRuntimeHandler({ runtime }), node));
  const post = (path: string, body: object): string => {
    const text = JSON.stringify(body);
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
    return `${head}Content-Length: ${text.length}\r\n\r\n${text}`;
  };
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(inputOf("t", "r"));
  await (await fetch(`${served.url}/agent/large/run`, { method: "POST", headers, body })).text();
  /** Somebody who asks and takes nothing of the answer. */
  const stall = (request: string): void => {
    const { socket } = say(served.port, "");
    socket.pause();
    socket.write(request);
  };
  return { ...served, post, stall };
}

const connecting = inputOf("t", "c");

describe.each<[string, (post: (path: string, body: object) => string) => string]>([
  ["connect", (post) => post("/agent/large/connect", { ...connecting, protocolVersion: "1.0" })],
  ["connect, before AG-UI 1.0", (post) => post("/agent/large/connect", connecting)],
  ["messages", () => "GET /threads/t/messages HTTP/1.1\r\nHost: localhost\r\n\r\n"],
  ["events", () => "GET /threads/t/events HTTP/1.1\r\nHost: localhost\r\n\r\n"],
])("many who do not read a thread of 4 MB (%s)", (_, request) => {
  test("have this process keep a few pieces of it for each, not all of it (L14)", async () => {
    const { answers, post, stall } = await serving();
    const before = answers.length;
    for (let n = 0; n < READERS; n++) stall(request(post));
    const theirs = () => answers.slice(before);
    await until(
      () => theirs().length === READERS && theirs().every((res) => res.writableFinished || res.writableNeedDrain),
    );
    const kept = theirs().reduce((sum, res) => sum + res.writableLength, 0);
    expect(kept).toBeLessThan(READERS * 0.5 * MB);
  });
});

describe.each(["messages", "events"])("an after-middleware (%s of a thread of 4 MB)", (what) => {
  test("has no copy kept for it, and can read all the same (L14)", async () => {
    const shown = new Map<string, Response>();
    const { url } = await serving({ afterRequestMiddleware: ({ path, response }) => void shown.set(path, response) });
    const copied = vi.spyOn(ReadableStream.prototype, "tee");
    onTestFinished(() => copied.mockRestore());
    const path = `/threads/t/${what}`;
    const text = await (await fetch(`${url}${path}`)).text();
    expect(text.length).toBeGreaterThan(4 * MB);
    expect(copied).not.toHaveBeenCalled();
    expect((await shown.get(path)!.text()) === text).toBe(true);
  });
});

describe("a reader that takes nothing", () => {
  test("is ended, one that waits for events is not (L14)", async () => {
    const after = vi.fn();
    const { answers, post, stall, url } = await serving(
      { sseKeepAliveIntervalSeconds: 0, afterRequestMiddleware: ({ path }) => after(path) },
      { readerTimeoutSeconds: 0.2 },
    );
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify(inputOf("silent", "r"));
    const waiting = await fetch(`${url}/agent/silent/run`, { method: "POST", headers, body });
    const waitingAnswer = answers.at(-1)!;
    await waiting.body!.getReader().read();
    stall(post("/agent/large/connect", connecting));
    await until(() => answers.length === 3);
    const stalled = answers.at(-1)!;
    await until(() => stalled.writableNeedDrain);
    await until(() => stalled.destroyed);
    expect(waitingAnswer.destroyed).toBe(false);
    // Its reading is over too.
    await vi.waitFor(() => expect(after).toHaveBeenCalledWith("/agent/large/connect"));
  });

  test.each([-1, NaN, 1e12])("readerTimeoutSeconds is no %d", (readerTimeoutSeconds) => {
    const wrong = expect.objectContaining({ code: "invalid-input" });
    expect(() => createNodeHandler(async () => new Response(), { readerTimeoutSeconds })).toThrow(wrong);
  });
});

describe("a runner of another make, which cannot be asked to wait", () => {
  /** Emits so many MB at once, then goes on for ever, as long as somebody listens. */
  function flood(megabytes: number) {
    const seen = { listening: false };
    const delta = "x".repeat(MB);
    const events$ = new Observable<BaseEvent>((subscriber) => {
      seen.listening = true;
      for (let n = 0; n < megabytes; n++) {
        subscriber.next({ type: EventType.CUSTOM, name: `${n}`, value: delta } as BaseEvent);
      }
      return () => void (seen.listening = false);
    });
    return { events$, seen };
  }

  test("has a whole thread kept for a reader", async () => {
    const { events$, seen } = flood(16);
    const reading = new AbortController();
    const source = streamOfEvents(events$, undefined, reading.signal).source[Symbol.asyncIterator]();
    expect((await source.next()).value).toHaveLength(16);
    await source.return?.();
    expect(seen.listening).toBe(false);
  });

  test("has a flood kept for nobody: a reader that lags behind too far is ended (L14)", async () => {
    const { events$, seen } = flood(2_000);
    const source = streamOfEvents(events$, undefined, new AbortController().signal).source[Symbol.asyncIterator]();
    await expect(source.next()).rejects.toMatchObject({ code: "timeout" });
    expect(seen.listening).toBe(false);
  });

  test("is let go of by a reader that leaves", async () => {
    const { events$, seen } = flood(1);
    const leaving = new AbortController();
    const stream = streamOfEvents(events$, undefined, leaving.signal);
    const source = stream.source[Symbol.asyncIterator]();
    await source.next();
    leaving.abort();
    await stream.over;
    await vi.waitFor(async () => expect((await source.next()).done).toBe(true));
    expect(seen.listening).toBe(false);
  });
});
