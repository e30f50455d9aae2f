import { skip, type Subscription } from "rxjs";
import type { Channel } from "../platform/channel.js";
import { RunnerError } from "../run/errors.js";
import type { Encryption } from "../storage/encryption/encryption.js";
import { toKey, type SentKey } from "../storage/encryption/keys.js";
import type { RunnerHome } from "./runner-home.js";

/** A key, and how often the database had been locked when it was given. */
export interface KeptKey {
  readonly key: SentKey;
  /** Absent: somebody has just given it. */
  readonly locks?: number;
}

/** The key of the database from now on, and the one before. */
export interface ChangedKey {
  readonly current: SentKey;
  readonly next: SentKey;
}

/** Told when the runner is being made anew: the links of tabs end. `forAll`: their keys are to be forgotten. */
export type LockChanged = (forAll: boolean) => void;

/** Between hosts of a database. */
const LOCKED = "locked";

/**
 * Locks and unlocks the database of a host. Whenever it changes whether content can be read, the runner is made anew:
 * nothing that one of them has read is left for the other, and waiting runs begin as after a start.
 */
export class Locking {
  /** One change after the other. */
  private last: Promise<unknown> = Promise.resolve();
  /** The encryption is being changed from here. */
  private isChanging = false;
  private readonly byOthers: Subscription;

  /** @param channel to the other hosts of the database */
  constructor(
    private readonly encryption: Encryption,
    private readonly home: RunnerHome,
    private readonly channel: Channel,
    private readonly changed: LockChanged,
  ) {
    channel.messages$.subscribe((message) => {
      if (message === LOCKED) void this.inTurn(() => this.lockHere()).catch(() => undefined);
    });
    // The worker's own code may lock and unlock it, too.
    this.byOthers = encryption.unlocked$.pipe(skip(1)).subscribe((isUnlocked) => {
      if (!this.isChanging) void this.inTurn(() => this.renew(!isUnlocked, () => undefined)).catch(() => undefined);
    });
  }

  /**
   * @returns how often the database has been locked until now
   * Errors: RunnerError `wrong-key`; `locked` for a kept key, if somebody has locked the database since
   */
  unlock({ key, locks }: KeptKey): Promise<number> {
    return this.inTurn(async () => {
      // The encryption knows the database once there is a runner.
      const runner = await this.home.openLocal();
      const now = await runner.locks();
      if (locks !== undefined && locks !== now) throw new RunnerError("locked");
      const before = await runner.lockState().catch(() => "locked");
      await this.encryption.unlock(await toKey(key));
      if (before !== "unlocked") await this.renew(false, () => undefined);
      return now;
    });
  }

  /** Locks the database in all hosts: live runs are stopped, and all tabs have to give the key anew. */
  lock(): Promise<void> {
    return this.inTurn(async () => {
      await this.home.openLocal();
      // Before any tab loses its link: it would give its key to the next host.
      await this.encryption.countLock();
      this.channel.post(LOCKED);
      await this.lockHere();
    });
  }

  /** Errors: RunnerError `wrong-key`, nothing changed. */
  changeKey({ current, next }: ChangedKey): Promise<void> {
    return this.inTurn(async () => {
      await this.home.open();
      await this.encryption.changeKey(await toKey(current), await toKey(next));
    });
  }

  close(): void {
    this.byOthers.unsubscribe();
    this.channel.close();
  }

  private async lockHere(): Promise<void> {
    const runner = await this.home.openLocal();
    // The tab that asks loses its link, and asks again.
    const state = await runner.lockState().catch(() => undefined);
    if (state === "locked" || state === "new") return;
    // L11: runs are stopped before the key is gone, and in order.
    await this.renew(true, () => this.encryption.forget());
  }

  private renew(forAll: boolean, before: () => void): Promise<void> {
    const renewed = this.home.renew(before);
    this.changed(forAll);
    return renewed;
  }

  private inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.last.then(() => {
      this.isChanging = true;
      return change();
    });
    const over = (): void => void (this.isChanging = false);
    this.last = done.then(over, over);
    return done;
  }
}

/** Errors: RunnerError `invalid-input`. */
export async function checkKeptKey(given: KeptKey): Promise<KeptKey> {
  const { key, locks } = ((given as unknown) ?? {}) as Partial<KeptKey>;
  return { key: await checkKey(key), ...(typeof locks === "number" && { locks }) };
}

/** Errors: RunnerError `invalid-input`. */
export async function checkChangedKey(given: ChangedKey): Promise<ChangedKey> {
  const { current, next } = ((given as unknown) ?? {}) as Partial<ChangedKey>;
  return { current: await checkKey(current), next: await checkKey(next) };
}

/** A passphrase comes from a tab as bytes, where it comes at all. */
const checkKey = (key: unknown): Promise<CryptoKey> => toKey(typeof key === "string" ? "" : (key as SentKey));
