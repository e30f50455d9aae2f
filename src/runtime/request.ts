import type { Message } from "@ag-ui/client";

/** A request, by whichever way it came in. */
export interface Incoming {
  readonly path: string;
  /** Made where somebody looks at it, once. */
  readonly request: () => Request;
}

/** A request that the middleware let through. */
export interface Admitted extends Incoming {
  /** The middleware put this request into the place of the one that came in. */
  readonly isReplaced: boolean;
}

/** What a request led to. */
export interface Answer<T> {
  readonly value: T;
  /** What the middleware after it is shown; asked for at once, and only where there is one. */
  readonly response: () => Response;
  /** When the request is over, where that is not now. Never rejects. */
  readonly ended?: Promise<RequestEnd>;
}

/** What is known of a request when it is over. */
export interface RequestEnd {
  readonly threadId?: string;
  readonly runId?: string;
  readonly messages?: () => Promise<readonly Message[]>;
}
