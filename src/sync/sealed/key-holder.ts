import type { MakeId } from "../../platform/ids.js";
import type { Encryption } from "../../storage/encryption/encryption.js";
import { newRecord } from "../../storage/encryption/keys.js";
import { decodeMessage } from "../messages.js";
import type { Space, SpacePlace } from "../space.js";
import { KEYS_THREAD } from "../thread-key.js";
import { decodeKeyEntry, keyEntryText, type KeyEntry } from "./key-entry.js";
import {
  isOfKeys,
  keyEntryOf,
  newestOf,
  numberOf,
  openedEntry,
  openedKept,
  openedKeys,
  toKeep,
  wrappedFor,
  type KeptKeys,
  type SpaceKeys,
} from "./space-keys.js";

/** Where a device keeps the keys of its space, encrypted. */
export interface KeyStore {
  /** What {@link setKeys} was given; undefined for none. */
  keys(): Promise<unknown>;
  setKeys(keys: KeptKeys): Promise<void>;
}

export interface KeyHolderParts {
  readonly space: Space;
  readonly name: string;
  readonly encryption: Pick<Encryption, "currentKey">;
  readonly store: KeyStore;
  /** Another text after each change of the key on this device: also one while this was not there, or was cut off by a death. */
  readonly keyMark?: () => Promise<string | undefined>;
  readonly makeId: MakeId;
}

/** The device has not the keys of the space. The message says what to do. */
export class NotJoined extends Error {
  /** @param place up to which the space was looked at */
  constructor(
    message: string,
    readonly place: SpacePlace,
  ) {
    super(message);
  }
}

const encoder = new TextEncoder();

const PLAIN = "The space has entries that are not encrypted: name a new space, on all devices";
const WRONG_KEY =
  "The space is encrypted with another key than this device: change the key here to that of the other devices (changeKey), or name another space";
const NEWER = "Another device has a newer version of this app: reload the page";

/** What a log has of keys. */
interface Look {
  readonly log: string;
  /** The last entry of it when it was looked at. */
  readonly end: number;
  /** That of the thread of keys. */
  readonly last: number;
  readonly entries: readonly KeyEntry[];
  readonly hasNewer: boolean;
  /** There are none, and some other entries can be read without them. */
  readonly isPlain: boolean;
}

/**
 * The keys of a space, on one device. They are random and made by the device that comes first, and never change; the space
 * has them wrapped by the key that people give. A device that has them once keeps them.
 */
export class KeyHolder {
  private opened: SpaceKeys | undefined;
  private kept: KeptKeys | undefined;
  private loading: Promise<void> | undefined;
  private publishing: Promise<void> = Promise.resolve();
  /** How often the key was changed here. */
  private changes = 0;

  constructor(private readonly parts: KeyHolderParts) {}

  get keys(): SpaceKeys | undefined {
    return this.opened;
  }

  /** They are those of this log. @param end the seq of its last entry: it may have lost some */
  isOf(log: string, end: number): boolean {
    const { opened, kept } = this;
    return opened !== undefined && kept?.log === log && kept.last <= end;
  }

  /** Reads what the device has kept. Errors: those of the store */
  load(): Promise<void> {
    return (this.loading ??= this.loadNow().catch((error: unknown) => {
      this.loading = undefined;
      throw error;
    }));
  }

  /**
   * Finds the keys of the log, or gives it some. Errors: NotJoined, SpaceOffline; RunnerError `locked`; those of the store
   */
  async join(signal: AbortSignal): Promise<void> {
    for (;;) {
      const look = await this.look(signal);
      if (look === undefined) return;
      const { log, end, last, entries, hasNewer, isPlain } = look;
      const { opened, kept } = this;
      // What cannot be read may be of a device that has not noticed yet that the log was made anew.
      const isNew = entries.length === 0 && !hasNewer;
      if (isNew && isPlain) throw new NotJoined(PLAIN, { log, seq: end });
      if (opened !== undefined && kept !== undefined) {
        const known = await newestOf(opened, entries);
        const isThere = known !== undefined && known.number >= numberOf(kept);
        if (isThere) return this.keep(opened, { ...kept, log, last, entry: keyEntryText(known) });
        // The log lacks it: it was made anew.
        if (isNew || known !== undefined) {
          const seq = await this.add(kept.entry, last);
          if (seq !== undefined) return this.keep(opened, { ...kept, log, last: seq });
          continue;
        }
      }
      const { changes } = this;
      const marked = await this.marked();
      const key = await this.parts.encryption.currentKey();
      const found = isNew ? await this.made(key) : await openedEntry(key, entries, this.parts.name);
      if (found === undefined) throw new NotJoined(hasNewer ? NEWER : WRONG_KEY, { log, seq: end });
      const { keys, entry } = found;
      const text = keyEntryText(entry);
      const seq = isNew ? await this.add(text, last) : last;
      // Another device was first.
      if (seq === undefined) continue;
      const toOpen = await toKeep(key, entry.record);
      const isBehind = this.changes !== changes;
      return this.keep(keys, { id: keys.id, log, last: seq, entry: text, isBehind, ...marked, ...toOpen });
    }
  }

  /** An entry of the thread of keys was read. */
  async read(seq: number, body: Uint8Array): Promise<void> {
    const { opened, kept } = this;
    if (opened === undefined || kept === undefined || seq <= kept.last) return;
    const read = decodeKeyEntry(body);
    const isNewer = typeof read === "object" && read.number > numberOf(kept) && (await isOfKeys(opened, read));
    await this.keep(opened, { ...(this.kept ?? kept), last: seq, ...(isNewer && { entry: keyEntryText(read) }) });
    this.publish().catch(() => undefined);
  }

  /** From now on other devices join with the key that was given here. Errors: SpaceOffline: later */
  async keyChanged(): Promise<void> {
    this.changes++;
    await this.load();
    const { opened, kept } = this;
    if (opened === undefined || kept === undefined) return;
    await this.keep(opened, { ...kept, isBehind: true, ...(await this.marked()) });
    await this.publish();
  }

  /** Tells the space the key that was changed here, if it was. Errors: SpaceOffline; RunnerError `locked` */
  publish(): Promise<void> {
    const published = this.publishing.then(() => this.publishNow());
    this.publishing = published.catch(() => undefined);
    return published;
  }

  private async publishNow(): Promise<void> {
    const { opened, kept, changes } = this;
    if (opened === undefined || kept?.isBehind !== true) return;
    const record = await wrappedFor(await this.parts.encryption.currentKey(), kept);
    const entry = keyEntryText(await keyEntryOf(opened, numberOf(kept) + 1, record));
    const seq = await this.add(entry, kept.last);
    const { kept: now } = this;
    // Another device was first: its entry is still to be read.
    if (seq === undefined || now?.log !== kept.log) return;
    // The key may have been changed once more, here or by a device that has read this entry.
    const isBehind = this.changes !== changes;
    const isNewest = numberOf(now) <= numberOf(kept);
    await this.keep(opened, { ...now, last: Math.max(now.last, seq), isBehind, ...(isNewest && { entry }) });
  }

  private async loadNow(): Promise<void> {
    const kept = (await this.parts.store.keys()) as KeptKeys | undefined; // what `keep` gave it
    const opened = kept && (await openedKept(kept, this.parts.name).catch(() => undefined));
    // That of another space is of no use.
    if (opened === undefined || opened.id !== kept?.id) return;
    const { mark } = await this.marked();
    if (mark === undefined || mark === kept.mark) {
      this.kept = kept;
      this.opened = opened;
    } else {
      // What older builds kept has none.
      const isBehind = kept.isBehind || kept.mark !== undefined;
      await this.keep(opened, { ...kept, mark, isBehind });
    }
  }

  private async marked(): Promise<Pick<KeptKeys, "mark">> {
    const mark = await this.parts.keyMark?.();
    return mark === undefined ? {} : { mark };
  }

  /** Keys for a space that has none. */
  private async made(key: CryptoKey): Promise<{ readonly keys: SpaceKeys; readonly entry: KeyEntry }> {
    const record = await newRecord(key, true);
    const keys = await openedKeys(key, record, this.parts.name);
    return { keys, entry: await keyEntryOf(keys, 1, record) };
  }

  /** @returns undefined where another device was first */
  private add(entry: string, last: number): Promise<number | undefined> {
    const { space, makeId } = this.parts;
    return space.add(KEYS_THREAD, encoder.encode(entry), { last, id: makeId() });
  }

  private async keep(keys: SpaceKeys, kept: KeptKeys): Promise<void> {
    this.opened = keys;
    this.kept = kept;
    await this.parts.store.setKeys(kept);
  }

  /** Everything that the log has of keys. Errors: SpaceOffline. @returns undefined when `signal` has aborted */
  private async look(signal: AbortSignal): Promise<Look | undefined> {
    const { space } = this.parts;
    const begun = await this.beginning(signal);
    if (begun === undefined) return undefined;
    let last = 0;
    let hasNewer = false;
    const entries: KeyEntry[] = [];
    for await (const { seq, body } of space.entries(KEYS_THREAD, signal)) {
      last = seq;
      const entry = decodeKeyEntry(body);
      if (entry === "newer") hasNewer = true;
      else if (entry !== undefined) entries.push(entry);
    }
    const isPlain = entries.length === 0 && (await this.isPlain(signal));
    return signal.aborted ? undefined : { ...begun, last, entries, hasNewer, isPlain };
  }

  private async beginning(signal: AbortSignal): Promise<Pick<Look, "log" | "end"> | undefined> {
    for await (const frame of this.parts.space.read(undefined, signal)) {
      if (frame.is === "begins") return { log: frame.log, end: frame.last };
    }
    return undefined;
  }

  /** Of some thread the last entry can be read without keys. */
  private async isPlain(signal: AbortSignal): Promise<boolean> {
    for await (const { thread, body } of this.parts.space.lasts(signal)) {
      if (thread !== KEYS_THREAD && decodeMessage(body) !== undefined) return true;
    }
    return false;
  }
}
