import type { BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";

/**
 * Lets in who sends a token (`Authorization: Bearer …`) that `verify` knows, everybody else gets 401. Tabs send it by
 * `connectRuntime({ headers: () => ({ authorization: … }) })`, which is asked for each call.
 *
 * What comes after it finds the user's name in the header `x-user`, encoded as in a URL; what a caller puts there itself is
 * lost. Agents that call a server send that header on, and the token where `forwardHeaders.allow` has `authorization`.
 *
 * Its limit: it guards what the runtime does. Any script of the page's own origin can read the origin's database, so what
 * people of one browser must not see of each other belongs behind a server, or into origins of their own.
 *
 * @param verify whose token it is; undefined: nobody's. What it throws is answered with 500
 */
export function authentication(
  verify: (token: string) => string | undefined | Promise<string | undefined>,
): BeforeRequestMiddleware {
  return async ({ request }) => {
    const token = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    const user = token === undefined ? undefined : await verify(token);
    if (user === undefined) {
      return Response.json({ error: "Unauthorized" }, { status: 401, headers: { "www-authenticate": "Bearer" } });
    }
    const headers = new Headers(request.headers);
    headers.set("x-user", encodeURIComponent(user));
    return new Request(request, { headers });
  };
}
