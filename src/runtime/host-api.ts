import type { RelayedHost, RelayedRequest } from "../wire/relayed-request.js";
import type { AttachRequest, LiveRun, Reply, RunRequest } from "../wire/shapes.js";
import type { CALLS, Row } from "./tab-calls.js";

/** The calls whose answer is a stream of frames, or that no middleware sees as a call. */
interface Streams {
  /** Starts a run; its frames arrive on `port`. Replies once the run is in the log or was refused. */
  run(request: RunRequest, port: MessagePort): LiveRun;
  /** Frames of a thread arrive on `port`. */
  attach(request: AttachRequest, port: MessagePort): null;
  /** The host's status arrives on `port`: a `StatusFrame` now and at each change. */
  watch(port: MessagePort): null;
  /** Replies once the request is accepted; the answer arrives on `port`, without a timeout; see `answerRelayed`. */
  fetch(request: RelayedRequest, port: MessagePort): RelayedHost;
}

type Given<G, P> = [...(G extends undefined ? [] : [request: G]), ...(P extends true ? [port: MessagePort] : [])];

/**
 * The calls that a tab may make to its host: arguments and results. Streams arrive on the port that a call transfers.
 * Set its handler before the call, because the first frame can arrive before the reply.
 */
export type HostApi = Streams & {
  [C in keyof typeof CALLS]: (typeof CALLS)[C] extends Row<infer G, infer R, infer P>
    ? (...given: Given<G, P>) => R
    : never;
};

/** Context sent with every call of a tab. */
export interface CallContext {
  /** For the middleware of the runtime; never stored. */
  readonly headers: Readonly<Record<string, string>>;
}

/** {@link HostApi} as sent over comlink: the context is the first argument, errors are data. */
export type HostCalls = {
  readonly [C in keyof HostApi]: (
    context: CallContext,
    ...given: Parameters<HostApi[C]>
  ) => Promise<Reply<ReturnType<HostApi[C]>>>;
};

/** How a host answers each call: with what it replies, or by throwing a RunnerError. */
export type Handlers = {
  readonly [C in keyof HostApi]: (
    context: CallContext,
    ...given: Parameters<HostApi[C]>
  ) => ReturnType<HostApi[C]> | Promise<ReturnType<HostApi[C]>>;
};
