import { RunnerError } from "../../run/errors.js";
import { isRecord } from "../../run/json.js";
import type { LockState } from "../../run/types.js";
import { isSealed, KEYS_PLACE, type PayloadCodec } from "../codec.js";
import {
  changedRecord,
  checkKeyRecord,
  digestBy,
  keyFailed,
  keyOf,
  newFirstId,
  newRecord,
  wrappingKey,
  type KeyChange,
  type KeyRecord,
} from "./keys.js";
import { keyIdOf, open, seal, type DataKey } from "./sealed.js";

/** Where a database keeps its keys. */
export interface KeyStore {
  /** Says in errors which one has another key: several are unlocked together. */
  readonly dbName: string;
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
  return now.locks === other.locks && haveSameKeys(now, other);
};

/** Each change of keys, and of how far they are used, writes the record with a new vector. */
const haveSameKeys = (one: KeyRecord, other: KeyRecord): boolean =>
  one.digest.iv.every((byte, at) => byte === other.digest.iv[at]);

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

/** There may be something to encrypt. `isLater`: more may come, for a while. */
export type OnOpened = (isLater: boolean) => void;

/** One database's part of an encryption: its keys, once they are unlocked, and its codec. */
export class KeyRing {
  private opened: Promise<OpenKeys> | undefined;
  /** The data key that something was last encrypted with. */
  private sealedBy: number | undefined;
  /** What was written with an older data key is being said to be there. */
  private fallingBehind: Promise<void> | undefined;
  /** What was last opened, or refused, with which key: deriving one takes long, and many reads may need it at once. */
  private tried: { readonly key: CryptoKey; readonly record: string; readonly keys: Promise<OpenKeys> } | undefined;

  constructor(
    private readonly store: KeyStore,
    private readonly key: () => Promise<CryptoKey>,
    /** Called whenever the keys were unlocked, or others were found; `isLater`: something has fallen behind. */
    private readonly onOpened: OnOpened = () => undefined,
  ) {}

  readonly codec: Required<Omit<PayloadCodec, "isPlain">> = {
    encode: async (value, place) => {
      const { current } = await this.keys();
      this.sealedBy = current.id;
      return seal(current, value, place);
    },
    decode: async (stored, place) => {
      const keys = await this.keys();
      if (!isSealed(stored)) {
        // What is still to be encrypted; where all is, what somebody else has put there.
        if (!keys.record.isWhole && !(stored instanceof Uint8Array)) return stored;
        throw new RunnerError("corrupt-record");
      }
      const id = keyIdOf(stored);
      const value = await open(await this.keyOfId(id), stored, place);
      const { caughtUp, current } = keys.record;
      // Whoever wrote it had not heard of the newer one.
      if (caughtUp === current && id !== undefined && id < current) this.fellBehind(id);
      return value;
    },
    digest: (text) => this.digest(text),
    ready: async () => void (await this.keys()),
    refuseForeign: (keys, payloads) => {
      const ids = checkKeyRecord(keys)?.keys.map(({ id }) => id);
      const parts = payloads.flatMap((of) => (isRecord(of) ? Object.values(of) : [of]));
      if (parts.every((part) => !isSealed(part) || ids?.includes(keyIdOf(part)!) === true)) return;
      this.forget();
      const message = "The database was deleted before this was written: try again";
      throw new RunnerError("storage-lost", { dbName: this.store.dbName }, { message });
    },
  };

  private async digest(text: string): Promise<string> {
    return digestBy((await this.keys()).digest, text);
  }

  /** Errors: RunnerError `locked`, `wrong-key`, `corrupt-record`, or a storage code. */
  keys(): Promise<OpenKeys> {
    const opened = (this.opened ??= this.openNow().then(
      (keys) => {
        this.onOpened(false);
        return keys;
      },
      (error: unknown) => {
        throw RunnerError.is(error) ? error : keyFailed(error);
      },
    ));
    opened.catch(() => {
      if (this.opened === opened) this.opened = undefined;
    });
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
    if (record !== undefined) await this.unlocked(key, record);
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
    this.tried = undefined;
    this.sealedBy = undefined;
  }

  /** Another host may have changed the keys. */
  async renew(): Promise<void> {
    if (this.opened !== undefined) await this.latest();
  }

  /** Whether a payload is encrypted with the key of new records. */
  async isCurrent(stored: unknown): Promise<boolean> {
    return isSealed(stored) && keyIdOf(stored) === (await this.keys()).current.id;
  }

  /** The keys, if something may be stored that is not encrypted with the data key of new records. */
  async behind(): Promise<KeyRecord | undefined> {
    const { record } = await this.keys();
    return record.caughtUp === record.current ? undefined : record;
  }

  /**
   * Everything is encrypted with the data key of new records.
   *
   * @param since what `behind` said before everything was looked at
   * @returns false, nothing changed, if somebody has changed the keys since, or fell behind
   */
  async caughtUp(since: KeyRecord): Promise<boolean> {
    // Somebody may have locked it for all meanwhile, which is written there, too.
    const { record } = await this.latest();
    return haveSameKeys(record, since) && this.setCaughtUp(record.current);
  }

  /** @returns false, nothing changed, if somebody changes the keys at the same time */
  private async setCaughtUp(to: number): Promise<boolean> {
    const opened = this.keys();
    const keys = await opened;
    const next = await changedRecord(keys.by, keys.record, { caughtUp: to });
    if (!(await this.store.replace(keys.record, next))) return false;
    if (this.opened === opened) this.opened = Promise.resolve({ ...keys, record: next });
    return true;
  }

  /**
   * Something is, or may be, encrypted with an older data key, though everything was looked at, or is being: it is looked at
   * once more. In the background; where it fails, whoever reads it next tries again.
   */
  private fellBehind(id: number): void {
    const again = async (): Promise<void> => {
      let isSet = false;
      // Also where it says so already: who is looking at everything now must not say later that all is done.
      while (!isSet) isSet = await this.setCaughtUp(Math.min(id, (await this.latest()).record.caughtUp));
      this.onOpened(true);
    };
    this.fallingBehind ??= again()
      .catch(() => undefined)
      .finally(() => (this.fallingBehind = undefined));
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

  private async newRecord(key: CryptoKey): Promise<KeyRecord> {
    return newRecord(key, (await this.store.content()) === "nothing", newFirstId());
  }

  private async openNow(): Promise<OpenKeys> {
    const key = await this.key();
    for (;;) {
      const found = await this.load();
      const record = found ?? (await this.newRecord(key));
      if (found === undefined && !(await this.store.replace(undefined, record))) continue;
      return this.tryOnce(key, record);
    }
  }

  /** Errors: RunnerError `wrong-key`, at once for what was refused before. */
  private tryOnce(key: CryptoKey, of: KeyRecord): Promise<OpenKeys> {
    const record = JSON.stringify(of);
    if (this.tried?.key !== key || this.tried.record !== record) {
      const tried = { key, record, keys: this.unlocked(key, of) };
      this.tried = tried;
      tried.keys.catch((error: unknown) => {
        if (!RunnerError.is(error, "wrong-key") && this.tried === tried) this.tried = undefined;
      });
    }
    return this.tried.keys;
  }

  private async unlocked(key: CryptoKey, record: KeyRecord): Promise<OpenKeys> {
    const { dbName } = this.store;
    try {
      return await unlocked(key, record);
    } catch (error) {
      if (!RunnerError.is(error, "wrong-key")) throw error;
      throw new RunnerError("wrong-key", { dbName }, { cause: error.cause });
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
    for (;;) {
      const before = this.keys();
      const keys = await before;
      // Unlocking takes long, and any record may name a key that there is not.
      if (isSameRecord(await this.store.load(), keys.record)) return keys;
      // Others were opened meanwhile, perhaps from an older record.
      if (this.opened !== before) continue;
      const opened = this.openNow();
      const latest = await opened;
      if (this.opened === before) {
        this.opened = opened;
        this.onOpened(false);
        const { sealedBy } = this;
        this.sealedBy = undefined;
        // Who had heard of it before may not have found what was written here until now.
        if (sealedBy !== undefined && sealedBy < latest.current.id) this.fellBehind(sealedBy);
      }
      return latest;
    }
  }
}

async function unlocked(key: CryptoKey, record: KeyRecord): Promise<OpenKeys> {
  const by = await wrappingKey(key, record);
  const [current, digest] = await Promise.all([keyOf(by, record, record.current), keyOf(by, record, "digest")]);
  return { record, by, current: { id: record.current, key: current }, digest, others: new Map() };
}
