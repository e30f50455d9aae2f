import type { DBSchema } from "idb";
import type { Clock } from "../platform/clock.js";
import { syncDbName } from "../platform/names.js";
import { DatabaseConnection } from "../storage/indexeddb/database-connection.js";
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
  /** The entry in the list as the space has it. */
  readonly listed?: Listed;
  /** It was deleted here when the space had runs up to this entry, and the space is still to be told. */
  readonly deleting?: number;
  /** Another branch was taken up here, and the space is still to be told. */
  readonly activating?: { readonly runId: string; readonly knew: string | null };
}

/** What people change of a thread's entry in the list. */
export interface Listed {
  readonly title: string;
  readonly archived: boolean;
  readonly pinned: boolean;
}

interface SyncSchema extends DBSchema {
  /**
   * `device`: this device's id. `place`: everything up to it is in the log. `epoch`: one of the log. `revives`: the space has
   * begun anew.
   */
  meta: { key: "device" | "place" | "revives" | "epoch"; value: string | number | SpacePlace };
  threads: { key: string; value: ThreadRecord };
}

/** What a device remembers of the space, beside the log. Losing it costs a new look at everything, never an event. */
export class SyncDatabase {
  private readonly connection: DatabaseConnection<SyncSchema>;

  constructor(dbName: string, clock: Clock) {
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

  async place(): Promise<SpacePlace | undefined> {
    const place = await this.connection.read(["meta"], (tx) => tx.objectStore("meta").get("place"));
    return typeof place === "object" ? place : undefined;
  }

  /** The space has begun anew once. */
  async revives(): Promise<boolean> {
    return (await this.connection.read(["meta"], (tx) => tx.objectStore("meta").getKey("revives"))) !== undefined;
  }

  thread(key: string): Promise<ThreadRecord | undefined> {
    return this.connection.read(["threads"], (tx) => tx.objectStore("threads").get(key));
  }

  /** @param place absent: it stays */
  put(threads: readonly ThreadRecord[], place?: SpacePlace): Promise<void> {
    return this.connection.write(["meta", "threads"], "relaxed", async (tx) => {
      for (const thread of threads)
        void tx
          .objectStore("threads")
          .put(thread)
          .catch(() => undefined);
      if (place !== undefined) await tx.objectStore("meta").put(place, "place");
    });
  }

  /** An epoch of the log that this is about. */
  async epoch(): Promise<number | undefined> {
    const epoch = await this.connection.read(["meta"], (tx) => tx.objectStore("meta").get("epoch"));
    return typeof epoch === "number" ? epoch : undefined;
  }

  setEpoch(epoch: number): Promise<void> {
    return this.connection.write(["meta"], "relaxed", async (tx) => {
      await tx.objectStore("meta").put(epoch, "epoch");
    });
  }

  /** The space, or the log of this device, begins anew: nothing that is known of it counts. @param revives the space */
  forget(revives: boolean): Promise<void> {
    return this.connection.write(["meta", "threads"], "strict", async (tx) => {
      const meta = tx.objectStore("meta");
      await Promise.all([
        meta.delete("place"),
        meta.delete("epoch"),
        ...(revives ? [meta.put("", "revives")] : []),
        tx.objectStore("threads").clear(),
      ]);
    });
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}
