import { RunnerError } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import type { Call } from "../runtime/call-request.js";
import type { Admitted, RequestRoute } from "../runtime/request.js";
import { checkThread } from "../wire/checks.js";
import { toErrorData } from "../wire/errors.js";
import type { CallContext, HostApi } from "../wire/host-api.js";

/** How a host answers each call of a tab: with what it replies, or by throwing a RunnerError. */
export type Handlers = {
  readonly [C in keyof HostApi]: (
    context: CallContext,
    ...given: Parameters<HostApi[C]>
  ) => ReturnType<HostApi[C]> | Promise<ReturnType<HostApi[C]>>;
};

/** Ids of a call, by their names in its route. */
export type Ids = Readonly<Record<string, string>>;

/** A call that is answered by plain data, as the request that would ask for it. */
export interface DataCall<I extends Ids> extends Pick<Call, "asked" | "method" | "query" | "body"> {
  /** Parts of the path; one that begins with ":" stands for an id. */
  readonly route: readonly string[];
  readonly ids: I;
}

export type ThreadIds = { readonly threadId: string };

/** The route of a thread. */
export const THREAD = ["threads", ":threadId"];

/** A call that names a thread and nothing else. @throws RunnerError `invalid-input` */
export function ofThread(
  route: RequestRoute,
  method: Call["method"],
  given: ThreadIds,
  ...rest: readonly string[]
): DataCall<ThreadIds> {
  const { threadId } = checkThread(given);
  return { asked: { route, threadId }, method, route: [...THREAD, ...rest], ids: { threadId } };
}

export const ofAll = (
  route: "threads/clear" | "threads/subscribe" | "threads/waiting",
  method: "GET" | "POST" = "POST",
): DataCall<Ids> => ({
  asked: { route },
  method,
  route: route.split("/"),
  ids: {},
  ...(method === "POST" && { body: {} }),
});

/** What a call asks for as the middleware made it. Few middlewares rewrite calls: the code is loaded when needed. */
export async function rewritten<T>(
  request: Admitted,
  asked: T,
  by: (rewriting: typeof import("../runtime/rewritten.js")) => T | Promise<T>,
): Promise<T> {
  return request.isReplaced ? by(await loaded(import("../runtime/rewritten.js"))) : asked;
}

/** Posts what comes, until the end or a failure: the tab asks anew. */
export async function postAll(port: MessagePort, all: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const one of all) port.postMessage(one);
  } catch (error) {
    port.postMessage({ error: toErrorData(error) });
  }
}

export function checkPort(port: unknown): asserts port is MessagePort {
  if (!(port instanceof MessagePort)) {
    throw new RunnerError("invalid-input", { field: "port" }, { message: "A MessagePort must be handed over" });
  }
}
