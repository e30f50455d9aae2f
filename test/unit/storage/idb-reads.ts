/** What was read of all databases. */
export interface Reads {
  /** Requests that read something. */
  readonly requests: number;
  /** Records of which the value was read. */
  readonly values: number;
  /** Records of which only the key was read. */
  readonly keys: number;
}

const METHODS = ["get", "getKey", "getAll", "getAllKeys", "openCursor", "openKeyCursor", "count"] as const;

/** Counts from now on, until it is stopped. */
export function countReads(): { readonly stop: () => Reads } {
  let requests = 0;
  let values = 0;
  let keys = 0;
  const restore: (() => void)[] = [];
  for (const { prototype } of [IDBObjectStore, IDBIndex]) {
    for (const method of METHODS) {
      const original = prototype[method] as (...args: unknown[]) => IDBRequest<unknown>;
      // One function for methods of several shapes, which it hands their own arguments.
      const counting = function (this: IDBObjectStore | IDBIndex, ...args: unknown[]): IDBRequest<unknown> {
        const request = original.apply(this, args);
        requests++;
        request.addEventListener("success", () => {
          const { result } = request;
          const count = Array.isArray(result) && method.startsWith("getAll") ? result.length : result == null ? 0 : 1;
          if (method === "get" || method === "getAll" || method === "openCursor") values += count;
          else if (method !== "count") keys += count;
        });
        return request;
      };
      Object.defineProperty(prototype, method, { value: counting, configurable: true, writable: true });
      restore.push(() =>
        Object.defineProperty(prototype, method, { value: original, configurable: true, writable: true }),
      );
    }
  }
  return {
    stop: () => {
      for (const undo of restore) undo();
      return { requests, values, keys };
    },
  };
}
