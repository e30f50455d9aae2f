/**
 * Svelte stores: threads, their runs and the list of threads, for Svelte 4 and 5 (`$thread.messages`).
 *
 * @module ag-ui-local-runtime/svelte
 */
import { getContext, hasContext, onDestroy, setContext } from "svelte";
import {
  emptyThread,
  emptyThreadList,
  threadActions,
  threadListActions,
  type FrontendTool,
  type ReadableStore,
  type RuntimeConnection,
  type RuntimeStatus,
  type RuntimeStores,
  type ThreadActions,
  type ThreadListActions,
  type ThreadListOptions,
  type ThreadListSnapshot,
  type ThreadSnapshot,
  type ThreadStoreOptions,
} from "../client/index.js";
import { storesOf } from "../client/store/runtime-stores.js";
import { randomId } from "../platform/ids.js";

/** Svelte's contract of a store: `run` is called at once, and after each change. */
export interface Readable<Value> {
  /** @returns ends it */
  subscribe(run: (value: Value) => void): () => void;
}

const KEY = Symbol("ag-ui-local-runtime");

/**
 * Gives a component and those below it a runtime. The connection is not closed with it.
 *
 * @param connect makes the connection; called once, however often the component is mounted, and again only when that
 *   connection has been closed. Define it in a module: another function is another connection. Not called on a server,
 *   where everything is shown empty
 */
export function setRuntime(connect: () => RuntimeConnection): void {
  setContext(KEY, typeof document === "undefined" ? undefined : storesOf(connect));
}

function stores(): RuntimeStores | undefined {
  if (!hasContext(KEY)) throw new Error("Call setRuntime(connect) in a component above.");
  return getContext<RuntimeStores | undefined>(KEY);
}

/** The connection; undefined on a server. */
export const getRuntime = (): RuntimeConnection | undefined => stores()?.runtime;

/** The tab's connection to its host; `connecting` on a server. */
export function runtimeStatus(): Readable<RuntimeStatus> {
  const runtime = getRuntime();
  return {
    subscribe(run) {
      if (runtime === undefined) run({ is: "connecting" });
      const subscription = runtime?.status$.subscribe(run);
      return () => subscription?.unsubscribe();
    },
  };
}

const readable = <Snapshot>(store: ReadableStore<Snapshot> | undefined, empty: Snapshot): Readable<Snapshot> => ({
  subscribe(run) {
    const tell = (): void => run(store === undefined ? empty : store.getSnapshot());
    const stop = store?.subscribe(tell);
    tell();
    return () => stop?.();
  },
});

/** A thread as a store, and what can be done with it. */
export interface Thread extends Readable<ThreadSnapshot>, ThreadActions {}

/**
 * A thread: its messages, state and run, kept up to date in all tabs, and what can be done with it.
 *
 * @param threadId undefined: a thread that begins with the first message; its id is in the snapshot
 */
export function thread(
  threadId: string | undefined,
  options: Pick<ThreadStoreOptions, "agentId" | "messageLimit">,
): Thread {
  const store = stores()?.thread({ ...options, threadId: threadId ?? randomId() });
  return { ...readable(store, emptyThread(threadId ?? "")), ...threadActions(store) };
}

/**
 * Offers a tool to the agents of the page's threads until the component is destroyed. Each call runs in one tab, once: see
 * `FrontendTool`.
 */
export function frontendTool<Args = unknown>(tool: FrontendTool<Args>): void {
  const remove = stores()?.tools.add(tool);
  if (remove !== undefined) onDestroy(remove);
}

/** A list of threads as a store, and what can be done with it. */
export interface ThreadList extends Readable<ThreadListSnapshot>, ThreadListActions {}

/** The threads, newest first, kept up to date by the changes of all tabs. */
export function threads(options: ThreadListOptions = {}): ThreadList {
  const store = stores()?.threadList(options);
  return { ...readable(store, emptyThreadList), ...threadListActions(store) };
}
