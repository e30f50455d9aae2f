import type { BeforeRequestMiddleware, RuntimeFailure } from "ag-ui-local-runtime/runtime";
import { describe, expect, test, vi } from "vitest";
import { inputOf, textOf, user } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { connectedTab, Refused, rewrittenRun, WAYS } from "./ways.js";

/** What a call was refused with. */
const refusalOf = async (answer: Promise<unknown>): Promise<Refused> => {
  const error: unknown = await answer.then(
    (value) => ({ notRefused: value }),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Refused)) throw new Error("Not refused", { cause: error });
  return error;
};

describe.each(WAYS)("beforeRequestMiddleware, $name", (way) => {
  const open = (
    beforeRequestMiddleware: BeforeRequestMiddleware,
    error: (failure: RuntimeFailure) => void = () => undefined,
  ) => way.open(runtimeWith({ beforeRequestMiddleware, metrics: { error } }));

  test("that returns nothing lets through; it sees the request and its path", async () => {
    const seen: string[] = [];
    const caller = await open(({ request, path, runtime }) => {
      expect(new URL(request.url).pathname).toBe(path);
      expect(runtime.health).toBeTypeOf("function");
      seen.push(`${request.method} ${path}`);
    });
    expect(textOf(await caller.run("counter", inputOf("t", "r")))).toBe("0 1 2 ");
    expect(seen).toEqual(["POST /agent/counter/run"]);
  });

  test("sees the input of a run", async () => {
    let seen = "";
    const caller = await open(async ({ request }) => {
      seen = await request.clone().text();
    });
    await caller.run("counter", inputOf("t", "r", [user("u", "what was asked")]));
    expect(seen).toContain("what was asked");
  });

  test("sees the headers of the caller", async () => {
    const seen: (string | null)[] = [];
    const runtime = runtimeWith({
      beforeRequestMiddleware: ({ request }) => void seen.push(request.headers.get("authorization")),
    });
    const caller = await way.open(runtime, { Authorization: "Bearer me" });
    await caller.run("counter", inputOf("t", "r"));
    await caller.messages("t");
    expect(seen).toEqual(["Bearer me", "Bearer me"]);
  });

  test("gives a run headers, which its agent sends on", async () => {
    const caller = await open(({ request }) => {
      const headers = new Headers(request.headers);
      headers.set("x-user", "ada");
      return new Request(request, { headers });
    });
    expect(textOf(await caller.run("headers", inputOf("t", "r")))).toContain('"x-user":"ada"');
  });

  test("gives a run another input", async () => {
    const caller = await open(async ({ request }) =>
      rewrittenRun(request, { input: (input) => ({ ...input, messages: [user("s", "rule"), ...input.messages] }) }),
    );
    expect(textOf(await caller.run("teller", inputOf("t", "r", [user("u", "question")])))).toBe("rule|question");
  });

  test("gives a run another agent", async () => {
    const caller = await open(async ({ request }) => rewrittenRun(request, { agentId: "other" }));
    expect(textOf(await caller.run("counter", inputOf("t", "r")))).toBe("the other");
  });

  test("answers by a Response that it returns, and nothing runs", async () => {
    const runtime = runtimeWith({ beforeRequestMiddleware: () => new Response("not here", { status: 418 }) });
    const caller = await way.open(runtime);
    expect(await refusalOf(caller.run("counter", inputOf("t", "r")))).toMatchObject({ status: 418, body: "not here" });
    expect(await (await runtime.runner()).isRunning({ threadId: "t" })).toBe(false);
  });

  test("answers by a Response that it throws", async () => {
    const caller = await open(() => {
      throw new Response("not here", { status: 418 });
    });
    expect(await refusalOf(caller.run("counter", inputOf("t", "r")))).toMatchObject({ status: 418, body: "not here" });
  });

  test.each([401, 403, 429])("refuses with the status %i of what it throws", async (status) => {
    const caller = await open(() => {
      throw Object.assign(new Error("for the caller"), { status });
    });
    const refused = await refusalOf(caller.run("counter", inputOf("t", "r")));
    expect(refused.status).toBe(status);
    expect(JSON.parse(refused.body)).toMatchObject({ message: "for the caller" });
  });

  test("refuses with the statusCode of what it throws, as Express names it", async () => {
    const caller = await open(() => {
      throw { statusCode: 403 };
    });
    expect((await refusalOf(caller.run("counter", inputOf("t", "r")))).status).toBe(403);
  });

  test.each<[string, unknown]>([
    ["an error", new Error("the secret")],
    ["an error with another status", Object.assign(new Error("the secret"), { status: 404 })],
    ["a text", "the secret"],
    ["nothing", undefined],
  ])("that throws %s is a fault of the runtime: 500 without its words", async (_, thrown) => {
    const failures: unknown[] = [];
    const caller = await open(
      () => {
        throw thrown;
      },
      ({ error }) => failures.push(error),
    );
    const refused = await refusalOf(caller.run("counter", inputOf("t", "r")));
    expect(refused.status).toBe(500);
    expect(refused.body).not.toContain("secret");
    expect(failures).toEqual([thrown]);
  });

  test("is waited for", async () => {
    const caller = await open(async ({ request }) => {
      await request.clone().text();
      throw { status: 401 };
    });
    expect((await refusalOf(caller.run("counter", inputOf("t", "r")))).status).toBe(401);
  });

  test.each<[string, unknown]>([
    ["false", false],
    ["a number", 0],
    ["a text", "no"],
    ["an object", { status: 401 }],
  ])("that returns %s by mistake lets nothing through", async (_, returned) => {
    const failures: unknown[] = [];
    const caller = await open(
      () => returned as undefined,
      ({ error }) => failures.push(error),
    );
    expect((await refusalOf(caller.run("counter", inputOf("t", "r")))).status).toBe(500);
    expect(failures).toEqual([expect.any(TypeError)]);
  });

  test("that waits for the end of the request hears that its caller left, and nothing runs", async () => {
    const events: string[] = [];
    const runtime = runtimeWith({
      beforeRequestMiddleware: ({ request: { signal } }) =>
        new Promise((_, reject) => {
          events.push("waits");
          signal.addEventListener("abort", () => {
            events.push("left");
            reject(new Error("nobody waits"));
          });
        }),
    });
    const caller = await way.open(runtime);
    const leaving = new AbortController();
    const answer = caller.run("counter", inputOf("t", "r"), leaving.signal).catch(() => "nothing");
    await vi.waitFor(() => expect(events).toEqual(["waits"]));
    leaving.abort();
    await vi.waitFor(() => expect(events).toEqual(["waits", "left"]));
    expect(await answer).toBe("nothing");
  });

  test("that refuses everything leaves nothing to be had", async () => {
    let isOpen = true;
    const caller = await open(() => {
      if (!isOpen) throw { status: 401 };
    });
    await caller.run("counter", inputOf("t", "r"));
    isOpen = false;
    const calls = [
      caller.run("counter", inputOf("t", "r2")),
      caller.connect("counter", "t"),
      caller.stop("counter", "t"),
      caller.messages("t"),
      caller.events("t"),
      caller.state("t"),
      caller.list(),
      caller.clear(),
    ];
    expect(await Promise.all(calls.map(async (call) => (await refusalOf(call)).status))).toEqual(calls.map(() => 401));
    isOpen = true;
    expect(await caller.list()).toEqual(["t"]);
  });
});

describe("a tab of a runtime with a middleware", () => {
  test("is not told which agents there are before it has asked", async () => {
    const tab = connectedTab(runtimeWith({ beforeRequestMiddleware: () => undefined }));
    const status = await new Promise<object>((resolve) => {
      tab.status$.subscribe((value) => value.is === "connected" && resolve(value));
    });
    expect(status).not.toHaveProperty("agents");
  });

  test("is told when it may try again", async () => {
    const beforeRequestMiddleware = () => new Response(null, { status: 429, headers: { "retry-after": "7" } });
    const tab = connectedTab(runtimeWith({ beforeRequestMiddleware }));
    await expect(tab.threads.list()).rejects.toMatchObject({
      code: "refused",
      details: { status: 429, retryAfter: "7" },
    });
  });

  test.each([
    ["a header that is none", { "not a name": "x" }],
    ["a value of two lines", { authorization: "a\nb" }],
  ])("that sends %s is told so", async (_, headers) => {
    const tab = connectedTab(runtimeWith({ beforeRequestMiddleware: () => undefined }), headers);
    await expect(tab.threads.list()).rejects.toMatchObject({ code: "invalid-input" });
  });

  test.each(["..", ".", "half \ud800"])("cannot ask for the thread %j, which no address names", async (threadId) => {
    const seen: string[] = [];
    const tab = connectedTab(runtimeWith({ beforeRequestMiddleware: ({ path }) => void seen.push(path) }));
    await expect(tab.threads.messages(threadId)).rejects.toMatchObject({ code: "invalid-input" });
    expect(seen).toEqual([]);
  });
});
