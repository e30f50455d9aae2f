import {
  createContext,
  createElement,
  useContext,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
  type ReactNode,
} from "react";
import {
  emptyThread,
  threadActions,
  type ThreadActions,
  type ThreadSnapshot,
  type ThreadStore,
  type ThreadStoreOptions,
} from "../client/index.js";
import { randomId } from "../platform/ids.js";
import { nobody, useSnapshot, useStores } from "./provider.js";

/** Which agent runs, and how a thread is read. */
export interface UseThreadOptions extends Pick<ThreadStoreOptions, "agentId" | "messageLimit"> {
  /**
   * Suspends until the history was read, or cannot be read. Not without a `threadId`, which has no history, and never on a
   * server. Default false.
   */
  readonly suspense?: boolean;
}

/** A thread as it is shown now, and what can be done with it. The functions stay the same for a thread. */
export interface Thread extends ThreadSnapshot, ThreadActions {}

const EMPTY = emptyThread("");

/** The id of a thread that does not exist yet; another one once the app has taken it for its thread. */
function useFreshId(threadId: string | undefined): string {
  const [fresh, setFresh] = useState(() => randomId());
  if (threadId === fresh) setFresh(randomId());
  return threadId ?? fresh;
}

interface InThread {
  readonly store: ThreadStore | undefined;
}

const Current = createContext<InThread | undefined>(undefined);

function useStore(threadId: string | undefined, { agentId, messageLimit }: UseThreadOptions): ThreadStore | undefined {
  const stores = useStores();
  const id = useFreshId(threadId);
  return useMemo(
    () => stores?.thread({ threadId: id, agentId, ...(messageLimit !== undefined && { messageLimit }) }),
    [stores, id, agentId, messageLimit],
  );
}

/**
 * A thread: its messages, state and run, kept up to date in all tabs, and what can be done with it. Components that show
 * the same thread with the same options share one attachment.
 *
 * @param threadId undefined: a thread that begins with the first message; its id is in the result
 */
export function useThread(threadId: string | undefined, options: UseThreadOptions): Thread {
  const store = useStore(threadId, options);
  // A server cannot know the id that the page makes: React would leave it in the attributes.
  const empty = useMemo(() => emptyThread(threadId ?? ""), [threadId]);
  const snapshot = useSnapshot(store, empty);
  // The store's own status: while a page is hydrated, the hook still shows what the server did.
  const isLoading = threadId !== undefined && store?.getSnapshot().status === "loading";
  if (options.suspense === true && isLoading) throw store.settled();
  const actions = useMemo(() => threadActions(store), [store]);
  return useMemo(() => ({ ...snapshot, ...actions }), [snapshot, actions]);
}

/** Of {@link ThreadProvider}. */
export interface ThreadProviderProps extends Pick<UseThreadOptions, "agentId" | "messageLimit"> {
  readonly threadId: string | undefined;
  readonly children?: ReactNode;
}

/** Names the thread of the components below it, for {@link useThreadState}. */
export function ThreadProvider({ threadId, children, ...options }: ThreadProviderProps): ReactNode {
  const store = useStore(threadId, options);
  const value = useMemo(() => ({ store }), [store]);
  return createElement(Current.Provider, { value }, children);
}

/**
 * A part of the state of the thread that the {@link ThreadProvider} names: renders only when that part changes.
 *
 * @param selector what to read of the state
 * @param isEqual default `Object.is`: a selector that makes a new object renders with each change of the state, unless
 *   this compares what is in it
 */
export function useThreadState<T>(
  selector: (state: ThreadSnapshot["state"]) => T,
  isEqual: (one: T, other: T) => boolean = Object.is,
): T {
  const current = useContext(Current);
  if (current === undefined) throw new Error("Put a <ThreadProvider> around components that use useThreadState().");
  const { store } = current;
  const last = useRef<{ readonly selector: unknown; readonly state: unknown; readonly selected: T } | undefined>(
    undefined,
  );
  // Asked several times in each rendering, and must then answer the same.
  const select = ({ state }: ThreadSnapshot): T => {
    const was = last.current;
    if (was?.selector === selector && was.state === state) return was.selected;
    const now = selector(state);
    const selected = was !== undefined && isEqual(was.selected, now) ? was.selected : now;
    last.current = { selector, state, selected };
    return selected;
  };
  return useSyncExternalStore(
    store?.subscribe ?? nobody,
    () => select(store?.getSnapshot() ?? EMPTY),
    () => select(EMPTY),
  );
}
