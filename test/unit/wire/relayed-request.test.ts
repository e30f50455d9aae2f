import { describe, expect, test } from "vitest";
import { checkBelowRoot, isBelow } from "../../../src/wire/base-path.js";
import { checkRelayed, MAX_BODY_BYTES, refusalOf, toRelayed } from "../../../src/wire/relayed-request.js";
import { counting, requestOf } from "./relay-kit.js";

describe("a request's body", () => {
  const post = (body: BodyInit): Request => requestOf("/", { method: "POST", body, duplex: "half" } as RequestInit);

  test("of just the most bytes is read", async () => {
    const { body } = await toRelayed(post("12345"), "", 5);
    expect(new TextDecoder().decode(body)).toBe("12345");
  });

  test("of more is refused, as 413, without being read to its end", async () => {
    const endless = counting(() => new Uint8Array(100));
    const error: unknown = await toRelayed(post(endless.stream), "", 1_000).catch((it: unknown) => it);
    expect(error).toMatchObject({ code: "invalid-input", details: { field: "body", maxBodyBytes: 1_000 } });
    expect(endless.made()).toBeLessThan(20);
    expect(endless.cancelled()).toBe(true);
    const refusal = refusalOf(error)!;
    expect([refusal.status, await refusal.json()]).toEqual([413, { error: "Payload too large" }]);
  });

  test("is at most 32 MB", () => {
    expect(MAX_BODY_BYTES).toBe(33_554_432);
  });

  test("that never comes is waited for no longer than somebody wants it", async () => {
    const asking = new AbortController();
    const silent = new ReadableStream<Uint8Array>();
    const init = { method: "POST", body: silent, duplex: "half", signal: asking.signal };
    const reading = toRelayed(requestOf("/", init as RequestInit), "");
    asking.abort();
    await expect(reading).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("what another context sends", () => {
  const good = { url: "http://site.test/api/x", method: "POST", headers: [["a", "b"]], basePath: "/api" };

  test.each<[string, object]>([
    ["without a body", good],
    ["with bytes", { ...good, body: new Uint8Array([1]) }],
    ["with a buffer", { ...good, body: new ArrayBuffer(1) }],
    ["at the root", { ...good, basePath: "" }],
    ["of a service worker", { ...good, serviceWorkerId: "w" }],
    ["of a method that nobody knows", { ...good, method: "propfind" }],
  ])("is taken %s, without what does not belong to it", (_, request) => {
    expect(checkRelayed({ ...request, more: 1 })).toEqual(request);
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["text", "request"],
    ["a relative address", { ...good, url: "/api/x" }],
    ["an address of another kind", { ...good, url: "javascript:alert(1)" }],
    ["an address with credentials", { ...good, url: "http://me:secret@site.test/" }],
    ["no address", { ...good, url: undefined }],
    ["a method with a space", { ...good, method: "GET /" }],
    ["an empty method", { ...good, method: "" }],
    ["a method that is none", { ...good, method: 1 }],
    ["GET with a body", { ...good, method: "GET", body: new Uint8Array(1) }],
    ["headers that are an object", { ...good, headers: { a: "b" } }],
    ["headers of three", { ...good, headers: [["a", "b", "c"]] }],
    ["a header whose name is none", { ...good, headers: [["a b", "c"]] }],
    ["a header with a line break", { ...good, headers: [["a", "b\r\nc: d"]] }],
    ["a header that is a number", { ...good, headers: [["a", 1]] }],
    ["a body of text", { ...good, body: "text" }],
    ["a body of other numbers", { ...good, body: new Uint16Array(1) }],
    ["shared bytes", { ...good, body: new Uint8Array(new SharedArrayBuffer(1)) }],
    ["a base path that is none", { ...good, basePath: "api" }],
    ["no base path", { ...good, basePath: undefined }],
    ["a service worker without a name", { ...good, serviceWorkerId: "" }],
  ])("is refused: %s", (_, request) => {
    expect(() => checkRelayed(request)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  });
});

describe("a base path", () => {
  test.each([
    ["/api", "/api"],
    ["/api/", "/api"],
    ["/api/agents//", "/api/agents"],
    ["/a b", "/a%20b"],
    ["/x/../api", "/api"],
  ])("%s is %s", (given, path) => {
    expect(checkBelowRoot(given)).toBe(path);
  });

  test.each([
    "",
    "/",
    "//",
    "//site.test/api",
    "/\\site.test",
    "/\t/site.test/api",
    "api",
    "http://site.test/api",
    "/a?b",
    "/a#b",
    "/a/..",
    1,
  ])("%s is none", (given) => {
    expect(() => checkBelowRoot(given)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  });

  test.each([
    ["/api", true],
    ["/api/", true],
    ["/api/x", true],
    ["/api?x", true],
    ["/y/../api/x", true],
    ["/y/%2e%2E/api/x", true],
    ["\\api\\x", true],
    ["/apis", false],
    ["/API", false],
    ["/", false],
    ["/api/../x", false],
    ["/api/%2e%2e/x", false],
    ["/api%2Fx", false],
    ["/%61pi", false],
    ["/x/api", false],
    ["//other.test/api", false],
    ["https://site.test/api", false],
    ["http://site.test:81/api", false],
    ["blob:http://site.test/api", false],
  ])("has %s below it: %s", (address, below) => {
    expect(isBelow(new URL(address, "http://site.test/y"), "/api", "http://site.test")).toBe(below);
  });
});
