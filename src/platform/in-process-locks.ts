/** The part of the platform's LockManager (Web Locks API) that the runtime uses. */
export interface LockManagerLike {
  request<T>(name: string, options: LockOptions, callback: (lock: Lock | null) => T | Promise<T>): Promise<T>;
}

interface Waiter {
  readonly mode: LockMode;
  readonly grant: () => void;
}

interface Holder {
  readonly mode: LockMode;
  readonly steal: (error: DOMException) => void;
}

interface Named {
  holders: Set<Holder>;
  queue: Waiter[];
}

const stolen = (): DOMException => new DOMException("The lock was stolen", "AbortError");

/**
 * A LockManager within one process, with the semantics of the Web Locks API
 * (https://w3c.github.io/web-locks/): exclusive and shared modes, `ifAvailable`, `steal`, `signal`, FIFO.
 */
export function inProcessLockManager(): LockManagerLike {
  const names = new Map<string, Named>();

  const compatible = (named: Named, mode: LockMode): boolean =>
    named.holders.size === 0 || (mode === "shared" && [...named.holders].every((holder) => holder.mode === "shared"));

  const grantNext = (name: string, named: Named): void => {
    while (named.queue[0] !== undefined && compatible(named, named.queue[0].mode)) named.queue.shift()!.grant();
    if (named.holders.size === 0 && named.queue.length === 0) names.delete(name);
  };

  return {
    request(name, options, callback) {
      const mode = options.mode ?? "exclusive";
      const named = names.get(name) ?? { holders: new Set<Holder>(), queue: [] };
      names.set(name, named);

      const run = <T>(work: (lock: Lock | null) => T | Promise<T>): Promise<T> =>
        new Promise<T>((resolve, reject) => {
          const holder: Holder = { mode, steal: reject };
          named.holders.add(holder);
          const letGo = (): void => {
            if (named.holders.delete(holder)) grantNext(name, named);
          };
          Promise.resolve()
            .then(() => work({ name, mode }))
            .then(
              (value) => {
                letGo();
                resolve(value);
              },
              (error: unknown) => {
                letGo();
                reject(error);
              },
            );
        });

      if (options.steal === true) {
        const losers = [...named.holders];
        named.holders.clear();
        for (const loser of losers) loser.steal(stolen());
        return run(callback);
      }
      if (compatible(named, mode) && named.queue.length === 0) return run(callback);
      if (options.ifAvailable === true) return Promise.resolve().then(() => callback(null));

      return new Promise((resolve, reject) => {
        const { signal } = options;
        const leave = (): void => {
          named.queue.splice(named.queue.indexOf(waiter), 1);
          grantNext(name, named);
          reject(signal?.reason);
        };
        const waiter: Waiter = {
          mode,
          grant: () => {
            signal?.removeEventListener("abort", leave);
            run(callback).then(resolve, reject);
          },
        };
        named.queue.push(waiter);
        signal?.addEventListener("abort", leave, { once: true });
      });
    },
  };
}

let own: LockManagerLike | undefined;

/** The manager of this process, which is enough as long as one process uses the database; undefined outside of Node. */
export function processLockManager(): LockManagerLike | undefined {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node === undefined ? undefined : (own ??= inProcessLockManager());
}
