import { checkNames, type Names } from "../run/options.js";
import { checkBasePath, isBelow } from "../wire/base-path.js";
import type { RuntimeConnection } from "./connect-runtime.js";

/** Where `fetch` is replaced: a window, or what stands in for one. */
export interface FetchTarget {
  fetch: typeof fetch;
  readonly location: { readonly href: string; readonly origin: string };
  readonly document?: { readonly baseURI: string };
}

/** Which requests the runtime answers, and whose `fetch` is replaced. */
export interface InstallRuntimeFetchOptions {
  /** Requests of the page's origin to this path, and to what is below it, are the runtime's: "/api/agents". Never "/". */
  readonly basePath: string;
  /** Default: the global object. */
  readonly target?: FetchTarget;
}

const NAMES: Names<InstallRuntimeFetchOptions> = { basePath: true, target: true };

/** A replacement of `fetch` that this module made. */
interface Replacement {
  isOn: boolean;
  /** The property as it was; undefined where the target had inherited it. */
  readonly before: PropertyDescriptor | undefined;
}

const replacements = new WeakMap<object, Replacement>();

/**
 * For front ends that call `fetch`: requests below `basePath` are answered by the runtime's host, all others by the
 * `fetch` that was there, with the same `this` and arguments. Several base paths nest.
 *
 * @returns how to undo it: what was there is there again, unless somebody else has replaced `fetch` meanwhile: then that
 *   stays, and all that it passes on goes to what was there
 * @throws RunnerError `invalid-input` for a base path that is none, or is "/"
 */
export function installRuntimeFetch(
  runtime: Pick<RuntimeConnection, "fetch">,
  options: InstallRuntimeFetchOptions,
): () => void {
  checkNames(options, NAMES, { of: "installRuntimeFetch", isRequired: true });
  const { basePath, target = globalThis } = options;
  const path = checkBasePath(basePath);
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

/** Takes off our replacement, and those of ours below it that were undone before. */
function restore(target: FetchTarget): void {
  for (;;) {
    const replacement = replacements.get(target.fetch);
    if (replacement === undefined || replacement.isOn) return;
    if (replacement.before !== undefined) Object.defineProperty(target, "fetch", replacement.before);
    else Reflect.deleteProperty(target, "fetch");
  }
}

/** Nothing of a request is read but its address; undefined where it has none, which `fetch` itself has to say. */
function addressOf(input: RequestInfo | URL, { location, document }: FetchTarget): URL | undefined {
  try {
    return new URL(input instanceof Request ? input.url : String(input), document?.baseURI ?? location.href);
  } catch {
    return undefined;
  }
}
