import type { BaseEvent, Message, State } from "@ag-ui/client";
import type { PlacedEvent } from "../run/pack.js";
import type { ThreadUpdate } from "../run/types.js";
import type { ModelOffer } from "./model-frames.js";
import type { RelayedHost, RelayedRequest } from "./relayed-request.js";
import type {
  AttachRequest,
  Enqueued,
  EnqueueRequest,
  LiveRun,
  MessagePage,
  MessagePageQuery,
  NamedRun,
  NamedWaiting,
  Reply,
  RunEventsRequest,
  RunListQuery,
  RunRequest,
  RunSummary,
  StopCall,
  ThreadListQuery,
  ThreadSummary,
  ToolCallAnswer,
  ToolCallClaim,
  WaitingMove,
} from "./shapes.js";

type Named = { readonly threadId: string };

/**
 * The calls that a tab may make to its host: arguments and results. Streams arrive on the port that a call transfers.
 * Set its handler before the call, because the first frame can arrive before the reply.
 */
export interface HostApi {
  /** Starts a run; its frames arrive on `port`. Replies once the run is in the log or was refused. */
  run(request: RunRequest, port: MessagePort): LiveRun;
  /** Frames of a thread arrive on `port`. */
  attach(request: AttachRequest, port: MessagePort): null;
  stop(request: StopCall): boolean;
  isRunning(request: Named): boolean;
  listThreads(query: ThreadListQuery): readonly ThreadSummary[];
  messages(query: MessagePageQuery): MessagePage;
  listRuns(query: RunListQuery & Named): readonly RunSummary[];
  getRun(request: NamedRun): RunSummary | undefined;
  getRunEvents(request: RunEventsRequest): readonly PlacedEvent[];
  getThreadMessages(request: Named): readonly Message[];
  getThreadEvents(request: Named): readonly BaseEvent[];
  getThreadState(request: Named): State | undefined;
  getThread(request: Named): ThreadSummary | undefined;
  updateThread(request: Named & { readonly changes: ThreadUpdate }): ThreadSummary;
  deleteThread(request: Named): boolean;
  /** Deletes every thread; returns how many. */
  clearThreads(): number;
  /** The host's status arrives on `port`: a `StatusFrame` now and at each change. */
  watch(port: MessagePort): null;
  /** Changes of the list of threads arrive on `port` as `ThreadChange`s, until the tab posts anything to it. */
  watchThreads(port: MessagePort): null;
  /** A thread's pending tool calls arrive on `port`, each time the whole list, until the tab posts anything to it. */
  watchToolCalls(request: Named, port: MessagePort): null;
  /** Claims a tool call for this tab. Returns whether the tab may run it now. */
  claimToolCall(request: ToolCallClaim): boolean;
  answerToolCall(request: ToolCallAnswer): null;
  /** Offers a language model that this tab runs: requests arrive on `port`, see model-frames.ts. */
  offerModel(request: ModelOffer, port: MessagePort): null;
  /** Has a run wait that cannot begin at once. A repeated request adds one. */
  enqueue(request: EnqueueRequest): Enqueued;
  /**
   * The waiting runs of a thread, or of all, arrive on `port`: each time all of them, in order within their thread, until the
   * tab posts anything to it.
   */
  watchWaiting(request: Partial<Named>, port: MessagePort): null;
  /** Whether both wait. */
  moveWaiting(request: WaitingMove): boolean;
  /** Whether it waited. */
  cancelWaiting(request: NamedWaiting): boolean;
  /** Tries one again that could not start, or that waits for a time. Whether it waits. */
  retryWaiting(request: NamedWaiting): boolean;
  /** Replies once the request is accepted; the answer arrives on `port`, without a timeout; see `answerRelayed`. */
  fetch(request: RelayedRequest, port: MessagePort): RelayedHost;
}

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
