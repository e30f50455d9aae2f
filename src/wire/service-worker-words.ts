import { RELAY_MESSAGE } from "../platform/names.js";
import type { RelayedHost, RelayedRequest } from "./relayed-request.js";
import type { RunnerErrorData } from "./shapes.js";

/**
 * What a service worker tells the pages that it asks; an old one may live on beside new pages. History:
 * 1: a request with its whole body, answered by the frames of relay.ts; later also the page that asked (`clientId`).
 */
export const RELAY_PROTOCOL = 1;

/**
 * How a service worker hands a request to a page: it asks whether somebody is there ({@link RelayMessage}), the page
 * says `heard` on the port of that message, is sent the request on it ({@link RelayOrder}), and says what became of it.
 * So a page that hears too late gets no request, and no request is answered twice.
 */
export interface RelayMessage {
  readonly type: typeof RELAY_MESSAGE;
  readonly v: typeof RELAY_PROTOCOL;
  readonly words: MessagePort;
}

/** The request, and the port on which the page's host answers it. */
export interface RelayOrder {
  readonly request: RelayedRequest;
  readonly port: MessagePort;
}

/** What the page says. */
export type PageWord =
  /** It has a runtime. Said at once. */
  | { readonly type: "heard" }
  /** The host has the request. */
  | ({ readonly type: "taken" } & RelayedHost)
  | { readonly type: "refused"; readonly error: RunnerErrorData };

/** A message to a page, checked; undefined for anything else, and for another version. */
export function relayMessageOf(data: unknown): RelayMessage | undefined {
  const { type, v, words } = (data ?? {}) as Partial<Record<keyof RelayMessage, unknown>>;
  if (type !== RELAY_MESSAGE || v !== RELAY_PROTOCOL || !(words instanceof MessagePort)) return undefined;
  return { type, v, words };
}

/** An order, without a check of its request, which `relay` does; undefined where there is no port to answer on. */
export function relayOrderOf(data: unknown): RelayOrder | undefined {
  const { request, port } = (data ?? {}) as Partial<RelayOrder>;
  return port instanceof MessagePort ? { request: request as RelayedRequest, port } : undefined; // see above
}

/** A page's word, checked; undefined for anything else. */
export function pageWordOf(data: unknown): PageWord | undefined {
  const fields = (data ?? {}) as Record<string, unknown>;
  switch (fields["type"]) {
    case "heard":
      return { type: "heard" };
    case "taken": {
      const { hostId, dbName } = fields;
      return typeof hostId === "string" && typeof dbName === "string" ? { type: "taken", hostId, dbName } : undefined;
    }
    case "refused": {
      const error = fields["error"] as Partial<RunnerErrorData> | null | undefined;
      if (typeof error?.code !== "string" || typeof error.message !== "string") return undefined;
      return { type: "refused", error: error as RunnerErrorData }; // other fields are only passed on
    }
    default:
      return undefined;
  }
}
