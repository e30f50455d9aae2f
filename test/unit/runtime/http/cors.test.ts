import { describe, expect, test } from "vitest";
import { createCors, type CorsOptions } from "../../../../src/runtime/http/cors.js";

const PAGE = "https://page.example";
const OTHER = "https://other.example";

const from = (origin: string | undefined, method = "POST", headers: Record<string, string> = {}): Request =>
  new Request("http://localhost/", {
    method,
    headers: { ...headers, ...(origin !== undefined && { Origin: origin }) },
  });

const headersOf = (response: Response | undefined): Record<string, string> =>
  Object.fromEntries([...response!.headers].filter(([name]) => name !== "content-type"));

/** What an answer says to a page of this origin. */
const toldTo = (origin: string | undefined, options: boolean | CorsOptions): Record<string, string> =>
  headersOf(createCors(options)!.apply(from(origin), new Response("x")));

test("nobody is told anything by default", () => {
  expect(createCors(undefined)).toBeUndefined();
  expect(createCors(false)).toBeUndefined();
});

describe("an answer", () => {
  test.each([true, {}, { origin: "*" }, { origin: ["*"] }])("is for everyone: %j", (options) => {
    for (const origin of [PAGE, "null", undefined]) {
      expect(toldTo(origin, options)).toEqual({ "access-control-allow-origin": "*" });
    }
  });

  test.each<CorsOptions["origin"]>([PAGE, [OTHER, PAGE], (origin) => (origin === PAGE ? origin : null)])(
    "is for the origins that are named: %s",
    (origin) => {
      expect(toldTo(PAGE, { origin: origin! })).toEqual({ "access-control-allow-origin": PAGE, vary: "Origin" });
      for (const stranger of ["https://page.example.evil.example", "http://page.example", "null", undefined]) {
        // Vary: a cache must not hand this answer to the page that is allowed.
        expect(toldTo(stranger, { origin: origin! })).toEqual({ vary: "Origin" });
      }
    },
  );

  test.each([
    () => "*",
    () => OTHER,
    () => undefined,
    () => true as unknown as string,
    () => Promise.resolve(PAGE) as unknown as string,
    () => {
      throw new Error("no");
    },
  ])("is for nobody whom a function does not name: %s", (origin) => {
    expect(toldTo(PAGE, { origin })).toEqual({ vary: "Origin" });
  });

  test("may allow cookies, to those who are allowed", () => {
    const options = { origin: [PAGE], credentials: true };
    expect(toldTo(PAGE, options)).toHaveProperty("access-control-allow-credentials", "true");
    expect(toldTo(OTHER, options)).toEqual({ vary: "Origin" });
  });

  test("may show headers", () => {
    expect(toldTo(PAGE, { exposeHeaders: ["X-A", "X-B"] })).toHaveProperty("access-control-expose-headers", "X-A, X-B");
  });

  test("keeps its status, headers and body, which is not read before", async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulled++;
          controller.enqueue(new TextEncoder().encode("event"));
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { "Content-Type": "text/event-stream", Vary: "Accept", "Set-Cookie": "a=1" };
    const answer = createCors({ origin: PAGE })!.apply(
      from(PAGE),
      new Response(body, { status: 201, statusText: "Made", headers }),
    );
    expect(pulled).toBe(0);
    expect([answer.status, answer.statusText]).toEqual([201, "Made"]);
    expect(Object.fromEntries(answer.headers)).toEqual({
      "content-type": "text/event-stream",
      "set-cookie": "a=1",
      vary: "Accept, Origin",
      "access-control-allow-origin": PAGE,
    });
    expect(await answer.text()).toBe("event");
  });

  test("whose headers cannot be set is told as well", () => {
    const answer = createCors(true)!.apply(from(PAGE), Response.redirect("http://localhost/x"));
    expect(answer.headers.get("Access-Control-Allow-Origin")).toBe("*");
    expect(answer.headers.get("Location")).toBe("http://localhost/x");
  });

  test("without a body stays without one", () => {
    expect(createCors(true)!.apply(from(PAGE), new Response(null, { status: 204 })).body).toBeNull();
  });

  test("that is an error of the network is left as it is", () => {
    const error = Response.error();
    expect(createCors(true)!.apply(from(PAGE), error)).toBe(error);
  });

  test("varies by the origin once", () => {
    const vary = (value: string): string | null =>
      createCors({ origin: PAGE })!
        .apply(from(PAGE), new Response(null, { headers: { Vary: value } }))
        .headers.get("Vary");
    expect(vary("accept, origin")).toBe("accept, origin");
    expect(vary("*")).toBe("*");
  });
});

describe("a preflight", () => {
  const asks = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
  };
  const answered = (options: boolean | CorsOptions, origin = PAGE): Record<string, string> =>
    headersOf(createCors(options)!.preflight(from(origin, "OPTIONS", asks)));

  test("is answered with 204, another method is not", () => {
    const cors = createCors(true)!;
    expect(cors.preflight(from(PAGE, "OPTIONS"))?.status).toBe(204);
    expect(cors.preflight(from(undefined, "OPTIONS"))?.body).toBeNull();
    for (const method of ["GET", "HEAD", "POST", "PATCH", "DELETE"]) {
      expect(cors.preflight(from(PAGE, method))).toBeUndefined();
    }
  });

  test("by default allows the routes' methods and the headers that it asks for", () => {
    expect(answered(true)).toEqual({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, HEAD, POST, PATCH, DELETE",
      "access-control-allow-headers": "authorization,content-type",
      vary: "Access-Control-Request-Method, Access-Control-Request-Headers",
    });
  });

  test("allows what the options say", () => {
    const options = { origin: PAGE, methods: ["POST"], allowHeaders: ["X-A", "X-B"], maxAge: 600, credentials: true };
    expect(answered(options)).toEqual({
      "access-control-allow-origin": PAGE,
      "access-control-allow-credentials": "true",
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": "X-A, X-B",
      "access-control-max-age": "600",
      vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
    });
  });

  test("of another origin is told of none", () => {
    expect(answered({ origin: OTHER })).not.toHaveProperty("access-control-allow-origin");
  });
});

test.each<[string, CorsOptions]>([
  ["cors.credentials", { credentials: true }],
  ["cors.credentials", { credentials: true, origin: "*" }],
  ["cors.credentials", { credentials: true, origin: [PAGE, "*"] }],
  ["cors.origin", { origin: "page.example" }],
  ["cors.origin", { origin: `${PAGE}/` }],
  ["cors.origin", { origin: [`${PAGE}/path`] }],
  ["cors.origin", { origin: "https://Page.example" }],
  ["cors.origin", { origin: "https://page.example:443" }],
  ["cors.origin", { origin: "http://[::1" }],
  ["cors.origin", { origin: "https://a.example, https://b.example" }],
  ["cors.origin", { origin: "https://*.page.example" }],
  ["cors.credentials", { origin: PAGE, credentials: "false" as unknown as boolean }],
  ["cors.allowHeaders", { allowHeaders: null as unknown as string[] }],
  ["cors.methods", { methods: ["GET, POST"] }],
  ["cors.methods", { methods: "GET" as unknown as string[] }],
  ["cors.allowHeaders", { allowHeaders: ["X-A\r\nX-B"] }],
  ["cors.exposeHeaders", { exposeHeaders: [""] }],
  ["cors.maxAge", { maxAge: -1 }],
  ["cors.maxAge", { maxAge: 1.5 }],
])("%s is refused where it is wrong: %j", (field, options) => {
  expect(() => createCors(options)).toThrow(expect.objectContaining({ code: "invalid-input", details: { field } }));
});

test.each(["null", "http://localhost:5173", "http://[::1]:5173", "chrome-extension://abcdef", "capacitor://localhost"])(
  "%s may be an origin",
  (origin) => {
    expect(toldTo(origin, { origin })).toHaveProperty("access-control-allow-origin", origin);
  },
);
