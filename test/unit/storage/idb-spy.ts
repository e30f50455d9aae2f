import { onTestFinished } from "vitest";

/** A transaction that was opened in the test, as it was asked for. */
export interface Seen {
  readonly stores: readonly string[];
  readonly mode: IDBTransactionMode;
  readonly durability: IDBTransactionDurability | undefined;
  /** How many records it deleted. */
  deleted: number;
}

const listOf = (stores: string | Iterable<string>): string[] =>
  (typeof stores === "string" ? [stores] : [...stores]).sort();

/**
 * Writes down all transactions until the test ends.
 *
 * @param fail throws in place of a transaction that must fail
 */
export function watchTransactions(fail: (seen: Seen) => void = () => undefined): Seen[] {
  const all: Seen[] = [];
  const of = new WeakMap<IDBTransaction, Seen>();
  const database = IDBDatabase.prototype;
  const store = IDBObjectStore.prototype;
  const { transaction } = database;
  const { delete: remove } = store;
  database.transaction = function (stores, mode = "readonly", options) {
    const seen: Seen = { stores: listOf(stores), mode, durability: options?.durability, deleted: 0 };
    fail(seen);
    all.push(seen);
    const tx = transaction.call(this, stores, mode, options);
    of.set(tx, seen);
    return tx;
  };
  store.delete = function (query) {
    const seen = of.get(this.transaction);
    const counting = this.count(query);
    counting.addEventListener("success", () => {
      if (seen !== undefined) seen.deleted += counting.result;
    });
    return remove.call(this, query);
  };
  onTestFinished(() => {
    database.transaction = transaction;
    store.delete = remove;
  });
  return all;
}

/** The next commit over these stores takes place, but the connection falls before that is heard. */
export function loseCommitOver(stores: readonly string[]): { readonly lost: () => boolean } {
  const { commit } = IDBTransaction.prototype;
  let lost = false;
  IDBTransaction.prototype.commit = function () {
    commit.call(this);
    if (lost || listOf(this.objectStoreNames).join() !== [...stores].sort().join()) return;
    lost = true;
    throw new DOMException("The connection was lost", "UnknownError");
  };
  onTestFinished(() => {
    IDBTransaction.prototype.commit = commit;
  });
  return { lost: () => lost };
}

/** Fails each transaction whose turn it is to, `times` times in all. */
export function failing(when: (seen: Seen) => boolean, times = 1): (seen: Seen) => void {
  let left = times;
  return (seen) => {
    if (left === 0 || !when(seen)) return;
    left--;
    throw new DOMException("The disk is full", "QuotaExceededError");
  };
}
