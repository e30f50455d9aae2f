/**
 * Vue composables: threads, their runs and the list of threads, for Vue 3.
 *
 * @module ag-ui-local-runtime/vue
 */
import {
  computed,
  getCurrentInstance,
  inject,
  onMounted,
  onScopeDispose,
  shallowRef,
  toValue,
  watch,
  type ComputedRef,
  type InjectionKey,
  type MaybeRefOrGetter,
  type Plugin,
  type ShallowRef,
} from "vue";
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

const Stores: InjectionKey<RuntimeStores | undefined> = Symbol("ag-ui-local-runtime");

/**
 * Gives an app its runtime. The connection is not closed with it.
 *
 * @param connect makes the connection; called once, for all apps that are given it, and again only when that connection
 *   has been closed. Another function is another connection. Not called on a server, where everything is shown empty
 */
export const runtimePlugin = (connect: () => RuntimeConnection): Plugin => ({
  install(app) {
    app.provide(Stores, typeof document === "undefined" ? undefined : storesOf(connect));
  },
});

function useStores(): RuntimeStores | undefined {
  const none = Symbol("none");
  const stores = inject<RuntimeStores | undefined | typeof none>(Stores, none);
  if (stores === none) throw new Error("Install the runtime first: app.use(runtimePlugin(connect)).");
  return stores as RuntimeStores | undefined; // the symbol is excluded above
}

/** The connection of the app; undefined on a server. */
export const useRuntime = (): RuntimeConnection | undefined => useStores()?.runtime;

/** Now; in a component that hydrates what a server rendered, once that is done: it begins with what the server has shown. */
function onceShown(begin: () => void): void {
  // Vue has no name for it (vuejs/core#1723). It decides by this itself: only who hydrates has an element that early.
  if (getCurrentInstance()?.vnode.el) onMounted(begin);
  else begin();
}

/** The tab's connection to its host; `connecting` on a server. */
export function useRuntimeStatus(): Readonly<ShallowRef<RuntimeStatus>> {
  const status = shallowRef<RuntimeStatus>({ is: "connecting" });
  const runtime = useRuntime();
  onceShown(() => {
    const subscription = runtime?.status$.subscribe((value) => (status.value = value));
    onScopeDispose(() => subscription?.unsubscribe());
  });
  return status;
}

/** Follows the store that `store` names, and then the next one; ends with the component. */
function useSnapshot<Snapshot>(
  store: ComputedRef<ReadableStore<Snapshot> | undefined>,
  empty: Snapshot,
): Readonly<ShallowRef<Snapshot>> {
  const snapshot = shallowRef(empty);
  const follow = (): unknown =>
    watch(
      store,
      (now, _before, onCleanup) => {
        if (now === undefined) return;
        const take = (): void => void (snapshot.value = now.getSnapshot());
        onCleanup(now.subscribe(take));
        take();
      },
      // At once: what is shown and what is done with it are never of two threads.
      { immediate: true, flush: "sync" },
    );
  onceShown(follow);
  return snapshot;
}

/** Which agent runs, and how many of the newest messages a thread begins with. */
export type UseThreadOptions = Pick<ThreadStoreOptions, "agentId" | "messageLimit">;

/** A thread as it is shown now, and what can be done with it. */
export interface Thread extends ThreadSnapshot, ThreadActions {}

/** A list of threads as it is shown now, and what can be done with it. */
export interface ThreadList extends ThreadListSnapshot, ThreadListActions {}

/**
 * A thread: its messages, state and run, kept up to date in all tabs, and what can be done with it.
 *
 * @param threadId undefined: a thread that begins with the first message; its id is in the result
 */
export function useThread(
  threadId: MaybeRefOrGetter<string | undefined>,
  options: MaybeRefOrGetter<UseThreadOptions>,
): ComputedRef<Thread> {
  const stores = useStores();
  const fresh = shallowRef(randomId());
  // The app has taken it for its thread: the next one is another.
  watch(
    () => toValue(threadId) === fresh.value,
    (isTaken) => isTaken && (fresh.value = randomId()),
  );
  const store = computed(() => stores?.thread({ ...toValue(options), threadId: toValue(threadId) ?? fresh.value }));
  const snapshot = useSnapshot(store, emptyThread(toValue(threadId) ?? ""));
  const actions = computed(() => threadActions(store.value));
  return computed(() => ({ ...snapshot.value, ...actions.value }));
}

/**
 * Offers a tool to the agents of the app's threads until the component is unmounted. Each call runs in one tab, once: see
 * `FrontendTool`.
 */
export function useFrontendTool<Args = unknown>(tool: MaybeRefOrGetter<FrontendTool<Args>>): void {
  const stores = useStores();
  watch(
    () => toValue(tool),
    (offered, _before, onCleanup) => onCleanup(stores?.tools.add(offered) ?? (() => undefined)),
    { immediate: true },
  );
}

/** The threads, newest first, kept up to date by the changes of all tabs. */
export function useThreads(options: MaybeRefOrGetter<ThreadListOptions> = {}): ComputedRef<ThreadList> {
  const stores = useStores();
  const store = computed(() => stores?.threadList(toValue(options)));
  const snapshot = useSnapshot(store, emptyThreadList);
  const actions = computed(() => threadListActions(store.value));
  return computed(() => ({ ...snapshot.value, ...actions.value }));
}
