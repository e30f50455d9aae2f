import { openDB, type IDBPTransaction } from "idb";
import type { Clock } from "../../platform/clock.js";
import { RunnerError } from "../../run/errors.js";
import { DB_VERSION, upgrade, type Database, type RuntimeSchema, type Stores } from "./schema.js";

export type WriteTransaction = IDBPTransaction<RuntimeSchema, Stores[], "readwrite">;
export type ReadTransaction = IDBPTransaction<RuntimeSchema, Stores[], "readonly">;

export interface ConnectionOptions {
  readonly dbName: string;
  readonly clock: Clock;
  /** How long `open` may take before it is reported as blocked. */
  readonly openTimeoutMs: number;
  /** A newer build wants to upgrade the database, or somebody deletes it: called before the connection is given up. */
  readonly onOutdated: (deleted: boolean) => Promise<void>;
}

const nameOf = (error: unknown): string => (error as { name?: string } | null)?.name ?? "";

/** The connection fell: the handle is of no use any more, another may be. */
const isLost = (error: unknown): boolean =>
  nameOf(error) === "InvalidStateError" || nameOf(error) === "UnknownError" || /connection/i.test(String(error));

/**
 * A storage failure as the RunnerError that tells what to do. Quota arrives as an abort, at times with an empty message
 * and null fields: only its name is sure.
 */
export function toStorageError(error: unknown, dbName: string): RunnerError {
  if (RunnerError.is(error)) return error;
  const details = { dbName, cause: `${nameOf(error)}: ${(error as { message?: string } | null)?.message ?? ""}` };
  const code =
    nameOf(error) === "QuotaExceededError"
      ? "quota-exceeded"
      : nameOf(error) === "VersionError"
        ? "outdated"
        : "storage-lost";
  return new RunnerError(code, details, { cause: error });
}

/**
 * A handle on the database that survives the fall of the connection (Safari loses it after backgrounding): the dead
 * handle is dropped, the database opened anew and the work repeated once. So all work must be repeatable.
 */
export class Connection {
  private opening: Promise<Database> | undefined;
  private ended: "closed" | "outdated" | undefined;

  constructor(private readonly options: ConnectionOptions) {}

  /** Opens the database. Errors: `storage-unavailable`, `storage-blocked`, `outdated`, `closed`. */
  open(): Promise<Database> {
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

  async read<T>(stores: Stores[], work: (tx: ReadTransaction) => Promise<T>): Promise<T> {
    return this.use((db) => {
      const tx = db.transaction(stores, "readonly");
      tx.done.catch(() => undefined);
      return work(tx);
    });
  }

  /** `work` awaits nothing but the transaction; what it throws aborts. */
  async write<T>(
    stores: Stores[],
    durability: "strict" | "relaxed",
    work: (tx: WriteTransaction) => Promise<T>,
  ): Promise<T> {
    return this.use(async (db) => {
      const tx = db.transaction(stores, "readwrite", { durability });
      tx.done.catch(() => undefined);
      try {
        const result = await work(tx);
        tx.commit();
        await tx.done;
        return result;
      } catch (error) {
        // A request of an aborted transaction fails with AbortError; why it was aborted stands in the transaction.
        const reason = RunnerError.is(error) ? error : (tx.error ?? error);
        try {
          tx.abort();
        } catch {
          // It has ended already.
        }
        throw reason;
      }
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
    await this.options.onOutdated(deleted).catch(() => undefined);
    if (!deleted) return this.close("outdated");
    const opening = this.opening;
    this.opening = undefined;
    await opening?.then(
      (db) => db.close(),
      () => undefined,
    );
  }

  private async use<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const { dbName } = this.options;
    for (let attempt = 0; ; attempt++) {
      const opening = this.open();
      const db = await opening;
      try {
        return await work(db);
      } catch (error) {
        if (RunnerError.is(error)) throw error;
        if (attempt > 0 || !isLost(error)) throw toStorageError(error, dbName);
        if (this.opening === opening) this.opening = undefined;
        // Where it is not lost after all, it must not stand in the way of the next version.
        db.close();
      }
    }
  }

  private async openNow(dropped: () => void): Promise<Database> {
    const { dbName, clock, openTimeoutMs } = this.options;
    const timeout = new AbortController();
    let blocked = false;
    let late = false;
    // Where storage is switched off, `open` throws at once.
    const opened = Promise.resolve().then(() =>
      openDB<RuntimeSchema>(dbName, DB_VERSION, {
        upgrade(db, from, _to, tx) {
          // One that fails leaves the database as it was, and `open` fails.
          tx.done.catch(() => undefined);
          upgrade(db, from, tx).catch(() => tx.abort());
        },
        blocked: () => (blocked = true),
        blocking: (_version, wanted) => void this.giveWay(wanted === null),
        terminated: dropped,
      }),
    );
    // An open that ends after its time-out must not keep its connection: it would block the next version.
    opened.then(
      (db) => late && db.close(),
      () => undefined,
    );
    try {
      return await Promise.race([
        opened,
        clock.after(openTimeoutMs, timeout.signal).then(() => {
          late = !timeout.signal.aborted;
          throw new RunnerError(blocked ? "storage-blocked" : "storage-unavailable", { dbName, openTimeoutMs });
        }),
      ]);
    } catch (error) {
      if (RunnerError.is(error)) throw error;
      throw nameOf(error) === "VersionError"
        ? new RunnerError("outdated", { dbName }, { cause: error })
        : new RunnerError("storage-unavailable", { dbName, cause: String(error) }, { cause: error });
    } finally {
      timeout.abort();
    }
  }
}
