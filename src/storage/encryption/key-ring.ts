import { RunnerError } from "../../run/errors.js";
import type { LockState } from "../../run/types.js";
import { isSealed, KEYS_PLACE, type PayloadCodec } from "../codec.js";
import {
  changedRecord,
  checkKeyRecord,
  digestBy,
  keyFailed,
  keyOf,
  newRecord,
  wrappingKey,
  type KeyChange,
  type KeyRecord,
} from "./keys.js";
import { keyIdOf, open, seal, type DataKey } from "./sealed.js";

/** Where a database keeps its keys. */
export interface KeyStore {
  /** Unchecked; undefined if there is none. */
  load(): Promise<unknown>;
  /**
   * Replaces the record that was read, in one strict transaction.
   *
   * @param from undefined: there was none
   * @returns false, nothing changed, if it is another one by now, or if the first one says that all is encrypted while
   *   somebody has stored something
   */
  replace(from: KeyRecord | undefined, to: KeyRecord): Promise<boolean>;
  /** What the database holds; `sealed`: something encrypted, as far as a quick look finds it. */
  content(): Promise<"nothing" | "plain" | "sealed">;
}

/** Whether a record of keys is still the one that was read. */
export const isSameRecord = (one: unknown, other: KeyRecord | undefined): boolean => {
  const now = checkKeyRecord(one);
  if (now === undefined || other === undefined) return now === other;
  // Each change of keys writes it with a new vector.
  return now.locks === other.locks && now.digest.iv.every((byte, at) => byte === other.digest.iv[at]);
};

/** The keys of one database, in memory. */
interface OpenKeys {
  readonly record: KeyRecord;
  /** Unwraps further ones. */
  readonly by: CryptoKey;
  readonly current: DataKey;
  readonly digest: CryptoKey;
  /** Older data keys, by id. */
  readonly others: Map<number, Promise<DataKey>>;
}

/** One database's part of an encryption: its keys, once they are unlocked, and its codec. */
export class KeyRing {
  private opened: Promise<OpenKeys> | undefined;

  constructor(
    private readonly store: KeyStore,
    private readonly key: () => Promise<CryptoKey>,
    /** Called whenever the keys were unlocked, or others were found. */
    private readonly onOpened: () => void = () => undefined,
  ) {}

  readonly codec: Required<Omit<PayloadCodec, "isPlain">> = {
    encode: async (value, place) => seal((await this.keys()).current, value, place),
    decode: async (stored, place) => {
      const keys = await this.keys();
      if (!isSealed(stored)) {
        // What is still to be encrypted; where all is, what somebody else has put there.
        if (!keys.record.isWhole && !(stored instanceof Uint8Array)) return stored;
        throw new RunnerError("corrupt-record");
      }
      return open(await this.keyOfId(keyIdOf(stored)), stored, place);
    },
    digest: (text) => this.digest(text),
    ready: async () => void (await this.keys()),
  };

  private async digest(text: string): Promise<string> {
    return digestBy((await this.keys()).digest, text);
  }

  /** Errors: RunnerError `locked`, `wrong-key`, `corrupt-record`, or a storage code. */
  keys(): Promise<OpenKeys> {
    const opened = (this.opened ??= this.openNow().catch((error: unknown) => {
      throw RunnerError.is(error) ? error : keyFailed(error);
    }));
    opened.catch(() => this.opened === opened && this.forget());
    return opened;
  }

  /**
   * Errors: RunnerError `wrong-key` if the key that was given is not that of the database; `locked`, with its cause, if
   * getting the key failed; or a storage code.
   */
  async state(): Promise<LockState> {
    try {
      await this.keys();
      return "unlocked";
    } catch (error) {
      // Where a key is to come, nobody is asked for a first one.
      if (!RunnerError.is(error, "locked") || error.cause !== undefined) throw error;
      return (await this.load()) === undefined ? "new" : "locked";
    }
  }

  /** How often somebody has locked the database for all; 0 if it has no keys yet. */
  async locks(): Promise<number> {
    return (await this.load())?.locks ?? 0;
  }

  /** Says nothing of the key, and is another one after each change of it. Errors: as {@link keys} */
  async keyMark(): Promise<string | undefined> {
    await this.keys();
    // Another host may have changed it since they were opened.
    const record = await this.load();
    return record && btoa(String.fromCharCode(...record.salt));
  }

  /** No key that was kept until now unlocks it by itself any more. */
  async countLock(): Promise<void> {
    for (;;) {
      const record = await this.load();
      if (record === undefined) return;
      if (await this.store.replace(record, { ...record, locks: record.locks + 1 })) return;
    }
  }

  /** Errors: RunnerError `wrong-key`, if it is not that of the database. A database without keys takes any. */
  async check(key: CryptoKey): Promise<void> {
    const record = await this.load();
    if (record !== undefined) await unlocked(key, record);
  }

  async isOpenedBy(key: CryptoKey): Promise<boolean> {
    return this.check(key).then(
      () => true,
      (error: unknown) => {
        if (!RunnerError.is(error, "wrong-key")) throw error;
        return false;
      },
    );
  }

  forget(): void {
    this.opened = undefined;
  }

  /** Whether a payload is encrypted with the key of new records. */
  async isCurrent(stored: unknown): Promise<boolean> {
    return isSealed(stored) && keyIdOf(stored) === (await this.keys()).current.id;
  }

  /** The data key of new records, if something may be stored that is not encrypted with it. */
  async behind(): Promise<number | undefined> {
    const { record } = await this.keys();
    return record.caughtUp === record.current ? undefined : record.current;
  }

  /**
   * Everything is encrypted with this data key, or a newer one. Nothing is changed if new records have another one by now.
   *
   * @param id that of `behind` before everything was looked at
   */
  async caughtUp(id: number): Promise<void> {
    const opened = this.keys();
    const keys = await opened;
    const { record } = keys;
    if (record.current !== id) return;
    const next = await changedRecord(await this.key(), record, { caughtUp: id });
    if ((await this.store.replace(record, next)) && this.opened === opened) {
      this.opened = Promise.resolve({ ...keys, record: next });
    }
  }

  /** Errors: RunnerError `wrong-key`. A database without keys is left alone. */
  async change(key: CryptoKey, change: KeyChange): Promise<void> {
    for (;;) {
      const record = await this.load();
      if (record === undefined) return;
      const done = await this.store.replace(record, await changedRecord(key, record, change));
      this.forget();
      if (done) return;
    }
  }

  /** The stored record. Errors: RunnerError `corrupt-record` too if it is gone, and with it what was encrypted. */
  private async load(): Promise<KeyRecord | undefined> {
    const record = checkKeyRecord(await this.store.load());
    // New keys would read none of it, and be in the way of the old ones, which a backup may hold.
    if (record === undefined && (await this.store.content()) === "sealed") {
      throw new RunnerError("corrupt-record", { store: KEYS_PLACE });
    }
    return record;
  }

  private async openNow(): Promise<OpenKeys> {
    const key = await this.key();
    for (;;) {
      const found = await this.load();
      const record = found ?? (await newRecord(key, (await this.store.content()) === "nothing"));
      if (found === undefined && !(await this.store.replace(undefined, record))) continue;
      const opened = await unlocked(key, record);
      this.onOpened();
      return opened;
    }
  }

  private async keyOfId(id: number | undefined): Promise<DataKey> {
    const has = ({ record }: OpenKeys): boolean => record.keys.some((one) => one.id === id);
    let keys = await this.keys();
    // Another host may have made it.
    if (id !== undefined && !has(keys)) keys = await this.latest();
    if (id === undefined || !has(keys)) throw new RunnerError("corrupt-record");
    if (keys.current.id === id) return keys.current;
    const known = keys.others.get(id) ?? keyOf(keys.by, keys.record, id).then((key) => ({ id, key }));
    keys.others.set(id, known);
    return known;
  }

  /** The keys as they are stored now. Where the given key does not open them, those that are open stay. */
  private async latest(): Promise<OpenKeys> {
    const before = this.opened;
    const keys = await this.keys();
    // Unlocking takes long, and any record may name a key that there is not.
    if (isSameRecord(await this.store.load(), keys.record)) return keys;
    if (this.opened !== before) return this.keys();
    const opened = this.openNow();
    const latest = await opened;
    if (this.opened === before) this.opened = opened;
    return latest;
  }
}

async function unlocked(key: CryptoKey, record: KeyRecord): Promise<OpenKeys> {
  const by = await wrappingKey(key, record);
  const [current, digest] = await Promise.all([keyOf(by, record, record.current), keyOf(by, record, "digest")]);
  return { record, by, current: { id: record.current, key: current }, digest, others: new Map() };
}
