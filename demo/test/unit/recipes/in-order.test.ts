import type { BeforeRequestContext, BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";
import { expect, test } from "vitest";
import { inOrder } from "../../../recipes/in-order.js";

const request = new Request("http://localhost/a");
// The runtime is not looked at here.
const context = { request, path: "/a" } as BeforeRequestContext;
const to =
  (path: string): BeforeRequestMiddleware =>
  () =>
    new Request(`http://localhost${path}`);

test("each is given the request of the one before it, and its path", async () => {
  const seen: string[] = [];
  const see: BeforeRequestMiddleware = (given) =>
    void seen.push(`${given.path} ${new URL(given.request.url).pathname}`);
  expect(await inOrder(see, to("/b"), see, to("/c"), see)(context)).toMatchObject({ url: "http://localhost/c" });
  expect(seen).toEqual(["/a /a", "/b /b", "/c /c"]);
});

test("the first that answers ends it", async () => {
  const answer = new Response(null, { status: 403 });
  const never = (): never => {
    throw new Error("asked");
  };
  expect(
    await inOrder(
      () => undefined,
      async () => answer,
      never,
    )(context),
  ).toBe(answer);
});

test("none of them leaves the request as it is", async () => {
  expect(await inOrder(() => undefined)(context)).toBe(request);
  expect(await inOrder()(context)).toBe(request);
});

test("what one returns by mistake is no yes", async () => {
  await expect(inOrder(() => false as unknown as undefined)(context)).rejects.toThrow(TypeError);
});
