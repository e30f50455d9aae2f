import { onTestFinished } from "vitest";

/** A transaction that was opened in the test, as it was asked for. */
export interface Seen {
  /** The name of its database. */
  readonly db: string;
  readonly stores: readonly string[];
  readonly mode: IDBTransactionMode;
  readonly durability: IDBTransactionDurability | undefined;
  /** How many records it deleted. */
  deleted: number;
  ended: boolean;
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
    const seen: Seen = {
      db: this.name,
      stores: listOf(stores),
      mode,
      durability: options?.durability,
      deleted: 0,
      ended: false,
    };
    fail(seen);
    all.push(seen);
    const tx = transaction.call(this, stores, mode, options);
    of.set(tx, seen);
    for (const type of ["complete", "abort"]) tx.addEventListener(type, () => (seen.ended = true));
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

/** How a connection falls at a commit: `committed`, it took place and that is not heard; `aborted`, it did not. */
export type Loss = "committed" | "aborted";

/**
 * The connection falls at the next commit over these stores.
 *
 * @param meanwhile called at that moment: what it asks of another connection comes before what is repeated
 */
export function loseCommitOver(
  stores: readonly string[],
  how: Loss = "committed",
  meanwhile: () => void = () => undefined,
): { readonly lost: () => boolean } {
  const { commit } = IDBTransaction.prototype;
  let lost = false;
  IDBTransaction.prototype.commit = function () {
    if (lost || listOf(this.objectStoreNames).join() !== [...stores].sort().join()) return commit.call(this);
    lost = true;
    if (how === "committed") commit.call(this);
    else this.abort();
    meanwhile();
    throw new DOMException("The connection was lost", "UnknownError");
  };
  onTestFinished(() => {
    IDBTransaction.prototype.commit = commit;
  });
  return { lost: () => lost };
}

/** Fails each transaction whose turn it is to, `times` times in all. */
export function failing(
  when: (seen: Seen) => boolean,
  times = 1,
  error: unknown = new DOMException("The disk is full", "QuotaExceededError"),
): (seen: Seen) => void {
  let left = times;
  return (seen) => {
    if (left === 0 || !when(seen)) return;
    left--;
    throw error;
  };
}

/** When a full disk aborts a transaction: at its first `write`, or only at its `commit`. The message is empty. */
export type Full = "write" | "commit";

/** The disk is full for transactions over these stores, until the test ends. Needs fake-indexeddb. */
export function fillDiskFor(stores: readonly string[], when: Full): { readonly hit: () => boolean } {
  const transaction = IDBTransaction.prototype;
  const store = IDBObjectStore.prototype;
  const { commit } = transaction;
  const { put, delete: remove } = store;
  let hit = false;
  const abort = (tx: IDBTransaction): void => {
    if (listOf(tx.objectStoreNames).join() !== [...stores].sort().join()) return;
    hit = true;
    // The fake's own way to fail a transaction: no script can do that.
    (tx as IDBTransaction & { _abort(name: string): void })._abort("QuotaExceededError");
  };
  if (when === "commit") {
    transaction.commit = function () {
      abort(this);
      commit.call(this);
    };
  } else {
    store.put = function (...record) {
      const request = put.apply(this, record);
      abort(this.transaction);
      return request;
    };
    store.delete = function (query) {
      const request = remove.call(this, query);
      abort(this.transaction);
      return request;
    };
  }
  onTestFinished(() => {
    transaction.commit = commit;
    store.put = put;
    store.delete = remove;
  });
  return { hit: () => hit };
}
