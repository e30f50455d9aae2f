import type { IncomingMessage } from "node:http";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createNodeHandler as createStrictHandler, type NodeHandlerOptions } from "../../../src/runtime/node.js";
import { readText } from "../../../src/runtime/http/body.js";
import { exchange, say, serve, until } from "./node-kit.js";

const INTERNAL = { error: "internal_error" };
/** One that is asked under any name: which names are answered is for `hosts.test.ts`. */
const createNodeHandler = (handler: Parameters<typeof createStrictHandler>[0], options: NodeHandlerOptions = {}) =>
  createStrictHandler(handler, { allowedHosts: ["*"], ...options });
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A body whose pieces the test gives out, and whether it was cancelled. */
function stream(): {
  readonly body: ReadableStream<Uint8Array>;
  readonly send: (text: string) => void;
  readonly fail: () => void;
  readonly cancelled: () => boolean;
} {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (given) => void (controller = given),
    cancel: () => void (cancelled = true),
  });
  return {
    body,
    send: (text) => controller.enqueue(encode(text)),
    fail: () => controller.error(new Error("secret")),
    cancelled: () => cancelled,
  };
}

/** What a request was seen as. */
const mirror = async (request: Request): Promise<Response> =>
  Response.json({ method: request.method, url: request.url, body: await request.text() });

beforeEach(() => {
  // Nothing is printed, and nothing is left to the process.
  const stray: unknown[] = [];
  const note = (error: unknown): unknown => stray.push(error);
  const spies = (["log", "info", "warn", "error"] as const).map((name) => vi.spyOn(console, name));
  process.on("unhandledRejection", note).on("uncaughtException", note);
  onTestFinished(() => {
    process.off("unhandledRejection", note).off("uncaughtException", note);
    for (const spy of spies) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
    expect(stray).toEqual([]);
  });
});

describe("a request", () => {
  test("comes with its method, URL, headers and body, and is answered with status, headers and body", async () => {
    const { url } = await serve(
      createNodeHandler(async (request) => {
        const headers = new Headers({ "X-Seen": request.headers.get("X-Sent")! });
        headers.append("Set-Cookie", "a=1");
        headers.append("Set-Cookie", "b=2");
        const seen = [request.method, request.url, await request.text()];
        return new Response(seen.join(" "), { status: 201, statusText: "Made", headers });
      }),
    );
    const answer = await fetch(`${url}/a%2Fb?c=d`, { method: "PATCH", headers: { "X-Sent": "yes" }, body: "hello" });
    expect([answer.status, answer.statusText, answer.headers.get("X-Seen")]).toEqual([201, "Made", "yes"]);
    expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(await answer.text()).toBe(`PATCH ${url}/a%2Fb?c=d hello`);
  });

  test("has the URL that it had before a framework took the beginning away", async () => {
    const handler = createNodeHandler(mirror);
    const { url } = await serve((req, res) => {
      Object.assign(req, { originalUrl: req.url });
      req.url = "/info";
      handler(req, res);
      expect(req.url).toBe("/info");
    });
    expect(await (await fetch(`${url}/api/info?x=1`)).json()).toHaveProperty("url", `${url}/api/info?x=1`);
  });

  test.each<[string, string, Parameters<typeof createNodeHandler>[1]]>([
    ["http://localhost/x", "GET /x HTTP/1.0\r\n\r\n", {}],
    ["http://a.example:81/x", "GET /x HTTP/1.0\r\nHost: a.example:81\r\n\r\n", {}],
    ["http://[::1]:81/x", "GET /x HTTP/1.0\r\nHost: [::1]:81\r\n\r\n", {}],
    ["http://a.example/x?y", "GET http://b.example/x?y HTTP/1.0\r\nHost: a.example\r\n\r\n", {}],
    ["http://a.example//x", "GET //x HTTP/1.0\r\nHost: a.example\r\n\r\n", {}],
    ["https://b.example/x", "GET /x HTTP/1.0\r\nHost: a.example\r\n\r\n", { host: "b.example", protocol: "https:" }],
    [
      "http://a.example/x",
      "GET /x HTTP/1.0\r\nHost: a.example\r\nX-Forwarded-Host: c.example\r\nX-Forwarded-Proto: https\r\n\r\n",
      {},
    ],
    [
      "https://c.example/x",
      "GET /x HTTP/1.0\r\nHost: a.example\r\nX-Forwarded-Host: c.example\r\nX-Forwarded-Proto: https\r\n\r\n",
      { trustProxy: true },
    ],
  ])("is for %s: %j", async (url, head, options) => {
    const { port } = await serve(createNodeHandler(mirror, options));
    expect(await exchange(port, head)).toContain(`"url":"${url}"`);
  });

  test.each([
    "GET /x HTTP/1.1\r\nHost: a b\r\n",
    "GET /x HTTP/1.1\r\nHost: [::1\r\n",
    "GET /x HTTP/1.1\r\nHost: a.example/other?\r\n",
    "GET / HTTP/1.1\r\nHost: a.example#\r\n",
    "GET /x HTTP/1.1\r\nHost: user:word@a.example\r\n",
    "GET /x HTTP/1.1\r\nHost: a.example:99999\r\n",
    "GET /x HTTP/1.1\r\nHost: %\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n",
    "GET ftp://a.example/x HTTP/1.1\r\nHost: a.example\r\n",
    "TRACE /x HTTP/1.1\r\nHost: a.example\r\n",
    "POST /x HTTP/1.1\r\nHost: a b\r\nContent-Length: 3\r\n",
  ])("that is none is answered with 400: %j", async (head) => {
    const handler = vi.fn(mirror);
    const { port, url } = await serve(createNodeHandler(handler));
    const answer = await exchange(port, `${head}\r\n${head.startsWith("POST") ? "xyz" : ""}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*\r\nConnection: close\r\n[^]*\{"error":"Bad request"\}/);
    expect(handler).not.toHaveBeenCalled();
    expect((await fetch(url)).status).toBe(200);
  });

  test("that Node itself refuses does not reach the handler", async () => {
    const handler = vi.fn(mirror);
    const { port, url } = await serve(createNodeHandler(handler));
    expect(await exchange(port, "nonsense\r\n\r\n")).toContain("400 Bad Request");
    expect(handler).not.toHaveBeenCalled();
    expect((await fetch(url)).status).toBe(200);
  });

  test("is answered in its turn where several were sent at once", async () => {
    const { port } = await serve(createNodeHandler(mirror));
    const post = (n: number, more = ""): string =>
      `POST /${n} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n${more}\r\nbody${n}`;
    const answers = await exchange(port, post(1) + post(2) + post(3, "Connection: close\r\n"));
    const bodies = [...answers.matchAll(/\{[^}]*\}/g)].map(([text]) => JSON.parse(text) as object);
    expect(bodies).toEqual([1, 2, 3].map((n) => ({ method: "POST", url: `http://a/${n}`, body: `body${n}` })));
  });

  test("whose body nobody reads leaves its connection to the next", async () => {
    const size = 2_000_000;
    let arrived = 0;
    const { port } = await serve(
      createNodeHandler(async () => {
        // Until then the beginning of the body is there, and waits.
        await until(() => arrived > 100_000);
        return new Response("unread");
      }),
    );
    const { socket, text, closed } = say(port, "");
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`);
    socket.write("x".repeat(size / 2), () => (arrived += size / 2));
    socket.write(`${"x".repeat(size / 2)}GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    await closed;
    expect(text().match(/unread/g)).toHaveLength(2);
  });

  test("whose body is refused leaves its connection to the next", async () => {
    const size = 2_000_000;
    const { port } = await serve(
      createNodeHandler(async (request) => {
        if (request.method === "GET") return new Response("still here");
        return readText(request, 1000).then(
          () => new Response("read"),
          (answer: Response) => answer,
        );
      }),
    );
    const long = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${"x".repeat(size)}`;
    const chunked = `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${size.toString(16)}\r\n${"x".repeat(size)}\r\n0\r\n\r\n`;
    const answers = await exchange(port, `${long}${chunked}GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    expect(answers.match(/Payload too large/g)).toHaveLength(2);
    expect(answers).toContain("still here");
  });

  test("that breaks off in its body is aborted", async () => {
    const seen = vi.fn<(error: unknown) => void>();
    let signal: AbortSignal | undefined;
    const { port } = await serve(
      createNodeHandler(async (request) => {
        ({ signal } = request);
        await request.text().catch(seen);
        return new Response();
      }),
    );
    const { socket } = say(port, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    await until(() => signal !== undefined);
    socket.destroy();
    await until(() => seen.mock.calls.length === 1);
    expect(signal!.aborted).toBe(true);
  });
});

describe("an answer", () => {
  test("says its head before there is anything of its body", async () => {
    const { body, send, cancelled } = stream();
    const { url } = await serve(createNodeHandler(() => new Response(body, { headers: { "X-Early": "yes" } })));
    const leaving = new AbortController();
    const answer = await fetch(url, { signal: leaving.signal });
    expect(answer.headers.get("X-Early")).toBe("yes");
    const reader = answer.body!.getReader();
    send("one");
    expect((await reader.read()).value).toEqual(encode("one"));
    send("two");
    expect((await reader.read()).value).toEqual(encode("two"));
    expect(cancelled()).toBe(false);
    leaving.abort();
    await until(cancelled);
  });

  test("is cancelled, and its request aborted, when the client goes in the middle", async () => {
    const { body, send, cancelled } = stream();
    let signal!: AbortSignal;
    const { port } = await serve(
      createNodeHandler((request) => {
        ({ signal } = request);
        return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
      }),
    );
    const { socket, text } = say(port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await until(() => text().includes("text/event-stream"));
    send("data: 1\n\n");
    await until(() => text().includes("data: 1"));
    expect([signal.aborted, cancelled()]).toEqual([false, false]);
    socket.destroy();
    await until(() => signal.aborted && cancelled());
  });

  test("that comes when the client has gone is cancelled", async () => {
    const { body, cancelled } = stream();
    let answer!: (response: Response) => void;
    let signal: AbortSignal | undefined;
    const { port } = await serve(
      createNodeHandler((request) => {
        ({ signal } = request);
        return new Promise((resolve) => (answer = resolve));
      }),
    );
    const { socket } = say(port, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    await until(() => signal !== undefined);
    socket.destroy();
    await until(() => signal!.aborted);
    answer(new Response(body));
    await until(cancelled);
  });

  test("that was read to its end aborts nothing", async () => {
    let signal!: AbortSignal;
    const { url, answers } = await serve(
      createNodeHandler((request) => {
        ({ signal } = request);
        return new Response("done");
      }),
    );
    expect(await (await fetch(url)).text()).toBe("done");
    await until(() => answers[0]!.closed || answers[0]!.writableFinished);
    expect(signal.aborted).toBe(false);
  });

  test.each([200, 204, 304])("without a body ends at once: %i", async (status) => {
    const { url } = await serve(createNodeHandler(() => new Response(null, { status })));
    const answer = await fetch(url);
    expect([answer.status, await answer.text()]).toEqual([status, ""]);
  });

  test("to HEAD has no body, and what was meant for it is cancelled", async () => {
    const { body, cancelled } = stream();
    const { url } = await serve(createNodeHandler(() => new Response(body, { headers: { "X-A": "b" } })));
    const answer = await fetch(url, { method: "HEAD" });
    expect([answer.headers.get("X-A"), await answer.text()]).toEqual(["b", ""]);
    await until(cancelled);
  });

  test("is made no faster than the client takes it", async () => {
    const piece = new Uint8Array(65_536);
    const total = 2048; // 128 MB: no socket holds as much
    let made = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          made++;
          controller.enqueue(piece);
          if (made === total) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const { port, answers } = await serve(createNodeHandler(() => new Response(body)));
    const { socket, closed } = say(port, "");
    socket.pause();
    socket.write("GET / HTTP/1.0\r\n\r\n");
    await until(() => made > 0);

    let before = -1;
    let turns = 0;
    // So many turns without a piece: with nothing in its way each turn makes some.
    while (turns < 100) {
      turns = made === before ? turns + 1 : 0;
      before = made;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(made).toBeLessThan(total);
    expect(answers[0]!.writableLength).toBeLessThan(3 * piece.byteLength);
    socket.resume();
    await closed;
    expect(made).toBe(total);
  });
});

describe("a failure", () => {
  test.each<[string, () => unknown]>([
    [
      "throws at once",
      () => {
        throw new Error("secret");
      },
    ],
    ["rejects", () => Promise.reject(new Error("secret"))],
    ["throws nothing that is known", () => Promise.reject(undefined as unknown as Error)],
    ["returns nothing", () => undefined],
    ["returns what is no Response", () => ({ status: 200 })],
  ])("of a handler that %s is a 500 that says nothing more", async (_, fails) => {
    const { url } = await serve(createNodeHandler(fails as () => Response));
    const answer = await fetch(url, { method: "POST", body: "x" });
    expect(answer.status).toBe(500);
    expect(await answer.json()).toEqual(INTERNAL);
  });

  test("of a body after the head ends the connection, so that something is missing", async () => {
    const { body, send, fail } = stream();
    const { port, url } = await serve(
      createNodeHandler((request) => new Response(request.url.endsWith("/s") ? body : "ok")),
    );
    const { text, closed } = say(port, "GET /s HTTP/1.1\r\nHost: a\r\n\r\n");
    send("some");
    await until(() => text().includes("some"));
    fail();
    await closed;
    // The last chunk, of no bytes, would say that this was all.
    expect(text()).not.toContain("\r\n0\r\n");
    expect(text()).not.toContain("secret");
    expect(await (await fetch(url)).text()).toBe("ok");
  });

  test("of who answered before ends the connection, and the answer's body", async () => {
    const { body, cancelled } = stream();
    const handler = createNodeHandler(() => new Response(body));
    const { port } = await serve((req, res) => {
      res.writeHead(200).write("mine");
      handler(req, res);
    });
    const { text, closed } = say(port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await closed;
    expect(text()).not.toContain("\r\n0\r\n");
    await until(cancelled);
  });

  test("of a hook that a middleware has set on every head ends the connection", async () => {
    const handler = createNodeHandler(mirror);
    const { port } = await serve((req, res) => {
      res.writeHead = () => {
        throw new Error("secret");
      };
      handler(req, res);
    });
    expect(await exchange(port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")).toBe("");
  });

  test("of who ends the answer in the middle ends nothing more", async () => {
    const { body, send, cancelled } = stream();
    const { port, url, answers } = await serve(
      createNodeHandler((request) => new Response(request.url.endsWith("/s") ? body : "ok")),
    );
    const { text } = say(port, "GET /s HTTP/1.1\r\nHost: a\r\n\r\n");
    send("some");
    await until(() => text().includes("some"));
    answers[0]!.end();
    send("late");
    await until(cancelled);
    expect(await (await fetch(url)).text()).toBe("ok");
  });

  test("of a client before the handler had the request asks it for nothing", async () => {
    const inner = vi.fn(mirror);
    const handler = createNodeHandler(inner);
    let late!: () => void;
    const { port, answers } = await serve((req: IncomingMessage, res) => (late = () => handler(req, res)));
    const { socket } = say(port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await until(() => answers.length === 1);
    socket.destroy();
    await until(() => answers[0]!.destroyed);
    late();
    expect(inner).not.toHaveBeenCalled();
  });
});
