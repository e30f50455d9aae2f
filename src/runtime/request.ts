import type { BaseEvent, Message } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { Frame, LiveRun } from "../wire/shapes.js";
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
  | "threads/tool-calls"
  | "threads/tool-calls/claim"
  | "threads/tool-calls/answer"
  | "encryption/unlock"
  | "encryption/lock"
  | "encryption/change-key"
  | "models/offer"
  | "threads/waiting"
  | "threads/waiting/add"
  | "threads/waiting/move"
  | "threads/waiting/cancel"
  | "threads/waiting/retry"
  | "runs/get"
  | "runs/activate"
  | "runs/events";

/** What a request asks for, read once, so that nobody else has to parse paths or bodies. */
export interface Asked {
  /** Absent: no route of this runtime. */
  readonly route?: RequestRoute;
  /** The agent to run, read or stop; for a list of threads, the agent whose threads are listed. */
  readonly agentId?: string;
  readonly threadId?: string;
  /** The run that is to be started, stopped or read, or that waits. */
  readonly runId?: string;
}

/**
 * What a request asks for, the same for each way in. An id is absent where the request names none, or names it in a
 * body that is not valid.
 */
export interface ResolvedRequest extends Asked {
  /**
   * The agents that have run in the thread, on every branch; none for an unknown thread. Read when it is called.
   * Undefined if unknown: no thread is named, limits have cut off its oldest runs, one of its runs has no agentId, or
   * the runner is a third party's.
   */
  agentIds(): Promise<readonly string[] | undefined>;
}

/** A request from any entry point. */
export interface Incoming {
  /** The requesting page, if known: what it was given decides what it has cut. */
  readonly page?: string | undefined;
  readonly path: string;
  /** Created once, on demand. */
  readonly request: () => Request;
  readonly asked: Asked;
  /** A host answers it for a page, over a port. */
  readonly isRelayed?: boolean;
}

/** A request that the middleware let through. */
export interface Admitted extends Incoming {
  readonly resolved: ResolvedRequest;
  /** The middleware replaced the original request. */
  readonly isReplaced: boolean;
}

/** What a request led to. */
export interface Answer<T> {
  readonly value: T;
  /** What the after-middleware sees; called at once, and only if there is such a middleware. */
  readonly response: () => Response;
  /** Resolves when the request is over; absent: it is over now. Never rejects. */
  readonly ended?: Promise<RequestEnd>;
}

/** What is known of a request when it is over. */
export interface RequestEnd {
  readonly threadId?: string;
  readonly runId?: string;
  readonly messages?: () => Promise<readonly Message[]>;
}

/** A run as its requester gets it. */
export type ServedRun = {
  /** Resolves when the run is settled, with or without readers; for the after-middleware. Never rejects. */
  readonly ended: Promise<RequestEnd>;
  /** Must be called when the reader has everything or left. */
  readonly left: () => void;
} & (
  | {
      /** Of a runner of this library. */
      readonly is: "local";
      /** Whether it is in its thread's log; if not, its cursors are useless. */
      readonly isRecorded: boolean;
      readonly run: LiveRun;
      /** Its frames from the first event to the settled end; to be opened once. */
      readonly frames: (signal: AbortSignal) => AsyncGenerator<Frame, void>;
    }
  /** Of a third-party runner: the first subscription starts it, at the latest; later ones miss what came before. */
  | { readonly is: "foreign"; readonly events$: Observable<BaseEvent> }
);
