import { openDB, type DBSchema, type IDBPDatabase, type IDBPTransaction, type StoreNames } from "idb";
import type { Clock } from "../../platform/clock.js";
import { RunnerError } from "../../run/errors.js";
import { hung, isHung, isLost, toOpenError, toStorageError } from "./failures.js";

type TransactionOf<Schema extends DBSchema, Mode extends IDBTransactionMode> = IDBPTransaction<
  Schema,
  StoreNames<Schema>[],
  Mode
>;

/** What a database consists of, and how one of an older version comes to that. */
export interface DatabaseLayout<Schema extends DBSchema> {
  readonly version: number;
  /** A database of this version without one of them is somebody else's. */
  readonly stores: readonly StoreNames<Schema>[];
  /** Brings a database of version `from` (0: a new one) to `version`, in its versionchange transaction. */
  upgrade(db: IDBPDatabase<Schema>, from: number, tx: TransactionOf<Schema, "versionchange">): Promise<void>;
}

export interface ConnectionOptions<Schema extends DBSchema> {
  readonly dbName: string;
  readonly layout: DatabaseLayout<Schema>;
  readonly clock: Clock;
  /** How long `open` may take before it is reported as blocked. */
  readonly openTimeoutMs: number;
  /**
   * A newer build wants to upgrade the database, or somebody deletes it: called before the connection is given up, and
   * not waited for any longer than a few seconds.
   */
  readonly onOutdated: (deleted: boolean) => Promise<void>;
  /**
   * The connection was given up to somebody who deletes the database, or fell (then it may be deleted: who clears the
   * site's data closes connections by force). The next use opens it anew, after that.
   */
  readonly onGone?: (deleted: boolean) => void;
}

/**
 * How long a transaction may take before it is given up, in ms: Safari has left requests without an answer for ever. None
 * of ours is long: large ranges are read and deleted in pieces.
 */
const TRANSACTION_MS = 30_000;

/** How long a newer build, or whoever deletes the database, is kept waiting for `onOutdated`, in ms. */
const GIVE_WAY_MS = 5_000;

/** As much of a transaction as it takes to end one. */
interface Abortable {
  readonly done: Promise<void>;
  readonly error: DOMException | null;
  abort(): void;
}

/**
 * A handle on the database that survives the fall of the connection (Safari loses it after backgrounding): the dead
 * handle is dropped, the database opened anew and the work repeated once. So all work must be repeatable.
 *
 * A transaction that does not end in time is aborted, so that it takes no effect later, and told as `storage-lost`. Where
 * it hung in its commit, it may take effect all the same: like after any ambiguous end, who repeats it repeats nothing.
 */
export class DatabaseConnection<Schema extends DBSchema> {
  private opening: Promise<IDBPDatabase<Schema>> | undefined;
  private ended: "closed" | "outdated" | undefined;

  constructor(private readonly options: ConnectionOptions<Schema>) {}

  /** Opens the database. Errors: `storage-unavailable`, `storage-blocked`, `outdated`, `closed`. */
  open(): Promise<IDBPDatabase<Schema>> {
    if (this.ended !== undefined) return Promise.reject(new RunnerError(this.ended, { dbName: this.options.dbName }));
    if (this.opening !== undefined) return this.opening;
    // A handle that was dropped is heard of late: by then another one may stand in its place.
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

  async read<T>(stores: StoreNames<Schema>[], work: (tx: TransactionOf<Schema, "readonly">) => Promise<T>): Promise<T> {
    return this.use((db) => {
      const tx = db.transaction(stores, "readonly");
      return this.inTime(tx, () => work(tx));
    });
  }

  /** `work` awaits nothing but the transaction; what it throws aborts. */
  async write<T>(
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
    const opening = this.opening;
    this.opening = undefined;
    await opening?.then(
      (db) => db.close(),
      () => undefined,
    );
  }

  /** A deleted database may be begun anew at once; one of a newer version is closed to this build for good. */
  private async giveWay(deleted: boolean): Promise<void> {
    const { clock, onOutdated } = this.options;
    const prepared = new AbortController();
    await Promise.race([
      Promise.resolve(deleted)
        .then(onOutdated)
        .catch(() => undefined),
      clock.after(GIVE_WAY_MS, prepared.signal),
    ]);
    prepared.abort();
    if (!deleted) return this.close("outdated");
    const opening = this.opening;
    this.opening = undefined;
    await opening?.then(
      (db) => db.close(),
      () => undefined,
    );
    this.options.onGone?.(true);
  }

  private async use<T>(work: (db: IDBPDatabase<Schema>) => Promise<T>): Promise<T> {
    const { dbName } = this.options;
    let lost: unknown;
    for (;;) {
      const opening = this.open();
      const db = await opening.catch((error: unknown) => {
        throw lost !== undefined && RunnerError.is(error, "storage-unavailable") ? toStorageError(lost, dbName) : error;
      });
      try {
        return await work(db);
      } catch (error) {
        if (RunnerError.is(error) || !isLost(error)) throw toStorageError(error, dbName);
        if (this.opening === opening) this.opening = undefined;
        // Where it is not lost after all, it must not stand in the way of the next version.
        db.close();
        // Who waited for a transaction that hung has waited long enough.
        if (lost !== undefined || isHung(error)) throw toStorageError(error, dbName);
        lost = error;
      }
    }
  }

  /** Does `work` in a transaction that is aborted where it fails or hangs. */
  private async inTime<T>(tx: Abortable, work: () => Promise<T>): Promise<T> {
    tx.done.catch(() => undefined);
    const ended = new AbortController();
    try {
      return await Promise.race([work(), this.tooLong(ended.signal)]);
    } catch (error) {
      // A request of an aborted transaction fails with AbortError; why it was aborted stands in the transaction.
      const reason = RunnerError.is(error) ? error : (tx.error ?? error);
      try {
        tx.abort();
      } catch {
        // It has ended already.
      }
      throw reason;
    } finally {
      ended.abort();
    }
  }

  /** In two parts: a host that was frozen hears of both too late, and still has the second one to hear its database. */
  private tooLong(ended: AbortSignal): Promise<never> {
    const { clock } = this.options;
    const half = (): Promise<void> => clock.after(TRANSACTION_MS / 2, ended);
    return new Promise((_resolve, reject) => {
      void half()
        .then(half)
        .then(() => ended.aborted || reject(hung(TRANSACTION_MS)));
    });
  }

  private async openNow(dropped: () => void): Promise<IDBPDatabase<Schema>> {
    const { dbName, layout, clock, openTimeoutMs, onGone } = this.options;
    const timeout = new AbortController();
    let blocked = false;
    let late = false;
    // Where storage is switched off, `open` throws at once.
    const opened = Promise.resolve().then(() =>
      openDB<Schema>(dbName, layout.version, {
        upgrade(db, from, _to, tx) {
          // One that fails leaves the database as it was, and `open` fails.
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
      if (missing.length === 0) return db;
      db.close();
      throw new RunnerError("storage-unavailable", { dbName, cause: `It has no store ${missing.join(", ")}` });
    });
    // An open that ends after its time-out must not keep its connection: it would block the next version.
    checked.then(
      (db) => late && db.close(),
      () => undefined,
    );
    try {
      return await Promise.race([
        checked,
        clock.after(openTimeoutMs, timeout.signal).then(() => {
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
