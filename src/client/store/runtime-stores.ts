import type { RuntimeConnection } from "../connect-runtime.js";
import { FrontendTools } from "../tools/frontend-tools.js";
import { ThreadListStore, type ThreadListOptions } from "./thread-list-store.js";
import type { ThreadStoreOptions } from "./thread-snapshot.js";
import { ThreadStore } from "./thread-store.js";

/** Objects by key, as long as somebody else holds them. */
class Shared<T extends object> {
  private readonly refs = new Map<string, WeakRef<T>>();
  private readonly gone = new FinalizationRegistry<string>((key) => {
    // A new one may have taken its place.
    if (this.refs.get(key)?.deref() === undefined) this.refs.delete(key);
  });

  get(key: readonly unknown[], make: () => T): T {
    const name = JSON.stringify(key);
    const known = this.refs.get(name)?.deref();
    if (known !== undefined) return known;
    const made = make();
    this.refs.set(name, new WeakRef(made));
    this.gone.register(made, name);
    return made;
  }
}

/** The stores of a page: components that show the same thread share one, and one attachment. */
export class RuntimeStores {
  /** The tools that the page offers in all of its threads. */
  readonly tools = new FrontendTools();
  /** By the tools that they offer. */
  private readonly threads = new WeakMap<FrontendTools, Shared<ThreadStore>>();
  private readonly lists = new Shared<ThreadListStore>();

  constructor(readonly runtime: RuntimeConnection) {}

  /** The store of a thread with these options; a new one if nobody holds one. `tools`: default those of the page. */
  thread({ tools = this.tools, ...options }: ThreadStoreOptions & { readonly threadId: string }): ThreadStore {
    const { threadId, agentId, messageLimit } = options;
    const threads = this.threads.get(tools) ?? new Shared<ThreadStore>();
    this.threads.set(tools, threads);
    return threads.get([threadId, agentId, messageLimit], () => new ThreadStore(this.runtime, { ...options, tools }));
  }

  /** The store of a list with these options; a new one if nobody holds one. */
  threadList(options: ThreadListOptions = {}): ThreadListStore {
    const { agentId, archived = false, limit } = options;
    return this.lists.get([agentId, archived, limit], () => new ThreadListStore(this.runtime, options));
  }
}

/** By connection, and by the function that made it. */
const known = new WeakMap<object, RuntimeStores>();

/**
 * The stores of a connection, the same ones for all that show it; or those of the connection that a function makes. It is
 * called once, and again only when that connection has been closed.
 */
export function storesOf(runtime: RuntimeConnection | (() => RuntimeConnection)): RuntimeStores {
  let stores = known.get(runtime);
  if (stores === undefined) {
    stores = new RuntimeStores(typeof runtime === "function" ? runtime() : runtime);
    known.set(runtime, stores);
    stores.runtime.status$.subscribe({ complete: () => known.delete(runtime) });
  }
  return stores;
}
