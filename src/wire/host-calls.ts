import type { Remote } from "comlink";
import { RunnerError } from "../run/errors.js";
import { toErrorData } from "./errors.js";
import { HOST_METHODS, type HostApi } from "./host-api.js";

/** What goes with every call of a tab. */
export interface CallContext {
  /** For the middleware of the runtime; never stored. */
  readonly headers: Readonly<Record<string, string>>;
}

/** As comlink hands it over: each method takes the context first. */
export type HostCalls = {
  readonly [M in keyof HostApi]: (context: CallContext, ...given: Parameters<HostApi[M]>) => ReturnType<HostApi[M]>;
};

type AnyMethod = (...given: unknown[]) => unknown;
type Methods = Readonly<Record<string, AnyMethod>>;

/** The calls of a tab, each with this context. */
export function callsWith(remote: Remote<HostCalls>, context: CallContext): HostApi {
  const methods = remote as unknown as Methods; // those of HostApi, behind the context
  const bound = [...HOST_METHODS].map((name) => [name, (...given: unknown[]) => methods[name]!(context, ...given)]);
  return Object.fromEntries(bound) as HostApi; // each of its methods
}

/** What a host exposes: `apiOf` is asked for each call. */
export function hostCalls(apiOf: (context: CallContext) => HostApi): HostCalls {
  const exposed = [...HOST_METHODS].map((name) => [
    name,
    (context: unknown, ...given: unknown[]) => {
      try {
        const methods = apiOf(checkContext(context)) as unknown as Methods; // its arguments are checked where they are used
        return methods[name]!(...given);
      } catch (error) {
        return { error: toErrorData(error) };
      }
    },
  ]);
  return Object.fromEntries(exposed) as HostCalls; // each of its methods
}

/** @throws RunnerError `invalid-input` */
function checkContext(context: unknown): CallContext {
  const headers = (context as { readonly headers?: unknown } | null)?.headers;
  const isRecord = typeof headers === "object" && headers !== null && !Array.isArray(headers);
  if (isRecord && Object.values(headers).every((value) => typeof value === "string")) {
    return { headers: headers as CallContext["headers"] }; // just checked
  }
  throw new RunnerError("invalid-input", { field: "headers" }, { message: "headers must be a record of strings" });
}
