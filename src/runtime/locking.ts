import type { Subscription } from "rxjs";
import type { Channel } from "../platform/channel.js";
import { RunnerError } from "../run/errors.js";
import type { Encryption } from "../storage/encryption/encryption.js";
import { toKey, type SentKey } from "../storage/encryption/keys.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import type { LockState } from "../run/types.js";
import type { RunnerHome } from "./runner-home.js";

/** A key, and how often the database had been locked when it was given. */
export interface KeptKey {
  readonly key: SentKey;
  /** Absent: somebody has just given it. */
  readonly locks?: number;
  /** Names the call: a tab repeats it where it got no answer, and somebody may have locked the database in between. */
  readonly id?: string;
}

/** A sign-out. */
export interface LockCall {
  /** See {@link KeptKey}: somebody may have unlocked the database in between. */
  readonly id?: string;
}

/** The key of the database from now on, and the one before. */
export interface ChangedKey {
  readonly current: SentKey;
  readonly next: SentKey;
  /** See {@link KeptKey}. */
  readonly id?: string;
}

/**
 * Told when the links of tabs are to end. `forAll`: their keys are to be forgotten. `isAnew`: the runner is being made anew.
 */
export type LockChanged = (forAll: boolean, isAnew: boolean) => void;

/** Between hosts of a database. `UNCOUNTED` comes before the other, where its count of locks could not be written. */
const LOCKED = "locked";
const UNCOUNTED = "lock not counted";
const ROTATED = "rotated";

/** Of so many calls it is remembered that they were made. */
const MOST_CALLS = 100;

/**
 * Locks and unlocks the database of a host. Whenever it changes whether content can be read, the runner is made anew:
 * nothing that one of them has read is left for the other, and waiting runs begin as after a start.
 */
export class Locking {
  /** One change after the other. */
  private last: Promise<unknown> = Promise.resolve();
  private readonly keys: Subscription;
  private readonly rotations: Subscription;
  /** The encryption has a key. */
  private hasKey = false;
  /** How often keys came or went, and how often when the runner was made. */
  private changes = 0;
  private followed: number;
  /** By the id of a call, how often the database had been locked when it came first. */
  private readonly calls = new Map<string, number>();
  /** By the id of a call that has locked it here, why that may not count elsewhere. Another host would lock it again. */
  private readonly locked = new Map<string, readonly unknown[]>();
  /** The database's count does not tell which keys were kept since before it was locked: none of them counts here. */
  private isUncounted = false;

  /** @param channel to the other hosts of the database */
  constructor(
    private readonly encryption: Encryption,
    private readonly home: RunnerHome,
    private readonly channel: Channel,
    private readonly changed: LockChanged,
  ) {
    channel.messages$.subscribe((message) => {
      if (message === UNCOUNTED) this.uncounted();
      if (message === ROTATED) void encryption.renew();
      if (message !== LOCKED) return;
      encryption.stopWaiting();
      void this.inTurn(() => this.lockHere()).catch(() => undefined);
    });
    this.rotations = encryption.rotated$.subscribe(() => channel.post(ROTATED));
    this.keys = encryption.unlocked$.subscribe((hasKey) => {
      // A function that had failed gives the key: what goes on here goes on, and tabs that were refused ask again.
      if (hasKey && this.hasKey) return this.changed(false, false);
      this.hasKey = hasKey;
      this.changes++;
      // The worker's own code may lock and unlock it, too.
      void this.inTurn(() => this.follow()).catch(() => undefined);
    });
    this.followed = this.changes;
  }

  /**
   * @returns how often the database has been locked until now
   * Errors: RunnerError `wrong-key`; `locked` for a kept key or a repeated call, if somebody has locked the database since
   */
  unlock({ key, ...call }: KeptKey): Promise<number> {
    return this.withKey(call, async () => void (await this.encryption.unlock(await toKey(key))));
  }

  /**
   * Locks the database in all hosts: live runs are stopped, and all tabs have to give the key anew. Also where something
   * fails: nobody who signs out leaves the key behind.
   */
  lock({ id }: LockCall = {}): Promise<void> {
    this.encryption.stopWaiting();
    return this.inTurn(async () => {
      const before = id === undefined ? undefined : this.locked.get(id);
      if (before !== undefined) return throwFirst(before);
      const errors: unknown[] = [];
      const failed = (error: unknown): void => void errors.push(error);
      await this.home.openLocal().catch(failed);
      // Before any tab loses its link: it would give its key to the next host.
      await this.encryption.countLock().catch((error: unknown) => {
        failed(error);
        this.uncounted();
        this.channel.post(UNCOUNTED);
      });
      this.channel.post(LOCKED);
      firstOf(this.locked, id, [...errors]);
      await this.lockHere().catch(failed);
      throwFirst(errors);
    });
  }

  /**
   * Changes the key, and unlocks the database.
   *
   * @returns how often the database has been locked until now
   * Errors: RunnerError `wrong-key`, nothing changed; `locked` as for {@link unlock}
   */
  changeKey({ current, next, ...call }: ChangedKey): Promise<number> {
    return this.withKey(call, async () => {
      await this.encryption.changeKey(await toKey(current), await toKey(next));
    });
  }

  close(): void {
    this.keys.unsubscribe();
    this.rotations.unsubscribe();
    this.channel.close();
  }

  /** @param give has the encryption take a key */
  private withKey({ locks, id }: Omit<KeptKey, "key">, give: () => Promise<void>): Promise<number> {
    return this.inTurn(async () => {
      // The encryption knows the database once there is a runner.
      const runner = await this.home.openLocal();
      const now = await runner.locks();
      const isKept = locks !== undefined;
      if ((locks ?? firstOf(this.calls, id, now)) !== now || (isKept && this.isUncounted))
        throw new RunnerError("locked");
      const before = await stateOf(runner);
      await give();
      // Threads in memory are not encrypted: a new runner would lose them.
      if (before !== undefined && before !== "unlocked") await this.renew(false, () => undefined);
      else this.followed = this.changes;
      return now;
    });
  }

  private uncounted(): void {
    this.isUncounted = true;
    for (const id of this.calls.keys()) this.calls.set(id, -1);
  }

  private async lockHere(): Promise<void> {
    // The tab that asks loses its link, and asks again.
    if (!this.hasKey && this.followed === this.changes) return this.encryption.forget();
    // L11: runs are stopped before the key is gone, and in order.
    await this.renew(true, () => this.encryption.forget());
  }

  /** Keys came or went by somebody else: the runner was not made for it. */
  private async follow(): Promise<void> {
    if (this.followed === this.changes) return;
    const { local } = this.home;
    if (this.hasKey && local !== undefined && (await stateOf(local)) === undefined) this.followed = this.changes;
    else await this.renew(!this.hasKey, () => undefined);
  }

  private async renew(forAll: boolean, before: () => void): Promise<void> {
    const renewed = this.home.renew(before);
    this.changed(forAll, true);
    try {
      await renewed;
    } finally {
      this.followed = this.changes;
    }
  }

  private inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.last.then(change);
    this.last = done.catch(() => undefined);
    return done;
  }
}

/** Undefined: nothing is encrypted. A host whose key is wrong cannot read either. */
const stateOf = (runner: LocalAgentRunner): Promise<LockState | undefined> => runner.lockState().catch(() => "locked");

/** What was first noted of a call. The last calls are remembered. */
function firstOf<T>(calls: Map<string, T>, id: string | undefined, now: T): T {
  if (id === undefined) return now;
  const seen = calls.get(id) ?? now;
  calls.set(id, seen);
  const [oldest] = calls.keys();
  if (oldest !== undefined && calls.size > MOST_CALLS) calls.delete(oldest);
  return seen;
}

function throwFirst(errors: readonly unknown[]): void {
  if (errors.length > 0) throw errors[0];
}

const checkId = (id: unknown): { readonly id?: string } => (typeof id === "string" ? { id } : {});

/** Errors: RunnerError `invalid-input`. */
export async function checkKeptKey(given: KeptKey): Promise<KeptKey> {
  const { key, locks, id } = ((given as unknown) ?? {}) as Partial<KeptKey>;
  return { key: await checkKey(key), ...(typeof locks === "number" && { locks }), ...checkId(id) };
}

/** A tab of an older build gives nothing. */
export const checkLock = (given: LockCall | undefined): LockCall => checkId(given?.id);

/** Errors: RunnerError `invalid-input`. */
export async function checkChangedKey(given: ChangedKey): Promise<ChangedKey> {
  const { current, next, id } = ((given as unknown) ?? {}) as Partial<ChangedKey>;
  return { current: await checkKey(current), next: await checkKey(next), ...checkId(id) };
}

/** A passphrase comes from a tab as bytes, where it comes at all. */
const checkKey = (key: unknown): Promise<CryptoKey> => toKey(typeof key === "string" ? "" : (key as SentKey));
