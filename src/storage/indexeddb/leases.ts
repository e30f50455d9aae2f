import { openDB, type DBSchema, type IDBPDatabase, type IDBPObjectStore, type StoreNames } from "idb";
import { systemClock, type Clock } from "../../platform/clock.js";
import { leaseDbName } from "../../platform/names.js";
import { RunnerError } from "../../run/errors.js";
import { hung, isHung, toOpenError, toStorageError } from "./failures.js";

/** How a lease stands: who has it, and how often it was raised since. */
export interface Lease {
  /** One holding of the lease: fresh each time that somebody takes it. */
  readonly owner: string;
  readonly beat: number;
}

/** True when nobody took or raised the lease between the two looks. */
export const isSameLease = (one: Lease, other: Lease): boolean =>
  one.owner === other.owner && Object.is(one.beat, other.beat);

/**
 * The leases of a database's threads, by lock name. Each call must be one atomic transaction, in one order over all
 * contexts, and must come to the same when it is repeated after an ambiguous end.
 */
export interface LeaseStore {
  /**
   * Gives the lease to `owner` where nobody has it, and where it stands just as `over` says.
   *
   * @returns undefined when `owner` has it now; else the lease that stands there
   */
  take(name: string, owner: string, over?: Lease): Promise<Lease | undefined>;
  /** Gives the lease to `owner`, whoever has it. */
  replace(name: string, owner: string): Promise<void>;
  /**
   * Raises each lease that its owner still has; must leave those of others as they are.
   *
   * @param owned the owners, by lock name
   * @returns the names of the leases that are not their owner's any more
   */
  beat(owned: ReadonlyMap<string, string>): Promise<string[]>;
  /** Deletes the lease if it is still `owner`'s. */
  remove(name: string, owner: string): Promise<void>;
  all(): Promise<ReadonlyMap<string, Lease>>;
  /** What is asked afterwards is refused. */
  close(): Promise<void>;
}

/** History of the layout: 1, the first. */
const VERSION = 1;

interface LeaseSchema extends DBSchema {
  leases: { key: string; value: Lease };
}

type LeaseDatabase = IDBPDatabase<LeaseSchema>;
type Rows = IDBPObjectStore<LeaseSchema, StoreNames<LeaseSchema>[], "leases", "readwrite">;

export interface LeaseStoreOptions {
  /** Name of the log's database: the leases have one of their own beside it. */
  readonly dbName: string;
  readonly clock?: Clock;
  /** How long opening may take, and each transaction, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
}

/**
 * The leases in IndexedDB, in a database of their own: the log's appends never wait for a beat. Opens at the first use.
 * Errors: those of storage in RunnerErrorCode.
 */
export function indexedDBLeaseStore(options: LeaseStoreOptions): LeaseStore {
  const { clock = systemClock, openTimeoutMs = 10_000 } = options;
  const dbName = leaseDbName(options.dbName);
  let opening: Promise<LeaseDatabase> | undefined;
  let closed = false;

  /** In two parts: a context that was frozen hears of both too late, and still has the second one to hear its database. */
  const inTime = async <T>(work: Promise<T>): Promise<T> => {
    const ended = new AbortController();
    const half = (): Promise<void> => clock.after(openTimeoutMs / 2, ended.signal);
    const tooLong = new Promise<never>((_resolve, reject) => {
      void half()
        .then(half)
        .then(() => ended.signal.aborted || reject(hung(openTimeoutMs)));
    });
    try {
      return await Promise.race([work, tooLong]);
    } finally {
      ended.abort();
    }
  };

  const open = (): Promise<LeaseDatabase> => {
    if (closed) return Promise.reject(new RunnerError("closed", { dbName }));
    if (opening !== undefined) return opening;
    // Where storage is switched off, this throws at once. One that opens too late gives way like every other.
    const now = inTime(Promise.resolve().then(() => openLeases(dbName))).catch((error: unknown) => {
      if (opening === now) opening = undefined;
      throw toOpenError(error, dbName);
    });
    return (opening = now);
  };

  /**
   * `work` awaits nothing but the rows. A connection may have fallen unnoticed, so the first failure is taken for that.
   * Relaxed: after a power loss no holder is left.
   */
  const change = async <T>(work: (rows: Rows) => Promise<T>): Promise<T> => {
    for (let tries = 0; ; tries++) {
      const handle = open();
      const db = await handle;
      let end = (): void => undefined;
      const done = async (): Promise<T> => {
        const tx = db.transaction(["leases"], "readwrite", { durability: "relaxed" });
        end = () => tx.abort();
        // Told by `work` as well.
        tx.done.catch(() => undefined);
        const result = await work(tx.objectStore("leases"));
        // A context that is frozen here holds nobody up.
        tx.commit();
        await tx.done;
        return result;
      };
      try {
        return await inTime(done());
      } catch (error) {
        try {
          end();
        } catch {
          // It has ended already.
        }
        if (opening === handle) opening = undefined;
        db.close();
        if (tries > 0 || isHung(error)) throw toStorageError(error, dbName);
      }
    }
  };

  return {
    take: (name, owner, over) =>
      change(async (rows) => {
        const there = toLease(await rows.get(name));
        const free = there === undefined || there.owner === owner || (over !== undefined && isSameLease(there, over));
        if (!free) return there;
        await rows.put({ owner, beat: 0 }, name);
        return undefined;
      }),
    replace: (name, owner) => change(async (rows) => void (await rows.put({ owner, beat: 0 }, name))),
    beat: (owned) =>
      change(async (rows) => {
        const lost: string[] = [];
        const raise = async ([name, owner]: readonly [string, string]): Promise<void> => {
          const there = await rows.get(name);
          if (there?.owner === owner) await rows.put({ owner, beat: there.beat + 1 }, name);
          else lost.push(name);
        };
        await Promise.all([...owned].map(raise));
        return lost;
      }),
    remove: (name, owner) =>
      change(async (rows) => {
        if ((await rows.get(name))?.owner === owner) await rows.delete(name);
      }),
    all: () =>
      change(async (rows) => {
        const [names, leases] = await Promise.all([rows.getAllKeys(), rows.getAll()]);
        return new Map(names.map((name, n) => [name, toLease(leases[n])!]));
      }),
    async close() {
      closed = true;
      await opening?.then(
        (db) => db.close(),
        () => undefined,
      );
    },
  };
}

/** Nobody raises what is no lease: it is one of a dead holder, so that no record wedges a thread (L7). */
function toLease(record: unknown): Lease | undefined {
  if (record === undefined) return undefined;
  const { owner, beat } = (record ?? {}) as Partial<Record<keyof Lease, unknown>>;
  return { owner: String(owner), beat: Number(beat) };
}

function openLeases(dbName: string): Promise<LeaseDatabase> {
  return openDB<LeaseSchema>(dbName, VERSION, {
    upgrade: (db) => void db.createObjectStore("leases"),
    // A newer build, or somebody deletes it. The target of this event is the connection:
    // https://w3c.github.io/IndexedDB/#opening
    blocking: (_version, _wanted, event) => (event.target as IDBDatabase).close(),
  });
}
