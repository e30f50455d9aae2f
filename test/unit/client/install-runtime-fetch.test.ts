import { describe, expect, test, vi } from "vitest";
import { installRuntimeFetch, type FetchTarget } from "../../../src/client/install-runtime-fetch.js";

/** A window whose `fetch` notes its calls. */
function page() {
  const original = vi.fn<typeof fetch>(async () => new Response("original"));
  const target: FetchTarget = {
    fetch: original,
    location: { href: "http://site.test/app/page", origin: "http://site.test" },
    document: { baseURI: "http://site.test/app/page" },
  };
  const runtime = (text: string) => ({ fetch: vi.fn(async () => new Response(text)) });
  return { original, target, runtime };
}

const text = async (response: Promise<Response>): Promise<string> => (await response).text();

describe("requests below the base path", () => {
  test("are the runtime's, with what they were called with", async () => {
    const { original, target, runtime } = page();
    const host = runtime("host");
    installRuntimeFetch(host, { basePath: "/api/", target });
    const init = { method: "POST" };
    const request = new Request("http://site.test/api/b");
    expect(await text(target.fetch("/api/a", init))).toBe("host");
    await target.fetch(request);
    await target.fetch("../api");
    expect(host.fetch.mock.calls).toEqual([
      [new URL("http://site.test/api/a"), init, { basePath: "/api" }],
      [request, undefined, { basePath: "/api" }],
      [new URL("http://site.test/api"), undefined, { basePath: "/api" }],
    ]);
    expect(original).not.toHaveBeenCalled();
  });
});

describe("other requests", () => {
  test("are left alone: same this, same arguments, bodies unread", async () => {
    const { original, target, runtime } = page();
    const host = runtime("host");
    installRuntimeFetch(host, { basePath: "/api", target });
    const request = new Request("http://site.test/apis", { method: "POST", body: "x" });
    const own = { own: true };
    const calls: unknown[][] = [
      [request],
      ["/apis", own],
      ["/api/../x"],
      ["/api/%2e%2e/x"],
      ["http://other.test/api", own, "third"],
      [],
      ["http://"],
    ];
    for (const args of calls) await Reflect.apply(target.fetch, own, args);
    expect(original.mock.calls).toEqual(calls);
    expect(original.mock.contexts).toEqual(calls.map(() => own));
    expect(request.bodyUsed).toBe(false);
    expect(host.fetch).not.toHaveBeenCalled();
  });

  test("reach the platform's fetch where nothing is `this`", async () => {
    const { original, target, runtime } = page();
    installRuntimeFetch(runtime("host"), { basePath: "/api", target });
    const { fetch: unbound } = target;
    expect(await text(unbound("/x"))).toBe("original");
    expect(original.mock.contexts).toEqual([undefined]);
  });
});

describe("undoing", () => {
  test("restores exactly what was there", () => {
    const { target, runtime } = page();
    Object.defineProperty(target, "fetch", { enumerable: false, writable: false });
    const before = Object.getOwnPropertyDescriptor(target, "fetch");
    const undo = installRuntimeFetch(runtime("host"), { basePath: "/api", target });
    expect(target.fetch).not.toBe(before?.value);
    undo();
    undo();
    expect(Object.getOwnPropertyDescriptor(target, "fetch")).toEqual(before);
  });

  test("leaves nothing where `fetch` was inherited", () => {
    const { original, target, runtime } = page();
    const heir = Object.create(target) as FetchTarget;
    installRuntimeFetch(runtime("host"), { basePath: "/api", target: heir })();
    expect(Object.hasOwn(heir, "fetch")).toBe(false);
    expect(heir.fetch).toBe(original);
  });

  test("leaves the wrapper of somebody else, and passes through below it", async () => {
    const { target, runtime } = page();
    const undo = installRuntimeFetch(runtime("host"), { basePath: "/api", target });
    const inner = target.fetch;
    const theirs: typeof fetch = (...args) => inner(...args);
    target.fetch = theirs;
    undo();
    expect(target.fetch).toBe(theirs);
    expect(await text(target.fetch("/api"))).toBe("original");
  });

  test.each([
    [0, 1],
    [1, 0],
  ])("two base paths that nest, in the order %i, %i", async (first, second) => {
    const { original, target, runtime } = page();
    const undo = ["a", "b"].map((name) => installRuntimeFetch(runtime(name), { basePath: `/${name}`, target }));
    expect(await text(target.fetch("/a/x"))).toBe("a");
    expect(await text(target.fetch("/b/x"))).toBe("b");
    undo[first]!();
    expect(await text(target.fetch(`/${"ab"[first]}/x`))).toBe("original");
    expect(await text(target.fetch(`/${"ab"[second]}/x`))).toBe("ab"[second]);
    undo[second]!();
    expect(target.fetch).toBe(original);
  });
});

test.each(["", "/", "api", "//api"])("the base path %j is refused, and nothing is replaced", (basePath) => {
  const { original, target, runtime } = page();
  expect(() => installRuntimeFetch(runtime("host"), { basePath, target })).toThrow(
    expect.objectContaining({ code: "invalid-input" }),
  );
  expect(target.fetch).toBe(original);
});
