import type { BaseEvent, Message, State } from "@ag-ui/client";
import type { PlacedEvent } from "../run/pack.js";
import type { ThreadUpdate } from "../run/types.js";
import type { RelayedHost, RelayedRequest } from "./relayed-request.js";
import type {
  AttachRequest,
  LiveRun,
  MessagePage,
  MessagePageQuery,
  NamedRun,
  Reply,
  RunEventsRequest,
  RunListQuery,
  RunRequest,
  RunSummary,
  StopCall,
  ThreadListQuery,
  ThreadSummary,
} from "./shapes.js";

/**
 * What a tab may call in its host, through comlink. Streams come on the port that a call hands over: its handler must
 * stand before the call, because the first frame can come before the reply.
 */
export interface HostApi {
  /** Starts a run; its frames come on `port`. Replies once the run stands in the log, or was refused. */
  run(request: RunRequest, port: MessagePort): Promise<Reply<LiveRun>>;
  /** Frames of a thread come on `port`. */
  attach(request: AttachRequest, port: MessagePort): Promise<Reply<null>>;
  stop(request: StopCall): Promise<Reply<boolean>>;
  isRunning(request: { readonly threadId: string }): Promise<Reply<boolean>>;
  listThreads(query: ThreadListQuery): Promise<Reply<readonly ThreadSummary[]>>;
  messages(query: MessagePageQuery): Promise<Reply<MessagePage>>;
  listRuns(query: RunListQuery & { readonly threadId: string }): Promise<Reply<readonly RunSummary[]>>;
  getRun(request: NamedRun): Promise<Reply<RunSummary | undefined>>;
  getRunEvents(request: RunEventsRequest): Promise<Reply<readonly PlacedEvent[]>>;
  getThreadMessages(request: { readonly threadId: string }): Promise<Reply<readonly Message[]>>;
  getThreadEvents(request: { readonly threadId: string }): Promise<Reply<readonly BaseEvent[]>>;
  getThreadState(request: { readonly threadId: string }): Promise<Reply<State | undefined>>;
  getThread(request: { readonly threadId: string }): Promise<Reply<ThreadSummary | undefined>>;
  updateThread(request: { readonly threadId: string; readonly changes: ThreadUpdate }): Promise<Reply<ThreadSummary>>;
  deleteThread(request: { readonly threadId: string }): Promise<Reply<boolean>>;
  /** Deletes every thread; how many. */
  clearThreads(): Promise<Reply<number>>;
  /** The host's status comes on `port`: a {@link StatusFrame} now and at each change. */
  watch(port: MessagePort): Promise<Reply<null>>;
  /** Changes of the list of threads come on `port`, as {@link ThreadChange}, until anything is posted to it. */
  watchThreads(port: MessagePort): Promise<Reply<null>>;
  /** Replies once the request is taken; its answer comes on `port`, however long it takes, see `answerRelayed`. */
  fetch(request: RelayedRequest, port: MessagePort): Promise<Reply<RelayedHost>>;
}

/** The methods of {@link HostApi}: what a host lets through. */
export const HOST_METHODS: ReadonlySet<keyof HostApi> = new Set<keyof HostApi>([
  "run",
  "attach",
  "stop",
  "isRunning",
  "listThreads",
  "messages",
  "listRuns",
  "getRun",
  "getRunEvents",
  "getThreadMessages",
  "getThreadEvents",
  "getThreadState",
  "getThread",
  "updateThread",
  "deleteThread",
  "clearThreads",
  "watch",
  "watchThreads",
  "fetch",
]);
