import { createContext, createElement, useContext, useMemo, useSyncExternalStore, type ReactNode } from "react";
import type { Observable } from "rxjs";
import type { ReadableStore, RuntimeConnection, RuntimeStatus, RuntimeStores } from "../client/index.js";
import { storesOf } from "../client/store/runtime-stores.js";

/** Of {@link RuntimeProvider}. */
export interface RuntimeProviderProps {
  /**
   * The connection; or a function that makes it, which is called once, and again only for a provider that is mounted after
   * that connection was closed; never on a server. Define it outside of components: another function is another connection.
   */
  readonly runtime: RuntimeConnection | (() => RuntimeConnection);
  readonly children?: ReactNode;
}

/** On a server there is no runtime: everything is shown empty. */
const isServer = typeof document === "undefined";

const Stores = createContext<RuntimeStores | "server" | undefined>(undefined);

/** Gives the components below it a runtime. The connection is not closed with it: other parts of the page may use it. */
export function RuntimeProvider({ runtime, children }: RuntimeProviderProps): ReactNode {
  const stores = useMemo(() => (isServer ? "server" : storesOf(runtime)), [runtime]);
  return createElement(Stores.Provider, { value: stores }, children);
}

/** @internal The stores of the page; undefined on a server. */
export function useStores(): RuntimeStores | undefined {
  const stores = useContext(Stores);
  if (stores === undefined)
    throw new Error("Put a <RuntimeProvider runtime={…}> around components that use its hooks.");
  return stores === "server" ? undefined : stores;
}

/** @internal Where there is no store, nobody is told of changes. */
export const nobody = (): (() => void) => () => undefined;

/** What is shown, and who is told of changes. */
type Shown<Snapshot> = Omit<ReadableStore<Snapshot>, "getServerSnapshot">;

/** @internal What a store shows; `empty` on a server, and while what it rendered is hydrated. */
export function useSnapshot<Snapshot>(store: Shown<Snapshot> | undefined, empty: Snapshot): Snapshot {
  const nothing = (): Snapshot => empty;
  return useSyncExternalStore(store?.subscribe ?? nobody, store?.getSnapshot ?? nothing, nothing);
}

/** @internal Shows the values of an observable that replays the latest one, and never errors. */
export function shownOf<Value>(value$: Observable<Value>): Shown<Value> {
  let value!: Value;
  const subscribe = (listener: () => void): (() => void) => {
    const subscription = value$.subscribe((latest) => {
      value = latest;
      listener();
    });
    return () => subscription.unsubscribe();
  };
  subscribe(() => undefined)();
  return { subscribe, getSnapshot: () => value };
}

/** The connection that the provider was given; undefined on a server. */
export const useRuntime = (): RuntimeConnection | undefined => useStores()?.runtime;

const CONNECTING: RuntimeStatus = { is: "connecting" };

/** The tab's connection to its host; `connecting` on a server. */
export function useRuntimeStatus(): RuntimeStatus {
  const runtime = useRuntime();
  const shown = useMemo(() => runtime && shownOf(runtime.status$), [runtime]);
  return useSnapshot(shown, CONNECTING);
}
