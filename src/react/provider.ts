import { createContext, createElement, useContext, useMemo, useSyncExternalStore, type ReactNode } from "react";
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

/** @internal What a store shows; `empty` on a server, and while what it rendered is hydrated. */
export function useSnapshot<Snapshot>(store: ReadableStore<Snapshot> | undefined, empty: Snapshot): Snapshot {
  const nothing = (): Snapshot => empty;
  return useSyncExternalStore(store?.subscribe ?? nobody, store?.getSnapshot ?? nothing, nothing);
}

/** The connection that the provider was given; undefined on a server. */
export const useRuntime = (): RuntimeConnection | undefined => useStores()?.runtime;

const CONNECTING: RuntimeStatus = { is: "connecting" };
const connecting = (): RuntimeStatus => CONNECTING;

interface StatusStore {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => RuntimeStatus;
}

function statusStore(runtime: RuntimeConnection | undefined): StatusStore {
  let status = CONNECTING;
  // It replays the latest value, and never errors.
  const take = (value: RuntimeStatus): void => void (status = value);
  runtime?.status$.subscribe(take).unsubscribe();
  return {
    subscribe: (listener) => {
      const subscription = runtime?.status$.subscribe((value) => {
        take(value);
        listener();
      });
      return () => subscription?.unsubscribe();
    },
    getSnapshot: () => status,
  };
}

/** The tab's connection to its host; `connecting` on a server. */
export function useRuntimeStatus(): RuntimeStatus {
  const runtime = useRuntime();
  const { subscribe, getSnapshot } = useMemo(() => statusStore(runtime), [runtime]);
  return useSyncExternalStore(subscribe, getSnapshot, connecting);
}
