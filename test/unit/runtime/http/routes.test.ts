import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchRoute, methodsOf, pathOf, refuseMethod, type Route } from "../../../../src/runtime/http/routes.js";
import { checkBasePath } from "../../../../src/wire/base-path.js";
import { times } from "../../property.js";
import { expectRefusal, refusal, told } from "./kit.js";

const READ = "GET, HEAD";

const routes: readonly [path: string, route: Route, allow: string][] = [
  ["/info", { name: "info" }, READ],
  ["/health", { name: "health" }, READ],
  ["/transcribe", { name: "transcribe" }, "POST"],
  ["/agent/a/run", { name: "agent/run", agentId: "a" }, "POST"],
  ["/agent/a/connect", { name: "agent/connect", agentId: "a" }, "POST"],
  ["/agent/a/suggest", { name: "agent/suggest", agentId: "a" }, "POST"],
  ["/agent/a/stop/t", { name: "agent/stop", agentId: "a", threadId: "t" }, "POST"],
  ["/threads", { name: "threads/list" }, READ],
  ["/threads/clear", { name: "threads/clear" }, "POST"],
  ["/threads/t", { name: "threads/update", threadId: "t" }, "PATCH, DELETE"],
  ["/threads/t/archive", { name: "threads/archive", threadId: "t" }, "POST"],
  ["/threads/t/messages", { name: "threads/messages", threadId: "t" }, READ],
  ["/threads/t/events", { name: "threads/events", threadId: "t" }, READ],
  ["/threads/t/state", { name: "threads/state", threadId: "t" }, READ],
];

describe.each(["", "/api/copilotkit"])("below %j", (base) => {
  test.each(routes)("%s is matched", (path, route) => {
    expect(matchRoute(base + path, base)).toEqual(route);
  });

  test.each(routes)("%s may end with a slash, not with two", (path, route) => {
    expect(matchRoute(`${base}${path}/`, base)).toEqual(route);
    expect(matchRoute(`${base}${path}//`, base)).toBeUndefined();
  });

  test.each(routes)("%s is the path of its route", (path, route) => {
    expect(pathOf(route, base)).toBe(base + path);
  });

  test.each(routes)("%s is not matched deeper or elsewhere", (path) => {
    expect(matchRoute(`${base}/deeper${path}`, base)).toBeUndefined();
    expect(matchRoute(`/elsewhere${path}`, "/base")).toBeUndefined();
    expect(matchRoute(`${base}/${path}`, base)).toBeUndefined();
    expect(matchRoute(`${base}${path}/deeper/still/and/more`, base)).toBeUndefined();
  });
});

test.each(routes)("%s refuses each other method with 405 and Allow", async (_, route, allow) => {
  expect(methodsOf(route).join(", ")).toBe(allow);
  for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", "__proto__", ""]) {
    const answer = refuseMethod(method, route);
    expect([method, answer === undefined]).toEqual([method, allow.split(", ").includes(method)]);
    if (answer === undefined) continue;
    expect(answer.headers.get("Allow")).toBe(allow);
    expect(await told(answer)).toEqual({ status: 405, body: { error: "Method not allowed" } });
  }
});

test.each([
  "",
  "/",
  "//",
  "/base",
  "/base/",
  "/based/info",
  "/base//info",
  "/base/info/x",
  "/base/INFO",
  "/base/inf%6F",
  "/base/agent//run",
  "/base/agent/%/run",
  "/base/agent/%zz/run",
  "/base/agent/%C3/run",
  "/base/agent/%C0%AE/run",
  "/base/agent/a/stop/%E0%A4%A",
  "/base/agent/a",
  "/base/agent/a/walk",
  "/base/agent/a/run/b",
  "/base/agent/a/stop",
  "/base/agent/a/stop/",
  "/base/threads//messages",
  "/base/threads/subscribe",
  "/base/threads/t/unknown",
  "/base/__proto__",
  "/base/toString",
])("%j is no route", (path) => {
  expect(matchRoute(path, "/base")).toBeUndefined();
});

test.each([
  ["__proto__", "__proto__"],
  ["constructor", "constructor"],
  ["..a", "..a"],
  ["%252E%252E", "%2E%2E"],
  ["%2F", "/"],
  ["a%2Fb", "a/b"],
  ["%252F", "%2F"],
  ["%00", "\0"],
  ["%20", " "],
  ["a+b", "a+b"],
  ["%C3%A4", "ä"],
  ["%63lear", "clear"],
  ["run", "run"],
  ["name", "name"],
])("the id %s is decoded once, and is an id like any other", (spelled, id) => {
  expect(matchRoute(`/agent/${spelled}/run`, "")).toEqual({ name: "agent/run", agentId: id });
  expect(matchRoute(`/agent/${spelled}/stop/${spelled}`, "")).toEqual({
    name: "agent/stop",
    agentId: id,
    threadId: id,
  });
  expect(matchRoute(`/threads/${spelled}`, "")).toEqual({ name: "threads/update", threadId: id });
  expect(matchRoute(`/threads/${spelled}/state`, "")).toEqual({ name: "threads/state", threadId: id });
});

test.each(["/agent/../run", "/threads/%2E", "/agent/a%5Cb/run", "/agent/a/stop/%2e%2E"])(
  "%s has an id that a URL parser would make another path of: 400",
  async (path) => {
    await expect(refusal(Promise.resolve().then(() => matchRoute(path, "")))).resolves.toMatchObject({ status: 400 });
  },
);

test.each(["", ".", "..", "\ud800", "a\\b"])("the id %j has no path", (id) => {
  expect(pathOf({ name: "agent/run", agentId: id }, "")).toBeUndefined();
  expect(pathOf({ name: "agent/stop", agentId: "a", threadId: id }, "")).toBeUndefined();
  expect(pathOf({ name: "threads/update", threadId: id }, "")).toBeUndefined();
});

test("every route of every id has a path that a URL keeps and that is matched again", () => {
  const id = fc.oneof(
    fc.string({ unit: "binary", minLength: 1 }),
    fc.constantFrom("clear", "subscribe", "a/b", "%", "?"),
  );
  const base = fc.constantFrom("", "/api", checkBasePath("/ä b/"));
  fc.assert(
    fc.property(fc.constantFrom(...routes), id, id, base, ([, shape], agentId, threadId, basePath) => {
      const route = {
        ...shape,
        ...("agentId" in shape && { agentId }),
        ...("threadId" in shape && { threadId }),
      };
      const path = pathOf(route, basePath);
      const isPlain = Object.values(route).every((value) => !/^\.{1,2}$|\\/.test(value));
      if (!isPlain) return expect(path).toBeUndefined();
      const { pathname } = new URL(path!, "http://localhost");
      expect(pathname).toBe(path);
      expect(matchRoute(pathname, basePath)).toEqual(route);
    }),
    times(500),
  );
});

test("whatever the path, matching it gives ids that are not empty, or throws 400", async () => {
  const segment = fc.oneof(
    fc.constantFrom(
      "agent",
      "threads",
      "run",
      "connect",
      "stop",
      "info",
      "clear",
      "..",
      "%2F",
      "%",
      "%E0",
      "__proto__",
      "",
    ),
    fc.string({ unit: "binary" }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(segment, { maxLength: 6 }), fc.constantFrom("", "/base"), async (segments, base) => {
      let route: Route | undefined;
      try {
        route = matchRoute(`${base}/${segments.join("/")}`, base);
      } catch (thrown) {
        return expectRefusal(thrown);
      }
      for (const value of Object.values(route ?? {})) expect(value).not.toBe("");
    }),
    times(500),
  );
});

test.each([
  ["", ""],
  ["/", ""],
  ["/api", "/api"],
  ["/api/", "/api"],
  ["/api//", "/api"],
  ["/api/copilotkit", "/api/copilotkit"],
  ["/ä b", "/%C3%A4%20b"],
  ["/a/../b", "/b"],
])("the base path %j is %j in front of routes", (given, path) => {
  expect(checkBasePath(given)).toBe(path);
  expect(matchRoute(`${path}/info`, path)).toEqual({ name: "info" });
});

test.each([
  "api",
  "//host",
  "//host/api",
  "/\\host",
  "/api?x=1",
  "/api#x",
  "/api//x",
  "http://host/api",
  "?",
  undefined as unknown as string,
  7 as unknown as string,
])("%j is no base path", (given) => {
  expect(() => checkBasePath(given)).toThrow(expect.objectContaining({ code: "invalid-input" }));
});
