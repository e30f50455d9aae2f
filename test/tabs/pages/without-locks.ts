/**
 * Takes Web Locks from this context, as a page without https has none. A first import, so that nobody has seen them; the
 * prototype is that of `Navigator` in a page, of `WorkerNavigator` in a worker.
 */
Object.defineProperty(Object.getPrototypeOf(navigator), "locks", { value: undefined });
