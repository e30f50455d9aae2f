import { BehaviorSubject } from "rxjs";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { RuntimeConnection } from "../../../src/client/connect-runtime.js";
import { defaultLocks } from "../../../src/platform/locks.js";
import { hostLifeLockName, RELAY_MESSAGE } from "../../../src/platform/names.js";
import { RunnerError } from "../../../src/run/errors.js";
import type { HostLink } from "../../../src/client/host-link.js";
import { relay as relayToHost } from "../../../src/client/runtime-fetch.js";
import { MAX_BODY_BYTES } from "../../../src/wire/relayed-request.js";
import { RELAY_PROTOCOL } from "../../../src/wire/service-worker-words.js";
import { relayRuntime } from "../../../src/service-worker/relay-runtime.js";
import type { RuntimeStatus } from "../../../src/wire/shapes.js";
import { answering, openBody } from "../client/fetch-kit.js";
import { FakePage, serviceWorkerOf } from "./kit.js";

type Relaying = Pick<RuntimeConnection, "relay">;

const never = (): Promise<never> => new Promise(() => undefined);

beforeAll(() => {
  vi.stubGlobal("location", { origin: "http://site.test", href: "http://site.test/" });
  return () => vi.unstubAllGlobals();
});

/** A page whose runtime's host answers by `handle`. */
function pageWith(handle: (request: Request) => Promise<Response>, id = "page") {
  const { runtime, replace } = answering(handle);
  const page = new FakePage(id);
  page.answer(runtime);
  return { page, runtime, replace };
}

/** A page whose connection refuses with this. */
function refusing(error: Error, id = "refusing"): FakePage {
  const page = new FakePage(id);
  page.answer({ relay: () => Promise.reject(error) });
  return page;
}

describe("a request below the base path", () => {
  test("is answered by the host of a page, piece by piece", async () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const seen: unknown[] = [];
    const { page } = pageWith(async (request) => {
      seen.push(request.method, request.url, await request.text());
      return new Response(readable, { status: 201, headers: { "x-own": "1" } });
    });
    const { response, isAwake } = serviceWorkerOf(page).fetch("/api/run", { method: "POST", body: "input" });
    const answer = (await response)!;
    expect([answer.status, answer.headers.get("x-own")]).toEqual([201, "1"]);
    expect(seen).toEqual(["POST", "http://site.test/run", "input"]);
    const reader = answer.body!.getReader();
    for (const piece of ["one", "two"]) {
      void writer.write(new TextEncoder().encode(piece));
      expect(new TextDecoder().decode((await reader.read()).value)).toBe(piece);
    }
    expect(isAwake()).toBe(true);
    void writer.close();
    expect((await reader.read()).done).toBe(true);
    await vi.waitFor(() => expect(isAwake()).toBe(false));
  });

  test("that a form posts, of whatever origin, is refused", async () => {
    const handle = vi.fn(async () => new Response("done"));
    const { page } = pageWith(handle);
    const form = { method: "POST", body: new FormData() };
    expect((await serviceWorkerOf(page).fetch("/api/transcribe", form, "", "navigate").response)!.status).toBe(403);
    expect(handle).not.toHaveBeenCalled();
    expect((await serviceWorkerOf(page).fetch("/api/info", {}, "", "navigate").response)!.status).toBe(200);
  });

  test("without a body in its answer keeps nobody awake", async () => {
    const { page } = pageWith(async () => new Response(null, { status: 204 }));
    const { response, isAwake } = serviceWorkerOf(page).fetch("/api");
    expect((await response)!.status).toBe(204);
    await vi.waitFor(() => expect(isAwake()).toBe(false));
  });

  test("is aborted in the host where its asker leaves", async () => {
    let signal: AbortSignal | undefined;
    const { page } = pageWith((request) => {
      ({ signal } = request);
      return never();
    });
    const asking = new AbortController();
    const { response, isAwake } = serviceWorkerOf(page).fetch("/api", { signal: asking.signal });
    await vi.waitFor(() => expect(signal).toBeDefined());
    asking.abort();
    await expect(response).rejects.toMatchObject({ name: "AbortError" });
    await vi.waitFor(() => expect([signal?.aborted, isAwake()]).toEqual([true, false]));
  });

  test("is let go of in the host where its body is read no further (L14)", async () => {
    const { stream, cancelled } = openBody();
    const { page } = pageWith(async () => new Response(stream));
    const { response, isAwake } = serviceWorkerOf(page).fetch("/api");
    await (await response)!.body!.cancel();
    await vi.waitFor(() => expect([cancelled(), isAwake()]).toEqual([true, false]));
  });

  test("with too large a body is answered 413, and nobody is asked", async () => {
    const { page } = pageWith(async () => new Response());
    const body = new Uint8Array(MAX_BODY_BYTES + 1);
    const response = (await serviceWorkerOf(page).fetch("/api", { method: "POST", body }).response)!;
    expect([response.status, await response.json()]).toEqual([413, { error: "Payload too large" }]);
    expect(page.asked).toEqual([]);
  });
});

test("other requests are left alone, and all of them once it is ended", () => {
  const worker = serviceWorkerOf();
  for (const path of ["/", "/apis", "/api/../x", "http://other.test/api"]) {
    expect(worker.fetch(path).response).toBeUndefined();
  }
  worker.end();
  expect(worker.fetch("/api").response).toBeUndefined();
});

test("options that are none are refused", () => {
  for (const options of [{ basePath: "/" }, { basePath: "" }, { basePath: "/api", timeoutMs: 0 }]) {
    expect(() => relayRuntime(options)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  }
});

describe("pages", () => {
  test("are asked in order: who asks, focused, visible, the others", async () => {
    const looks = { hidden: {}, visible: { visibilityState: "visible" }, focused: { focused: true }, asking: {} };
    const order: string[] = [];
    const pages = Object.entries(looks).map(([id, look]) => {
      const page = new FakePage(id, look);
      const relay: Relaying["relay"] = async () => {
        order.push(id);
        throw new RunnerError("no-host");
      };
      page.answer({ relay });
      return page;
    });
    const response = (await serviceWorkerOf(...pages).fetch("/api", {}, "asking").response)!;
    expect(response.status).toBe(503);
    expect(order).toEqual(["asking", "focused", "visible", "hidden"]);
  });

  test("that do not answer are passed over, and given nothing when they do (L13)", async () => {
    const { page } = pageWith(async () => new Response("second"));
    const loading = new FakePage("loading", { focused: true });
    const { response } = serviceWorkerOf(loading, page).fetch("/api", { method: "POST", body: "x" });
    expect(await (await response)!.text()).toBe("second");
    const relay = vi.fn<Relaying["relay"]>(never);
    loading.answer({ relay });
    await new Promise((resolve) => setImmediate(resolve));
    expect(relay).not.toHaveBeenCalled();
  });

  test("without a host are passed over", async () => {
    const { page } = pageWith(async () => new Response("second"));
    const { response } = serviceWorkerOf(refusing(new RunnerError("no-host")), page).fetch("/api", {
      method: "POST",
      body: "x",
    });
    expect(await (await response)!.text()).toBe("second");
  });

  test.each(["closed", "host-lost", "timeout"] as const)(
    "after %s the host may have the request: no other page gets what may change something (L13)",
    async (code) => {
      const handle = vi.fn(async () => new Response("second"));
      const { page } = pageWith(handle);
      const worker = serviceWorkerOf(refusing(new RunnerError(code)), page);
      const answer = (await worker.fetch("/api", { method: "POST", body: "x" }).response)!;
      expect([answer.status, await answer.json()]).toMatchObject([502, { error: code }]);
      expect(handle).not.toHaveBeenCalled();
    },
  );

  test("where there are none, or none has a runtime, the answer is 503 and says what to do", async () => {
    for (const pages of [[], [new FakePage("plain")]]) {
      const { response, isAwake } = serviceWorkerOf(...pages).fetch("/api/info");
      const answer = (await response)!;
      expect([answer.status, await answer.json()]).toEqual([
        503,
        { error: "no-host", message: expect.stringContaining("answerServiceWorker()") },
      ]);
      await vi.waitFor(() => expect(isAwake()).toBe(false));
    }
  });

  test("that answer no more hold on to nothing of their connection", () => {
    const status$ = new BehaviorSubject<RuntimeStatus>({ is: "connecting" });
    const end = new FakePage("page").answer({ relay: never, status$ });
    expect(status$.observed).toBe(true);
    end();
    expect(status$.observed).toBe(false);
  });

  test("that answer no more hear nothing", async () => {
    const { runtime } = answering(async () => new Response());
    const page = new FakePage("page");
    page.answer(runtime)();
    expect((await serviceWorkerOf(page).fetch("/api").response)!.status).toBe(503);
  });
});

describe("a host that dies", () => {
  test("before it answers is lost to a request that changes something (L13)", async () => {
    const handle = vi.fn<(request: Request) => Promise<Response>>(never);
    const { page, replace } = pageWith(handle);
    const { response } = serviceWorkerOf(page).fetch("/api", { method: "POST" });
    await vi.waitFor(() => expect(handle).toHaveBeenCalledTimes(1));
    await replace();
    const answer = (await response)!;
    expect([answer.status, await answer.json()]).toMatchObject([502, { error: "host-lost" }]);
    expect(handle).toHaveBeenCalledTimes(1);
  });

  test("before it answers is followed by the next one for GET (L13)", async () => {
    let asked = 0;
    const { page, replace } = pageWith(() => (++asked === 1 ? never() : Promise.resolve(new Response("second"))));
    const { response } = serviceWorkerOf(page).fetch("/api/info");
    await vi.waitFor(() => expect(asked).toBe(1));
    await replace();
    expect(await (await response)!.text()).toBe("second");
  });

  test.each(["before", "after"])("without a word is seen by its life lock, %s the head (L13)", async (when) => {
    const life = await defaultLocks()!.hold(hostLifeLockName("db", `silent-${when}`));
    const host = { hostId: `silent-${when}`, dbName: "db" };
    const page = new FakePage("page");
    let port: MessagePort | undefined;
    page.answer({
      relay: async (_, given) => {
        port = given;
        return host;
      },
    });
    const { response } = serviceWorkerOf(page).fetch("/api", { method: "POST" });
    await vi.waitFor(() => expect(port).toBeDefined());
    onTestFinished(() => port?.close());
    if (when === "before") {
      await life.release();
      expect((await response)!.status).toBe(502);
      return;
    }
    const head = { type: "head", status: 200, statusText: "", headers: [], hasBody: true, ...host };
    port!.postMessage(head);
    const reading = (await response)!.text();
    await life.release();
    await expect(reading).rejects.toMatchObject({ code: "host-lost" });
  });

  test("lets go of the request when it ends, though the service worker lives (L14)", async () => {
    const { stream, cancelled } = openBody();
    const { page, replace } = pageWith(async () => new Response(stream));
    const reading = (await serviceWorkerOf(page).fetch("/api").response)!.text();
    reading.catch(() => undefined);
    await replace();
    await vi.waitFor(() => expect(cancelled()).toBe(true));
  });

  test("that fails is answered 500", async () => {
    const { page } = pageWith(() => Promise.reject(new Error("bug")));
    const answer = (await serviceWorkerOf(page).fetch("/api").response)!;
    expect([answer.status, await answer.json()]).toEqual([500, { error: "internal_error", id: expect.any(String) }]);
  });
});

test("a page that goes away with the request in its hands is lost (L13)", async () => {
  const page = new FakePage("page");
  const relay = vi.fn<Relaying["relay"]>(never);
  page.answer({ relay });
  const worker = serviceWorkerOf(page);
  const { response } = worker.fetch("/api", { method: "POST" });
  await vi.waitFor(() => expect(relay).toHaveBeenCalledTimes(1));
  worker.close(page);
  const answer = (await response)!;
  expect([answer.status, await answer.json()]).toMatchObject([502, { error: "host-lost" }]);
});

test("the answer outlives the page that handed the request over, as the host does", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const { page, runtime } = pageWith(async () => new Response(readable));
  const { response } = serviceWorkerOf(page).fetch("/api");
  const answer = (await response)!;
  await runtime.close();
  void writer.write(new TextEncoder().encode("still here"));
  void writer.close();
  expect(await answer.text()).toBe("still here");
});

describe("messages", () => {
  const good = { type: RELAY_MESSAGE, v: RELAY_PROTOCOL };

  /** Whether the page answers. */
  async function isHeard(message: object, more?: object): Promise<boolean> {
    const page = new FakePage("page");
    page.answer({ relay: never });
    const { port1, port2 } = new MessageChannel();
    const heard = vi.fn();
    port1.onmessage = heard;
    page.hear({ words: port2, ...message }, more);
    // Comes after whatever the page has said.
    const last = new Promise((resolve) => port1.addEventListener("message", resolve, { once: true }));
    port2.postMessage("last");
    await last;
    port1.close();
    return heard.mock.calls.some(([{ data }]) => data.type === "heard");
  }

  test("of a service worker of this origin are heard, all others are not", async () => {
    expect(await isHeard(good)).toBe(true);
    expect(await isHeard({ ...good, type: "other" })).toBe(false);
    expect(await isHeard({ ...good, v: RELAY_PROTOCOL + 1 })).toBe(false);
    expect(await isHeard(good, { source: null })).toBe(false);
    expect(await isHeard(good, { source: {} })).toBe(false);
    expect(await isHeard(good, { origin: "http://other.test" })).toBe(false);
    expect(await isHeard({ ...good, words: "port" })).toBe(false);
  });

  test("with a request that is none are refused", async () => {
    const page = new FakePage("page");
    const linked = vi.fn<HostLink["linked"]>(never);
    // As a connection does it.
    page.answer({ relay: (request, port) => relayToHost({ linked } as Partial<HostLink> as HostLink, request, port) });
    const { port1, port2 } = new MessageChannel();
    const { port2: port } = new MessageChannel();
    onTestFinished(() => port.close());
    page.hear({ ...good, words: port2 });
    const refused = new Promise((resolve) => {
      port1.onmessage = ({ data }) => data.type === "refused" && resolve(data.error.code);
    });
    port1.postMessage({ request: { url: "nowhere" }, port }, [port]);
    expect(await refused).toBe("invalid-input");
    expect(linked).not.toHaveBeenCalled();
  });
});
