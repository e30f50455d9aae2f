import { RunnerError } from "../run/errors.js";
import { isSegment } from "./http/segments.js";
import type { Asked, Incoming } from "./request.js";

/** A non-HTTP call, described as the equivalent HTTP request. */
export interface Call {
  readonly asked: Asked;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Parts of the path, not encoded. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Plain data. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborts when the caller stops waiting and when the call is over. */
  readonly signal?: AbortSignal;
}

/**
 * The request is created once, on demand; creating it throws RunnerError `invalid-input` for a call that no request can
 * represent faithfully.
 */
export function callRequest(call: Call): Incoming {
  const path = `/${call.path.map((part) => encodeURIComponent(part.toWellFormed())).join("/")}`;
  let made: Request | undefined;
  return { path, asked: call.asked, request: () => (made ??= requestOf(call, path)) };
}

/** @throws RunnerError `invalid-input` */
function requestOf(call: Call, path: string): Request {
  // The URL would change meaning: ".." goes up, and a lone surrogate becomes another character.
  if (!call.path.every(isSegment)) {
    throw new RunnerError("invalid-input", { field: "id" }, { message: "An id must be one that can stand in a URL" });
  }
  const { method, query = {}, body, headers, signal } = call;
  try {
    const url = new URL(path, globalThis.location?.origin ?? "http://localhost");
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const sent = new Headers(headers);
    const init = { method, headers: sent, ...(signal !== undefined && { signal }) };
    if (body === undefined) return new Request(url, init);
    sent.set("content-type", "application/json");
    return new Request(url, { ...init, body: JSON.stringify(body) });
  } catch (cause) {
    // An invalid header, or a body that is not JSON.
    const message = "The call's headers or its input are nothing that a request can carry";
    throw new RunnerError("invalid-input", { field: "request" }, { message, cause });
  }
}
