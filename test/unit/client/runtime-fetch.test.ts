import { filter, firstValueFrom } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { defaultLocks } from "../../../src/platform/locks.js";
import { hostLifeLockName } from "../../../src/platform/names.js";
import { MAX_BODY_BYTES } from "../../../src/wire/relayed-request.js";
import { PROTOCOL_VERSION } from "../../../src/wire/shapes.js";
import { answering, hostless, openBody } from "./fetch-kit.js";
import { makeHost } from "./kit.js";

const never = (): Promise<never> => new Promise(() => undefined);

test("a path is answered by the host, as of the origin's root", async () => {
  const { runtime } = answering(async (request) => Response.json([request.method, request.url, await request.text()]));
  const response = await runtime.fetch("/agent/reader/run", { method: "POST", body: "{}" });
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(await response.json()).toEqual(["POST", "http://localhost/agent/reader/run", "{}"]);
});

test.each([
  ["an address", new URL("http://x.test/a/info")],
  ["a request", new Request("http://x.test/a/info")],
  ["a text", "http://x.test/a/info"],
])("%s is taken, and the runtime's endpoints answer below a base path", async (_, input) => {
  const runtime = makeHost().connect();
  expect((await runtime.fetch(input, undefined, { basePath: "/a/" })).status).toBe(200);
  expect((await runtime.fetch(input, undefined, { basePath: "/b" })).status).toBe(404);
});

test("what is no request is refused as fetch refuses it", async () => {
  const { runtime } = answering(async () => new Response());
  await expect(runtime.fetch("/", { method: "GET", body: "x" })).rejects.toThrow(TypeError);
  await expect(runtime.fetch("http://")).rejects.toThrow(TypeError);
  await expect(runtime.fetch("/", {}, { basePath: "api" })).rejects.toMatchObject({ code: "invalid-input" });
});

test("a body that is too large is answered 413, and not sent", async () => {
  const handle = vi.fn<(request: Request) => Promise<Response>>(async () => new Response());
  const { runtime } = answering(handle);
  const response = await runtime.fetch("/", { method: "POST", body: new Uint8Array(MAX_BODY_BYTES + 1) });
  expect([response.status, await response.json()]).toEqual([413, { error: "Payload too large" }]);
  expect(handle).not.toHaveBeenCalled();
});

test("where there is no host the answer is 503, and says why", async () => {
  const response = await hostless().fetch("/info");
  expect([response.status, await response.json()]).toEqual([
    503,
    { error: "no-host", message: "No host could be started (worker: Error: no workers here)" },
  ]);
});

test("a closed connection answers nothing", async () => {
  const runtime = hostless();
  await runtime.close();
  await expect(runtime.fetch("/info")).rejects.toMatchObject({ code: "closed" });
});

test("an answer may begin long after the time of a call (L13)", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let answer!: () => void;
  const { runtime } = answering(() => new Promise((resolve) => (answer = () => resolve(new Response("late")))));
  const response = runtime.fetch("/transcribe", { method: "POST" });
  await vi.waitFor(() => expect(answer).toBeDefined());
  // Replied to after the request was taken, on the same port.
  await runtime.threads.list();
  vi.advanceTimersByTime(10 * 60_000);
  answer();
  expect(await (await response).text()).toBe("late");
});

test("a host that takes no request is told in time (L13)", async () => {
  const life = await defaultLocks()!.hold(hostLifeLockName("db", "mute"));
  const { port1, port2 } = new MessageChannel();
  const api = new MessageChannel();
  // It tells of itself, and takes nothing.
  api.port1.onmessage = ({ data }) => {
    if (data.path[0] !== "watch") return;
    data.argumentList[1].value.postMessage({ tabs: 1, attachments: 0, durability: "memory" });
    api.port1.postMessage({ id: data.id, type: "RAW", value: { ok: null } });
  };
  const word = { type: "hello", protocol: PROTOCOL_VERSION, hostId: "mute", dbName: "db", kind: "page", agents: [] };
  port1.postMessage({ ...word, port: api.port2 }, [api.port2]);
  const runtime = connectRuntime({ hosts: { page: async () => port2 }, callTimeoutMs: 100 });
  onTestFinished(async () => {
    await runtime.close();
    port1.close();
    api.port1.close();
    await life.release();
  });
  await expect(runtime.fetch("/info")).rejects.toMatchObject({ code: "timeout" });
});

test("a request that is aborted is aborted in the host, and rejects as fetch does", async () => {
  let signal: AbortSignal | undefined;
  const { runtime } = answering((request) => {
    ({ signal } = request);
    return never();
  });
  const asking = new AbortController();
  const response = runtime.fetch("/run", { method: "POST", signal: asking.signal });
  await vi.waitFor(() => expect(signal).toBeDefined());
  asking.abort();
  await expect(response).rejects.toMatchObject({ name: "AbortError" });
  await vi.waitFor(() => expect(signal?.aborted).toBe(true));
  await expect(runtime.fetch("/run", { signal: asking.signal })).rejects.toMatchObject({ name: "AbortError" });
});

test("a request that is aborted while there is no host yet rejects at once", async () => {
  const runtime = connectRuntime({ hosts: { page: never } });
  onTestFinished(() => runtime.close());
  const asking = new AbortController();
  const response = runtime.fetch("/run", { signal: asking.signal });
  asking.abort(new RangeError("own reason"));
  await expect(response).rejects.toThrow(RangeError);
});

test("a body that is read no further is let go of in the host, and counts as an attachment until then (L14)", async () => {
  const { stream, cancelled } = openBody();
  const { runtime } = answering(async () => new Response(stream));
  const { body } = await runtime.fetch("/run");
  const attachments = (n: number) =>
    firstValueFrom(runtime.status$.pipe(filter((it) => it.is === "connected" && it.attachments === n)));
  await attachments(1);
  await body!.cancel();
  await attachments(0);
  expect(cancelled()).toBe(true);
});

test("a connection that is closed ends what it reads, here and in the host (L14)", async () => {
  const { stream, cancelled } = openBody();
  const { runtime } = answering(async () => new Response(stream));
  const { body } = await runtime.fetch("/run");
  await runtime.close();
  await expect(new Response(body).text()).rejects.toMatchObject({ code: "closed" });
  await vi.waitFor(() => expect(cancelled()).toBe(true));
});

test.each(["GET", "HEAD"])("%s is asked again of the next host (L13)", async (method) => {
  const asked: string[] = [];
  const { runtime, replace } = answering((request) => {
    asked.push(request.method);
    return asked.length === 1 ? never() : Promise.resolve(new Response("second"));
  });
  const response = runtime.fetch("/info", { method });
  await vi.waitFor(() => expect(asked).toEqual([method]));
  await replace();
  expect((await response).status).toBe(200);
  expect(asked).toEqual([method, method]);
});

test("a request that kills each host that reads it is given up at the third one", async () => {
  let asked = 0;
  const { runtime, replace } = answering(async () => {
    if (++asked > 5) return new Response("still asking");
    void replace();
    return never();
  });
  await expect(runtime.fetch("/info")).rejects.toMatchObject({ code: "host-lost" });
  expect(asked).toBe(3);
});

test("a request has its own headers, and does not need those of calls", async () => {
  const headers = vi.fn(() => {
    throw new Error("nobody is signed in");
  });
  const { runtime } = answering(async (request) => new Response(request.headers.get("x-own")), { headers });
  expect(await (await runtime.fetch("/info", { headers: { "x-own": "1" } })).text()).toBe("1");
  expect(headers).not.toHaveBeenCalled();
});

test("a request that changes something is not asked again: its host is lost (L13)", async () => {
  const handle = vi.fn<(request: Request) => Promise<Response>>(never);
  const { runtime, replace } = answering(handle);
  const response = runtime.fetch("/run", { method: "POST" });
  response.catch(() => undefined);
  await vi.waitFor(() => expect(handle).toHaveBeenCalledTimes(1));
  await replace();
  await expect(response).rejects.toMatchObject({ code: "host-lost" });
  await runtime.threads.list();
  expect(handle).toHaveBeenCalledTimes(1);
});

test("a host that dies in the middle of a body errors it (L13)", async () => {
  const { runtime, replace } = answering(async () => new Response(openBody().stream));
  const reader = (await runtime.fetch("/run")).body!.getReader();
  await reader.read();
  await replace();
  await expect(reader.read()).rejects.toMatchObject({ code: "host-lost" });
});
