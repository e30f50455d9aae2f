import { checkKind, checkNames, type Names } from "../run/options.js";
import { checkBelowRoot, isBelow } from "../wire/base-path.js";
import type { RuntimeConnection } from "./connect-runtime.js";

/** Where `fetch` is replaced: a window, or what stands in for one. */
export interface FetchTarget {
  fetch: typeof fetch;
  readonly location: { readonly href: string; readonly origin: string };
  readonly document?: { readonly baseURI: string };
}

/** Options of {@link installRuntimeFetch}. */
export interface InstallRuntimeFetchOptions {
  /** Requests of the page's origin to this path and below it are the runtime's: "/api/agents". Never "/". */
  readonly basePath: string;
  /** Whose `fetch` is replaced. Default: the global object's. */
  readonly target?: FetchTarget;
}

const NAMES: Names<InstallRuntimeFetchOptions> = { basePath: true, target: ["fetch"] };

/** A replacement of `fetch` that this module made. */
interface Replacement {
  isOn: boolean;
  /** The property before; undefined where it was inherited. */
  readonly before: PropertyDescriptor | undefined;
}

const replacements = new WeakMap<object, Replacement>();

/**
 * For front ends that call `fetch`: the runtime's host answers requests below `basePath`; all others go to the previous
 * `fetch`, with the same `this` and arguments. Several base paths nest.
 *
 * @returns undoes it. If somebody else has replaced `fetch` meanwhile, that replacement stays, and what it passes on
 *   goes to the previous `fetch`
 * @throws RunnerError `invalid-input` for an invalid base path, or "/"
 */
export function installRuntimeFetch(
  runtime: Pick<RuntimeConnection, "fetch">,
  options: InstallRuntimeFetchOptions,
): () => void {
  checkKind("runtime", runtime, ["fetch"]);
  checkNames(options, NAMES, { of: "installRuntimeFetch", isRequired: true });
  const { basePath, target = globalThis } = options;
  const path = checkBelowRoot(basePath);
  const before = Object.getOwnPropertyDescriptor(target, "fetch");
  const original = target.fetch;
  const replacement: Replacement = { isOn: true, before };

  const replaced: typeof fetch = function (this: unknown, ...args: Parameters<typeof fetch>): Promise<Response> {
    const [input, init] = args;
    const url = replacement.isOn ? addressOf(input, target) : undefined;
    if (url === undefined || !isBelow(url, path, target.location.origin)) return Reflect.apply(original, this, args);
    return runtime.fetch(input instanceof Request ? input : url, init, { basePath: path });
  };
  replacements.set(replaced, replacement);
  const { configurable = true, enumerable = true } = before ?? {};
  Object.defineProperty(target, "fetch", { value: replaced, writable: true, configurable, enumerable });

  return () => {
    replacement.isOn = false;
    if (target.fetch === replaced) restore(target);
  };
}

/** Removes our replacement, and those below it that were undone before. */
function restore(target: FetchTarget): void {
  for (;;) {
    const replacement = replacements.get(target.fetch);
    if (replacement === undefined || replacement.isOn) return;
    if (replacement.before !== undefined) Object.defineProperty(target, "fetch", replacement.before);
    else Reflect.deleteProperty(target, "fetch");
  }
}

/** The URL of a request, of which nothing else is read; undefined for an invalid one, which `fetch` itself reports. */
function addressOf(input: RequestInfo | URL, { location, document }: FetchTarget): URL | undefined {
  try {
    return new URL(input instanceof Request ? input.url : String(input), document?.baseURI ?? location.href);
  } catch {
    return undefined;
  }
}
