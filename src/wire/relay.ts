import type { RelayedHost } from "./relayed-request.js";
import { isErrorData } from "./errors.js";
import type { RunnerErrorData } from "./shapes.js";

/** Messages from host to requester on the port of a request: WebKit cannot transfer a stream. */
export type RelayFrame =
  /** The first one. */
  | (RelayedHost & {
      readonly type: "head";
      readonly status: number;
      readonly statusText: string;
      readonly headers: readonly (readonly [name: string, value: string])[];
      readonly hasBody: boolean;
    })
  | { readonly type: "body"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** The body is complete. */
  | { readonly type: "end" }
  /** There is no answer, or the rest of the body is missing. */
  | { readonly type: "error"; readonly error: RunnerErrorData };

/** Messages from requester to host. */
export type RelayControl =
  /** The reader has consumed this many further `body` frames. */
  | { readonly type: "credit"; readonly frames: number }
  /** The answer is no longer wanted. */
  | { readonly type: "abort" };

/**
 * Answers requests like an HTTP server. It must react to `request.signal`, which aborts when the answer is no longer
 * wanted.
 */
export type RelayHandler = (request: Request, options: { readonly basePath: string }) => Promise<Response>;

/** The largest `body` frame, in bytes. */
export const BODY_FRAME_BYTES = 64 * 1_024;

/** Statuses without a body: https://fetch.spec.whatwg.org/#null-body-status */
export const NULL_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** @throws TypeError if the data is not a frame */
export function checkFrame(data: unknown): RelayFrame {
  const fields = (data ?? {}) as Record<string, unknown>;
  const isText = (...names: string[]): boolean => names.every((name) => typeof fields[name] === "string");
  // Each case checks all fields of its shape; `Response` itself checks status and headers.
  switch (fields["type"]) {
    case "head": {
      const { status, headers, hasBody } = fields;
      const isPairs = Array.isArray(headers) && headers.every((pair) => Array.isArray(pair) && pair.length === 2);
      if (typeof status !== "number" || typeof hasBody !== "boolean" || !isPairs) break;
      if (!isText("statusText", "hostId", "dbName")) break;
      return fields as unknown as RelayFrame;
    }
    case "body":
      if (!(fields["bytes"] instanceof Uint8Array)) break;
      return fields as unknown as RelayFrame;
    case "end":
      return { type: "end" };
    case "error":
      if (!isErrorData(fields["error"])) break;
      return fields as unknown as RelayFrame;
  }
  throw new TypeError("A frame has not the shape that it must have");
}
