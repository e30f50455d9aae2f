import { RELAY_MESSAGE } from "../platform/names.js";
import type { RelayedHost, RelayedRequest } from "./relayed-request.js";
import { isErrorData } from "./errors.js";
import type { RunnerErrorData } from "./shapes.js";

/**
 * Version of the messages from a service worker to pages; an old service worker may outlive the pages of its build.
 * History: 1: a request with its whole body, answered by the frames of relay.ts; later also the page that made it
 * (`clientId`), and the user of a page (`heard`) and of a request (`RelayOrder`): a page of a user takes no request of
 * a service worker that knows of none.
 */
export const RELAY_PROTOCOL = 1;

/**
 * First message of the handshake in which a service worker passes a request to a page. The page replies `heard` on the
 * port of this message, receives the request there ({@link RelayOrder}), and reports the result. So a page that replies
 * too late gets no request, and no request is answered twice.
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
  /** Whose request it is; absent: of no user. */
  readonly user?: string;
}

/** The page's replies. */
export type PageWord =
  /** The page has a runtime, that of this user. Sent at once. */
  | { readonly type: "heard"; readonly user?: string }
  /** The host has the request. */
  | ({ readonly type: "taken" } & RelayedHost)
  | { readonly type: "refused"; readonly error: RunnerErrorData };

/** A checked message to a page; undefined for anything else and for other versions. */
export function relayMessageOf(data: unknown): RelayMessage | undefined {
  const { type, v, words } = (data ?? {}) as Partial<Record<keyof RelayMessage, unknown>>;
  if (type !== RELAY_MESSAGE || v !== RELAY_PROTOCOL || !(words instanceof MessagePort)) return undefined;
  return { type, v, words };
}

/** An order; undefined without a port. `relay` checks its request. */
export function relayOrderOf(data: unknown): RelayOrder | undefined {
  const { request, port, user } = (data ?? {}) as Partial<RelayOrder>;
  if (!(port instanceof MessagePort)) return undefined;
  return { request: request as RelayedRequest, port, ...(user !== undefined && { user }) }; // see above
}

/** A checked reply of a page; undefined for anything else. */
export function pageWordOf(data: unknown): PageWord | undefined {
  const fields = (data ?? {}) as Record<string, unknown>;
  switch (fields["type"]) {
    case "heard": {
      const { user } = fields;
      return { type: "heard", ...(typeof user === "string" && { user }) };
    }
    case "taken": {
      const { hostId, dbName } = fields;
      return typeof hostId === "string" && typeof dbName === "string" ? { type: "taken", hostId, dbName } : undefined;
    }
    case "refused": {
      const { error } = fields;
      return isErrorData(error) ? { type: "refused", error } : undefined;
    }
    default:
      return undefined;
  }
}
