import type { BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";

/**
 * Several middlewares as the one that a runtime takes: each is given the request that the one before it has made, and the
 * first that answers ends it.
 *
 * All are told what came in (`resolved`): those that put another thread or agent into its place come last.
 *
 *     beforeRequestMiddleware: inOrder(authentication(verify), rateLimit({ perMinute: 60 }))
 */
export function inOrder(...middlewares: readonly BeforeRequestMiddleware[]): BeforeRequestMiddleware {
  return async (context) => {
    let { request } = context;
    for (const middleware of middlewares) {
      const said = await middleware({ ...context, request, path: new URL(request.url).pathname });
      if (said === undefined || said === null) continue;
      // Frameworks bring Responses of their own class; a Request has no status.
      if ("status" in said) return said;
      request = said;
    }
    return request;
  };
}
