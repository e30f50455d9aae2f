import type { AttachRequest, LiveRun, Reply, RunRequest, ThreadListQuery, ThreadSummary } from "./shapes.js";

/**
 * What a tab may call in its host, through comlink. Streams come on the port that a call hands over: its handler must
 * stand before the call, because the first frame can come before the reply.
 */
export interface HostApi {
  /** Starts a run; its frames come on `port`. Replies once the run stands in the log, or was refused. */
  run(request: RunRequest, port: MessagePort): Promise<Reply<LiveRun>>;
  /** Frames of a thread come on `port`. */
  attach(request: AttachRequest, port: MessagePort): Promise<Reply<null>>;
  stop(request: { readonly threadId: string; readonly runId?: string }): Promise<Reply<boolean>>;
  isRunning(request: { readonly threadId: string }): Promise<Reply<boolean>>;
  listThreads(query: ThreadListQuery): Promise<Reply<readonly ThreadSummary[]>>;
  /** Changes of the list of threads and of the host's status come on `port`. */
  watch(port: MessagePort): Promise<Reply<null>>;
}

/** The methods of {@link HostApi}: what a host lets through. */
export const HOST_METHODS: ReadonlySet<keyof HostApi> = new Set<keyof HostApi>([
  "run",
  "attach",
  "stop",
  "isRunning",
  "listThreads",
  "watch",
]);
