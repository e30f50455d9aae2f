import type { Message } from "@ag-ui/client";
import type { RouteName } from "./http/routes.js";

/** What a request can ask for: the routes of HTTP, and what only tabs can ask for. */
export type RequestRoute =
  | RouteName
  | "threads/delete"
  | "threads/get"
  | "threads/runs"
  | "threads/running"
  | "threads/stop"
  | "threads/subscribe"
  | "runs/get"
  | "runs/events";

/** What a request asks for, read once, so that nobody else has to parse paths or bodies. */
export interface Asked {
  /** Absent: nothing that this runtime answers. */
  readonly route?: RequestRoute;
  /** The agent that is to run, to be read or stopped; of a list of threads, whose threads. */
  readonly agentId?: string;
  readonly threadId?: string;
  /** The run that is to be started, stopped or read. */
  readonly runId?: string;
}

/**
 * What a request asks for, the same for each way in. An id is absent where the request names none, or names it in a body
 * that is not valid.
 */
export interface ResolvedRequest extends Asked {
  /**
   * The agents that have run in the thread, on every branch; none for an unknown thread. Read when it is called. Undefined
   * where nobody can tell: no thread is named, limits have cut off its oldest runs, a run of it has no agent's id, or the
   * runner is of another make.
   */
  agentIds(): Promise<readonly string[] | undefined>;
}

/** A request, by whichever way it came in. */
export interface Incoming {
  /** The page that asks, where the way in knows it: what it was given decides what it has cut. */
  readonly page?: string | undefined;
  readonly path: string;
  /** Made where somebody looks at it, once. */
  readonly request: () => Request;
  readonly asked: Asked;
  /** A host answers it for a page, over a port. */
  readonly isRelayed?: boolean;
}

/** A request that the middleware let through. */
export interface Admitted extends Incoming {
  readonly resolved: ResolvedRequest;
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
