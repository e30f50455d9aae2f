import { openDB, type DBSchema, type IDBPDatabase, type IDBPTransaction, type StoreNames } from "idb";
import { systemClock, type Clock } from "../../platform/clock.js";
import { RunnerError } from "../../run/errors.js";
import { hung, isHung, isLost, toOpenError, toStorageError } from "./failures.js";

type TransactionOf<Schema extends DBSchema, Mode extends IDBTransactionMode> = IDBPTransaction<
  Schema,
  StoreNames<Schema>[],
  Mode
>;

/** A database's stores, and how to upgrade to them. */
export interface DatabaseLayout<Schema extends DBSchema> {
  readonly version: number;
  /** A database of this version that lacks one of them is not ours. */
  readonly stores: readonly StoreNames<Schema>[];
  /** Those that hold a small record of a thread or run each: their reads may share a transaction. */
  readonly small?: readonly StoreNames<Schema>[];
  /** Upgrades a database of version `from` (0: a new one), in its versionchange transaction. */
  upgrade(db: IDBPDatabase<Schema>, from: number, tx: TransactionOf<Schema, "versionchange">): Promise<void>;
}

export interface ConnectionOptions<Schema extends DBSchema> {
  readonly dbName: string;
  readonly layout: DatabaseLayout<Schema>;
  readonly clock?: Clock | undefined;
  /** How long opening the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number | undefined;
  /**
   * A newer build is waiting to upgrade the database, or somebody to delete it. Called before the connection is closed,
   * which waits for it for a few seconds at most.
   */
  readonly onOutdated?: ((deleted: boolean) => Promise<void>) | undefined;
  /**
   * The connection was closed for somebody who deletes the database, or was lost (then the database may be deleted:
   * clearing the site's data closes connections by force). The next use opens it anew. Also called when the browser
   * itself deleted a damaged database and the new, empty one is open.
   */
  readonly onGone?: ((deleted: boolean) => void) | undefined;
}

/**
 * The time-out of a transaction, in ms: Safari has left requests unanswered forever. None of ours is long, since large
 * ranges are read and deleted in pieces.
 */
const TRANSACTION_MS = 30_000;

/** Reads of one transaction: a write waits for all of them. */
const READS_AT_ONCE = 16;

/** The time-out of `onOutdated`, in ms. */
const GIVE_WAY_MS = 5_000;

/** The transaction reports a failed request; an unhandled rejection would report it twice. */
export const quietly = (request: Promise<unknown>): void => void request.catch(() => undefined);

/**
 * Chromium deletes all databases of an origin if it finds their files damaged, and tells only whoever opens the first of
 * them again, by an attribute that is in no standard.
 */
const isLostByBrowser = (event: IDBVersionChangeEvent): boolean =>
  "dataLoss" in event && event.dataLoss !== undefined && event.dataLoss !== "none";

/** The part of a transaction that ends it. */
interface Abortable {
  readonly done: Promise<void>;
  readonly error: DOMException | null;
  abort(): void;
}

interface SharedRead<Schema extends DBSchema> {
  readonly db: IDBPDatabase<Schema>;
  readonly tx: TransactionOf<Schema, "readonly">;
  /** Reads that may still join. */
  left: number;
}

/**
 * A connection that survives its loss (Safari closes it in the background): the database is opened anew and the work
 * repeated once. So all work must be idempotent.
 *
 * A transaction that times out is aborted, so that it takes no effect later, and fails with `storage-lost`. If it hung in
 * its commit, it may take effect all the same.
 */
export class DatabaseConnection<Schema extends DBSchema> {
  private opening: Promise<IDBPDatabase<Schema>> | undefined;
  private ended: "closed" | "outdated" | undefined;
  private shared: SharedRead<Schema> | undefined;
  readonly clock: Clock;

  constructor(private readonly options: ConnectionOptions<Schema>) {
    this.clock = options.clock ?? systemClock;
  }

  get dbName(): string {
    return this.options.dbName;
  }

  /** Opens the database. Errors: `storage-unavailable`, `storage-blocked`, `outdated`, `closed`. */
  open(): Promise<IDBPDatabase<Schema>> {
    if (this.ended !== undefined) return Promise.reject(new RunnerError(this.ended, { dbName: this.options.dbName }));
    if (this.opening !== undefined) return this.opening;
    // The event may come late, after a new connection was opened.
    const drop = (): void => {
      if (this.opening === opening) this.opening = undefined;
    };
    const opening = this.openNow(drop).catch((error: unknown) => {
      drop();
      throw error;
    });
    this.opening = opening;
    return opening;
  }

  /**
   * `work` must await nothing but the transaction. Reads of small stores of which one follows another at once share a
   * transaction: what a reader reads step by step costs one.
   */
  read<T>(stores: StoreNames<Schema>[], work: (tx: TransactionOf<Schema, "readonly">) => Promise<T>): Promise<T> {
    const { small = [] } = this.options.layout;
    return this.use(async (db) => {
      const open = (names: readonly StoreNames<Schema>[]) => db.transaction([...names], "readonly");
      if (!stores.every((name) => small.includes(name))) {
        const tx = open(stores);
        return this.inTime(tx, () => work(tx));
      }
      const joined = this.shared;
      if (joined?.db === db && joined.left > 0) {
        joined.left--;
        try {
          return await this.inTime(joined.tx, () => work(joined.tx), isHung);
        } catch (error) {
          // It takes no more requests, or the request of another read has failed.
          if (RunnerError.is(error) || isHung(error)) throw error;
        }
      }
      const own: SharedRead<Schema> = { db, tx: open(small), left: READS_AT_ONCE - 1 };
      this.shared = own;
      const over = (): void => void (this.shared === own && (this.shared = undefined));
      own.tx.done.then(over, over);
      try {
        return await this.inTime(own.tx, () => work(own.tx), isHung);
      } catch (error) {
        const isAlone = own.left === READS_AT_ONCE - 1;
        if (isAlone || RunnerError.is(error) || isHung(error)) throw error;
      }
      const tx = open(stores);
      return this.inTime(tx, () => work(tx));
    });
  }

  /** `work` must await nothing but the transaction; an error aborts it. */
  write<T>(
    stores: StoreNames<Schema>[],
    durability: "strict" | "relaxed",
    work: (tx: TransactionOf<Schema, "readwrite">) => Promise<T>,
  ): Promise<T> {
    return this.use((db) => {
      const tx = db.transaction(stores, "readwrite", { durability });
      return this.inTime(tx, async () => {
        const result = await work(tx);
        tx.commit();
        await tx.done;
        return result;
      });
    });
  }

  async close(as: "closed" | "outdated" = "closed"): Promise<void> {
    this.ended ??= as;
    await this.disconnect();
  }

  private async disconnect(): Promise<void> {
    const opening = this.opening;
    this.opening = undefined;
    await opening?.then(
      (db) => db.close(),
      () => undefined,
    );
  }

  /** A deleted database can be opened anew; one of a newer version is closed to this build for good. */
  private async giveWay(deleted: boolean): Promise<void> {
    const { onOutdated, onGone } = this.options;
    const prepared = new AbortController();
    await Promise.race([
      Promise.resolve(deleted)
        .then(onOutdated)
        .catch(() => undefined),
      this.clock.after(GIVE_WAY_MS, prepared.signal),
    ]);
    prepared.abort();
    if (!deleted) return this.close("outdated");
    await this.disconnect();
    onGone?.(true);
  }

  private async use<T>(work: (db: IDBPDatabase<Schema>) => Promise<T>): Promise<T> {
    const { dbName } = this.options;
    let lost: unknown;
    for (;;) {
      const opening = this.open();
      try {
        return await work(await opening);
      } catch (error) {
        if (lost !== undefined && RunnerError.is(error, "storage-unavailable")) throw toStorageError(lost, dbName);
        if (RunnerError.is(error) || !isLost(error)) throw toStorageError(error, dbName);
        if (this.opening === opening) this.opening = undefined;
        // If it still works, it must not block an upgrade.
        (await opening).close();
        // After a time-out the caller has waited long enough.
        if (lost !== undefined || isHung(error)) throw toStorageError(error, dbName);
        lost = error;
      }
    }
  }

  /** @param aborts whether an error of `work`, or its time-out, aborts the transaction. Default: each does */
  private inTime<T>(tx: Abortable, work: () => Promise<T>, aborts = (_error: unknown): boolean => true): Promise<T> {
    tx.done.catch(() => undefined);
    const ended = new AbortController();
    return new Promise((resolve, reject) => {
      const fail = (error: unknown): void => {
        ended.abort();
        // A request of an aborted transaction fails with AbortError; the transaction has the reason.
        reject(RunnerError.is(error) ? error : (tx.error ?? error));
        if (!aborts(error)) return;
        try {
          tx.abort();
        } catch {
          // It has already ended.
        }
      };
      work().then((result) => {
        ended.abort();
        resolve(result);
      }, fail);
      // Two timers: after a frozen host resumes, the first fires at once, and the second leaves the database time to answer.
      const afterHalf = (then: () => void): void =>
        void this.clock.after(TRANSACTION_MS / 2, ended.signal).then(() => ended.signal.aborted || then());
      afterHalf(() => afterHalf(() => fail(hung(TRANSACTION_MS))));
    });
  }

  private async openNow(dropped: () => void): Promise<IDBPDatabase<Schema>> {
    const { dbName, layout, openTimeoutMs = 10_000, onGone } = this.options;
    const timeout = new AbortController();
    let blocked = false;
    let late = false;
    let wasDeleted = false;
    // If storage is disabled, `open` throws synchronously.
    const opened = Promise.resolve().then(() =>
      openDB<Schema>(dbName, layout.version, {
        upgrade(db, from, _to, tx, event) {
          wasDeleted = isLostByBrowser(event);
          // If it fails, the database stays as it was, and `open` fails.
          tx.done.catch(() => undefined);
          layout.upgrade(db, from, tx).catch(() => tx.abort());
        },
        blocked: () => (blocked = true),
        blocking: (_version, wanted) => void this.giveWay(wanted === null),
        terminated: () => {
          dropped();
          onGone?.(false);
        },
      }),
    );
    const checked = opened.then((db) => {
      const missing = layout.stores.filter((name) => !db.objectStoreNames.contains(name));
      if (missing.length === 0) {
        // L10: a reader that shows something of it is told.
        if (wasDeleted) onGone?.(true);
        return db;
      }
      db.close();
      throw new RunnerError("storage-unavailable", { dbName, cause: `It has no store ${missing.join(", ")}` });
    });
    // After the time-out, a late connection would block an upgrade.
    checked.then(
      (db) => late && db.close(),
      () => undefined,
    );
    try {
      return await Promise.race([
        checked,
        this.clock.after(openTimeoutMs, timeout.signal).then(() => {
          late = !timeout.signal.aborted;
          throw new RunnerError(blocked ? "storage-blocked" : "storage-unavailable", { dbName, openTimeoutMs });
        }),
      ]);
    } catch (error) {
      throw toOpenError(error, dbName);
    } finally {
      timeout.abort();
    }
  }
}
