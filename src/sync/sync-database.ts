import type { DBSchema } from "idb";
import type { Clock } from "../platform/clock.js";
import { syncDbName } from "../platform/names.js";
import { RunnerError } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import { decoded, isSealed, plainCodec, type PayloadCodec, type PayloadPlace } from "../storage/codec.js";
import { DatabaseConnection } from "../storage/indexeddb/database-connection.js";
import { areEqual } from "./added-entries.js";
import type { SpacePlace } from "./space.js";
import type { ThreadState } from "./thread-state.js";

/** History of the layout: 1, the first. */
const VERSION = 1;

/** What this device knows of a thread in the space, and has sent of its own. */
export interface ThreadRecord {
  /** The key of its entries. */
  readonly key: string;
  readonly threadId: string;
  readonly state: ThreadState;
  /** Runs below this index are in the space, whole. */
  readonly sent: number;
  /**
   * All of its runs are sent, also those of other devices: the space has deleted or lost them. These were sent since, by
   * whomever.
   */
  readonly revives?: readonly string[];
  /** Names of runs that others have nothing of, and will not: they cannot be read here. */
  readonly leftOut?: readonly string[];
  /** Names of runs of others that this device has nothing of, and will not; each with that of the run that it continues. */
  readonly lacks?: readonly (readonly [name: string, prev: string | null])[];
  /** It was deleted once: of what was added unseen, the runs that it continues come again, maybe behind it. */
  readonly wasDeleted?: true;
  /** The entry in the list as the space has it. */
  readonly listed?: Listed;
  /** What the space has of it is not here, or not all of it: it is read from its first entry when somebody asks for it. */
  readonly unread?: true;
  /** Index of its first run; a greater one in the log: it was deleted since, and has begun anew. Absent: 0. */
  readonly first?: number;
  /**
   * What was added since its entries were joined into one: how many, and bytes. `whole`: the bytes of that one, 0: none.
   * `remains`: the thread is deleted, and what stands before that one, whose seq this is, may still be there.
   */
  readonly since?: {
    readonly entries: number;
    readonly bytes: number;
    readonly whole: number;
    readonly remains?: number;
  };
  /** It was deleted here when the space had runs up to this entry, and the space is still to be told. */
  readonly deleting?: number;
  /**
   * Of the end of the active path: `said`, this device has added what made it that; `seen`, the log has had it since. A log
   * that ends elsewhere then does so because people here have taken up another branch. Absent: the log is to follow.
   */
  readonly activeIs?: "said" | "seen";
}

/** What people change of a thread's entry in the list. */
export interface Listed {
  readonly title: string;
  readonly archived: boolean;
  readonly pinned: boolean;
}

/** What is known of the space as a whole. */
export interface Known {
  /** This device's id. */
  readonly device: string;
  /** Everything up to it is in the log. */
  readonly place: SpacePlace;
  /** The space has begun anew once. */
  readonly revives: "";
  /** An epoch of the log that this is about. */
  readonly epoch: number;
  /**
   * There may be threads whose runs have not come. Keys of those that are not in the list, though they may have to be: their
   * last entries do not say how, or say `gone`. Absent (`true` of older builds): none.
   */
  readonly absent: { readonly unlisted?: readonly string[]; readonly gone?: readonly string[] };
}

/** An encrypted {@link ThreadRecord}. */
interface SealedRecord extends Pick<ThreadRecord, "key"> {
  readonly sealed: unknown;
}

interface SyncSchema extends DBSchema {
  /**
   * {@link Known}. `seal`: all threads are encrypted, with the data key of this id or a newer one (`true` of older builds: with
   * any). `keys`: those of the space, encrypted.
   */
  meta: { key: keyof Known | "seal" | "keys"; value: unknown };
  threads: { key: string; value: ThreadRecord | SealedRecord };
}

const placeOf = (key: string): PayloadPlace => ["thread of a space", key];
const SPACE_KEYS: PayloadPlace = ["keys of a space"];
const SEAL: PayloadPlace = ["seal of what a space is known by"];

/** Records that are read at once. */
const PIECE = 100;

const isSameRecord = (one: unknown, other: unknown): boolean =>
  isSealed(one) && isSealed(other) && areEqual(one, other);

const refused = (): RunnerError => new RunnerError("corrupt-record", { store: "sync" });

/** What a device remembers of the space, beside the log. Losing it costs a new look at everything, never an event. */
export class SyncDatabase {
  private readonly connection: DatabaseConnection<SyncSchema>;
  private last: Promise<void> = Promise.resolve();

  /** @param codec that of the log: one key opens both, whoever changes it */
  constructor(
    dbName: string,
    clock: Clock,
    private readonly codec: PayloadCodec = plainCodec,
  ) {
    this.connection = new DatabaseConnection<SyncSchema>({
      dbName: syncDbName(dbName),
      clock,
      layout: {
        version: VERSION,
        stores: ["meta", "threads"],
        upgrade: async (db) => {
          db.createObjectStore("meta");
          db.createObjectStore("threads", { keyPath: "key" });
        },
      },
    });
  }

  /**
   * Forgets plain records where they are to be encrypted, or the reverse: they are about a space that is not encrypted, or
   * is, which the device never shares again. Those of an older data key are encrypted anew.
   */
  async prepare(): Promise<void> {
    const isEncrypted = this.codec.isPlain !== true;
    const seal = await this.meta("seal");
    if (isEncrypted === (seal !== undefined)) {
      // What fails is done at the next start.
      if (isEncrypted) await this.sealAnew(seal).catch(() => undefined);
      return;
    }
    await this.forget((await this.get("place")) !== undefined);
    await this.connection.write(["meta"], "strict", async (tx) => {
      const meta = tx.objectStore("meta");
      await Promise.all([meta.delete("keys"), isEncrypted ? meta.put(true, "seal") : meta.delete("seal")]);
    });
  }

  /** The keys of the space, as {@link setKeys} was given them; undefined where there are none that can be read. */
  async keys(): Promise<unknown> {
    const stored = await this.meta("keys");
    if (stored === undefined) return undefined;
    return decoded(this.codec, stored, SPACE_KEYS, refused).catch((error: unknown) => {
      if (!RunnerError.is(error, "corrupt-record")) throw error;
      return undefined;
    });
  }

  async setKeys(keys: unknown): Promise<void> {
    const sealed = await this.codec.encode(keys, SPACE_KEYS);
    await this.connection.write(["meta"], "strict", async (tx) => {
      await tx.objectStore("meta").put(sealed, "keys");
    });
  }

  /** This device's id. @param made what it is from now on, where it has none */
  device(made: string): Promise<string> {
    return this.connection.write(["meta"], "strict", async (tx) => {
      const meta = tx.objectStore("meta");
      const known = await meta.get("device");
      if (typeof known === "string") return known;
      void meta.put(made, "device").catch(() => undefined);
      return made;
    });
  }

  async get<Key extends keyof Known>(key: Key): Promise<Known[Key] | undefined> {
    return (await this.meta(key)) as Known[Key] | undefined; // nobody else writes it
  }

  /** @param value undefined: there is none any more */
  set<Key extends keyof Known>(key: Key, value: Known[Key] | undefined): Promise<void> {
    return this.connection.write(["meta"], key === "device" ? "strict" : "relaxed", async (tx) => {
      const meta = tx.objectStore("meta");
      await (value === undefined ? meta.delete(key) : meta.put(value, key));
    });
  }

  /** Errors: RunnerError `corrupt-record`, where it was changed by somebody else. */
  async thread(key: string): Promise<ThreadRecord | undefined> {
    const stored = await this.connection.read(["threads"], (tx) => tx.objectStore("threads").get(key));
    return stored === undefined ? undefined : this.recordIn(stored);
  }

  /** Ids of the threads that are held for runs of this device, as far as that can be read. */
  async heldBy(deviceId: string): Promise<readonly string[]> {
    const held: string[] = [];
    for await (const page of this.pages()) {
      for (const stored of page) {
        const record = await this.recordIn(stored).catch((error: unknown) => {
          if (!RunnerError.is(error, "corrupt-record")) throw error;
          return undefined;
        });
        if (record?.state.lock?.device.id === deviceId) held.push(record.threadId);
      }
    }
    return held;
  }

  /** @param place absent: it stays */
  put(threads: readonly ThreadRecord[], place?: SpacePlace): Promise<void> {
    return this.inOrder(() => this.putNow(threads, place));
  }

  /** The space, or the log of this device, begins anew: nothing that is known of it counts. @param revives the space */
  forget(revives: boolean): Promise<void> {
    return this.inOrder(() =>
      this.connection.write(["meta", "threads"], "strict", async (tx) => {
        const meta = tx.objectStore("meta");
        await Promise.all([
          meta.delete("place"),
          meta.delete("epoch"),
          meta.delete("absent"),
          ...(revives ? [meta.put("", "revives")] : []),
          tx.objectStore("threads").clear(),
        ]);
      }),
    );
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  /** One after the other: encrypting takes a while, and the last one counts. */
  private inOrder(write: () => Promise<void>): Promise<void> {
    const written = this.last.then(write);
    this.last = written.catch(() => undefined);
    return written;
  }

  private async putNow(threads: readonly ThreadRecord[], place?: SpacePlace): Promise<void> {
    const stored = await Promise.all(threads.map((thread) => this.stored(thread)));
    return this.connection.write(["meta", "threads"], "relaxed", async (tx) => {
      for (const thread of stored)
        void tx
          .objectStore("threads")
          .put(thread)
          .catch(() => undefined);
      if (place !== undefined) await tx.objectStore("meta").put(place, "place");
    });
  }

  private async sealAnew(seal: unknown): Promise<void> {
    const probe = await this.codec.encode(true, SEAL);
    // Loaded already: it has just encrypted this.
    const { keyIdOf } = await loaded(import("../storage/encryption/sealed.js"));
    const current = isSealed(probe) ? keyIdOf(probe) : undefined;
    if (current === undefined || current === seal) return;
    /** @returns undefined where there is nothing to do, or what cannot be read */
    const anew = async (stored: unknown, place: PayloadPlace): Promise<unknown> => {
      if (!isSealed(stored) || keyIdOf(stored) === current) return undefined;
      try {
        return await this.codec.encode(await decoded(this.codec, stored, place, refused), place);
      } catch (error) {
        if (!RunnerError.is(error, "corrupt-record")) throw error;
        return undefined;
      }
    };
    for await (const records of this.pages()) {
      const threads: SealedRecord[] = [];
      for (const record of records) {
        const sealed = "sealed" in record ? await anew(record.sealed, placeOf(record.key)) : undefined;
        if (sealed !== undefined) threads.push({ key: record.key, sealed });
      }
      await this.connection.write(["threads"], "relaxed", async (tx) => {
        await Promise.all(threads.map((thread) => tx.objectStore("threads").put(thread)));
      });
    }
    const before = await this.meta("keys");
    const keys = await anew(before, SPACE_KEYS);
    await this.connection.write(["meta"], "strict", async (tx) => {
      const meta = tx.objectStore("meta");
      // They may have been written meanwhile, then with the key of new records.
      const isSame = keys !== undefined && isSameRecord(await meta.get("keys"), before);
      await Promise.all([...(isSame ? [meta.put(keys, "keys")] : []), meta.put(current, "seal")]);
    });
  }

  /** All records of threads, as they are stored. */
  private async *pages(): AsyncGenerator<readonly (ThreadRecord | SealedRecord)[], void> {
    for (let after = ""; ;) {
      const page = await this.connection.read(["threads"], (tx) =>
        tx.objectStore("threads").getAll(IDBKeyRange.lowerBound(after, true), PIECE),
      );
      yield page;
      if (page.length < PIECE) return;
      after = page.at(-1)!.key;
    }
  }

  /** Errors: RunnerError `corrupt-record` */
  private async recordIn(stored: ThreadRecord | SealedRecord): Promise<ThreadRecord> {
    const payload = "sealed" in stored ? stored.sealed : stored;
    // Only `put` writes it.
    return (await decoded(this.codec, payload, placeOf(stored.key), refused)) as ThreadRecord;
  }

  private async stored(thread: ThreadRecord): Promise<ThreadRecord | SealedRecord> {
    const { key } = thread;
    return this.codec.isPlain === true ? thread : { key, sealed: await this.codec.encode(thread, placeOf(key)) };
  }

  private meta(key: SyncSchema["meta"]["key"]): Promise<unknown> {
    return this.connection.read(["meta"], (tx) => tx.objectStore("meta").get(key));
  }
}
