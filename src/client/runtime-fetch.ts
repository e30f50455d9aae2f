import { transfer } from "comlink";
import { abortWith } from "../platform/abort.js";
import { RunnerError } from "../run/errors.js";
import { checkNames } from "../run/options.js";
import { checkBasePath } from "../wire/base-path.js";
import { errorResponse } from "../wire/error-response.js";
import { relayResponse } from "../wire/relay-response.js";
import {
  checkRelayed,
  refusalOf,
  toRelayed,
  triesOf,
  type RelayedHost,
  type RelayedRequest,
} from "../wire/relayed-request.js";
import type { HostLink } from "./host-link.js";

/** Options of the runtime's `fetch` beyond those of the platform's. */
export interface RuntimeFetchOptions {
  /** The path below which the runtime's routes are in the URL, like "/api/agents". Default "": the origin's root. */
  readonly basePath?: string;
}

/** See `fetch` of `RuntimeConnection`. */
export async function runtimeFetch(
  link: HostLink,
  request: Request,
  options: RuntimeFetchOptions = {},
): Promise<Response> {
  checkNames(options, { basePath: true }, { of: "fetch" });
  const { basePath = "" } = options;
  const path = checkBasePath(basePath);
  const { method, signal } = request;
  try {
    const relayed = await toRelayed(request, path);
    for (let left = triesOf(method) - 1; ; left--) {
      try {
        return await ask(link, relayed, signal);
      } catch (error) {
        if (signal.aborted || left === 0 || !RunnerError.is(error, "host-lost")) throw error;
      }
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const refusal = refusalOf(error) ?? withoutHost(error);
    if (refusal === undefined) throw error;
    return refusal;
  }
}

/**
 * Hands a request over to the host, which answers on `port`: see `relay` of `RuntimeConnection`. Its body is
 * transferred, so it is detached here afterwards.
 */
export async function relay(link: HostLink, request: RelayedRequest, port: MessagePort): Promise<RelayedHost> {
  const relayed = checkRelayed(request);
  // The call's deadline begins once there is a host.
  await link.linked();
  const { body } = relayed;
  const moved = body === undefined ? [] : [body instanceof ArrayBuffer ? body : body.buffer];
  return link.callOnce("fetch", transfer(relayed, moved), transfer(port, [port]));
}

/** Asks one host. Errors: RunnerError; the reason of `signal`. */
async function ask(link: HostLink, relayed: RelayedRequest, signal: AbortSignal): Promise<Response> {
  // Ends with the answer; the link's signal lives longer.
  const ending = abortWith(signal);
  const { port1, port2 } = new MessageChannel();
  const response = relayResponse(port1, ending.signal, { onSettled: () => ending.abort() });
  const taken = async (): Promise<Response> => {
    const { lost } = await link.linked();
    if (lost.aborted) throw lost.reason;
    lost.addEventListener("abort", () => ending.abort(lost.reason), { once: true, signal: ending.signal });
    ending.signal.throwIfAborted();
    await relay(link, relayed, port2);
    return response;
  };
  try {
    // The answer can come before the reply to the call.
    return await Promise.race([response, taken()]);
  } catch (error) {
    ending.abort(error);
    throw error;
  }
}

/** Codes of failures where there was a host. */
const OF_A_HOST: ReadonlySet<string> = new Set(["host-lost", "host-failed", "timeout", "closed", "invalid-input"]);

/** The response if there is no host to give one. */
function withoutHost(error: unknown): Response | undefined {
  if (!RunnerError.is(error) || OF_A_HOST.has(error.code)) return undefined;
  return errorResponse(503, error.code, error.message);
}
