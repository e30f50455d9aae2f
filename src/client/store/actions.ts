import { RunnerError } from "../../run/errors.js";
import type { ThreadsApi } from "../connect-runtime.js";
import type { ThreadListStore } from "./thread-list-store.js";
import type { ThreadStore } from "./thread-store.js";

/** What a component does with a thread: the calls of its store, each a function by itself. */
export type ThreadActions = Pick<
  ThreadStore,
  | "send"
  | "respond"
  | "answerToolCall"
  | "runToolCallAgain"
  | "regenerate"
  | "retry"
  | "edit"
  | "cancelWaiting"
  | "moveWaiting"
  | "retryWaiting"
  | "stop"
  | "setState"
  | "loadEarlier"
>;

/** What a component does with the threads of a list: the calls of its store and of `runtime.threads`. */
export type ThreadListActions = Pick<ThreadListStore, "loadMore"> &
  Pick<ThreadsApi, "rename" | "archive" | "pin" | "delete">;

function needed<T>(it: T | undefined): T {
  if (it === undefined) throw new RunnerError("no-host", {}, { message: "A server has no runtime: it renders alone." });
  return it;
}

/**
 * The calls of a thread, each a function by itself.
 *
 * @param store undefined on a server, where each of them fails with RunnerError `no-host`
 */
export const threadActions = (store: ThreadStore | undefined): ThreadActions => ({
  send: async (content, options) => needed(store).send(content, options),
  respond: async (answers, options) => needed(store).respond(answers, options),
  answerToolCall: async (toolCallId, result) => needed(store).answerToolCall(toolCallId, result),
  runToolCallAgain: async (toolCallId) => needed(store).runToolCallAgain(toolCallId),
  regenerate: async (messageId, options) => needed(store).regenerate(messageId, options),
  retry: async (options) => needed(store).retry(options),
  edit: async (messageId, content, options) => needed(store).edit(messageId, content, options),
  cancelWaiting: async (runId) => needed(store).cancelWaiting(runId),
  moveWaiting: async (runId, before) => needed(store).moveWaiting(runId, before),
  retryWaiting: async (runId) => needed(store).retryWaiting(runId),
  stop: () => needed(store).stop(),
  setState: (state) => needed(store).setState(state),
  loadEarlier: async (limit) => needed(store).loadEarlier(limit),
});

/**
 * The calls of a list of threads, each a function by itself.
 *
 * @param store undefined on a server, where each of them fails with RunnerError `no-host`
 */
export const threadListActions = (store: ThreadListStore | undefined): ThreadListActions => ({
  loadMore: async () => needed(store).loadMore(),
  rename: async (threadId, title) => needed(store).api.rename(threadId, title),
  archive: async (threadId, archived) => needed(store).api.archive(threadId, archived),
  pin: async (threadId, pinned) => needed(store).api.pin(threadId, pinned),
  delete: async (threadId) => needed(store).api.delete(threadId),
});
