import { createElement, useEffect, useId, useRef, useState, type ReactNode } from "react";
import type { ThreadListOptions, ThreadSummary } from "../client/index.js";
import { againAfterErrors } from "../client/read-until-done.js";
import { defined } from "../platform/defined.js";
import { useRuntime, useThreads, type ThreadList as Threads } from "../react/index.js";
import { useStyle } from "./style.js";
import { LABELS, type ThreadListLabels } from "./thread-labels.js";
import { ThreadRow } from "./thread-row.js";

/** Of {@link ThreadList}. */
export interface ThreadListProps extends Pick<ThreadListOptions, "agentId" | "limit"> {
  /** The thread that the chat shows. */
  readonly threadId: string | undefined;
  /** The user has chosen this thread. */
  readonly onOpen: (threadId: string) => void;
  /**
   * The user wants a new thread, or the one that is shown was deleted, in whichever tab: show another, such as
   * `crypto.randomUUID()`.
   */
  readonly onNew: () => void;
  readonly labels?: Partial<ThreadListLabels>;
  readonly className?: string;
}

/**
 * The threads of the worker, newest first, kept up to date by the changes of all tabs: opens, renames, archives, restores
 * and deletes them. It stands in for CopilotKit's drawer, which needs a licence and a server.
 */
export function ThreadList({ threadId, onOpen, onNew, className, ...given }: ThreadListProps): ReactNode {
  useStyle();
  const labels = { ...LABELS, ...given.labels };
  const [archived, setArchived] = useState(false);
  const { agentId, limit } = given;
  const list = useThreads({ ...defined({ agentId, limit }), archived });
  const listId = useId();
  const newThread = useRef<HTMLButtonElement>(null);
  const [isMoreFocused, setMoreFocused] = useState(false);
  const isDone = !list.hasMore || list.isLoadingMore;
  const letGo = useDeletion(threadId, onNew);

  // The row goes away, and with it the focus.
  const keepFocus = (): void => newThread.current?.focus();
  const row = (thread: ThreadSummary): ReactNode =>
    createElement(ThreadRow, {
      key: thread.threadId,
      thread,
      labels,
      isOpen: thread.threadId === threadId,
      open: () => onOpen(thread.threadId),
      rename: list.rename,
      archive: async (id, to) => {
        await list.archive(id, to);
        keepFocus();
      },
      remove: async () => {
        await list.delete(thread.threadId);
        keepFocus();
        letGo(thread.threadId);
      },
    });
  return createElement(
    "nav",
    { "aria-label": labels.list, className: ["agui-threads", className].filter(Boolean).join(" ") },
    createElement(
      "button",
      { type: "button", ref: newThread, className: "agui-thread-new", onClick: onNew },
      labels.newThread,
    ),
    createElement("ul", { id: listId }, list.threads.map(row)),
    note(list, labels),
    // Neither `disabled` nor gone while it has the focus, which would be nowhere.
    (list.hasMore || isMoreFocused) &&
      createElement(
        "button",
        {
          type: "button",
          "aria-disabled": isDone,
          onFocus: () => setMoreFocused(true),
          onBlur: () => setMoreFocused(false),
          // A failure is told by `error`.
          onClick: () => void list.loadMore().catch(() => undefined),
        },
        labels.more,
      ),
    createElement(
      "button",
      { type: "button", "aria-controls": listId, onClick: () => setArchived(!archived) },
      archived ? labels.hideArchived : labels.showArchived,
    ),
  );
}

/**
 * Asks for another thread when the one that is shown is deleted.
 *
 * @returns is told of a deletion; of those of all tabs it hears by itself
 */
function useDeletion(threadId: string | undefined, onNew: () => void): (deleted: string) => void {
  const threads = useRuntime()?.threads;
  const shown = useRef({ threadId, onNew });
  useEffect(() => {
    shown.current = { threadId, onNew };
  });
  const letGo = useRef((deleted: string): void => {
    if (deleted !== shown.current.threadId) return;
    // Asked for once, whoever tells it first.
    shown.current.threadId = undefined;
    shown.current.onNew();
  }).current;
  useEffect(() => {
    const watching = threads && againAfterErrors(threads.watch());
    const subscription = watching?.subscribe((change) => change.type === "deleted" && letGo(change.threadId));
    return () => subscription?.unsubscribe();
  }, [threads, letGo]);
  return letGo;
}

/** What there is to say besides the threads. */
function note({ status, threads, error }: Threads, labels: ThreadListLabels): ReactNode {
  if (error !== undefined) return createElement("p", { role: "alert", className: "agui-thread-note" }, error.message);
  if (threads.length > 0) return null;
  const said = status === "loading" ? labels.loading : labels.empty;
  return createElement("p", { className: "agui-thread-note" }, said);
}
