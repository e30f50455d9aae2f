import { BehaviorSubject, Subject, type Observable } from "rxjs";
import { systemClock } from "../../platform/clock.js";
import { Lazy } from "../../platform/lazy.js";
import { RunnerError } from "../../run/errors.js";
import { checkNames, type Names } from "../../run/options.js";
import type { LockState } from "../../run/types.js";
import { keyFailed, toKey } from "./keys.js";
import { KeyRing, type KeyStore, type OnOpened } from "./key-ring.js";

/** A passphrase, or a key that may wrap and unwrap keys, see {@link createEncryptionKey}. */
export type EncryptionKey = CryptoKey | string;

/** What an {@link Encryption} is made with. */
export interface EncryptionOptions {
  /**
   * The key, or a function that is called when it is first needed: while it fails, everything is `locked`, and each use
   * calls it again. So it is where it does not answer within 5 s; its key is used when it comes, unless somebody has
   * locked or unlocked it meanwhile. Absent: somebody unlocks it later.
   */
  readonly key?: EncryptionKey | (() => EncryptionKey | Promise<EncryptionKey>);
}

/** How long a function that gives the key is waited for, in ms. A host says hello only after that. */
const KEY_MS = 5_000;

const NAMES: Names<EncryptionOptions> = { key: true };

/**
 * Encrypts what databases hold: AES-GCM, each with data keys of its own, which the given key wraps. One object can be given
 * to a runtime, checkpoint stores and savers, which are then locked and unlocked together.
 */
export class Encryption {
  private readonly rings: KeyRing[] = [];
  /** Rings that are being made. */
  private readonly joining = new Set<Promise<unknown>>();
  private readonly states: BehaviorSubject<boolean>;
  private readonly changes = new Subject<void>();
  private readonly rotations = new Subject<void>();
  /** Undefined: locked. */
  private key: Lazy<CryptoKey> | undefined;
  /** How often it was locked here. */
  private forgotten = 0;
  /** Ends the wait for what a function gives. */
  private waiting: AbortController | undefined;

  /** @throws RunnerError `invalid-input` */
  constructor(options: EncryptionOptions = {}) {
    checkNames(options, NAMES, { of: "Encryption" });
    const { key } = options;
    if (typeof key === "function") this.key = this.keyOf(key);
    else if (key !== undefined) this.key = new Lazy(() => toKey(key));
    this.states = new BehaviorSubject(key !== undefined);
  }

  /**
   * Whether a key, or a function that gives it, is here: not whether it is the right one. Replays the latest value; emits
   * `true` again when a function that had failed has given the key.
   */
  get unlocked$(): Observable<boolean> {
    return this.states.asObservable();
  }

  /**
   * The key that was given, for what it wraps beside the keys of databases. Errors: RunnerError `locked`.
   *
   * @internal
   */
  currentKey(): Promise<CryptoKey> {
    return this.key?.get() ?? Promise.reject(new RunnerError("locked"));
  }

  /**
   * Emits after each {@link changeKey}.
   *
   * @internal
   */
  get keyChanges$(): Observable<void> {
    return this.changes.asObservable();
  }

  /**
   * Emits after each {@link rotate}: other hosts go on with the data keys that they have until they are told.
   *
   * @internal
   */
  get rotated$(): Observable<void> {
    return this.rotations.asObservable();
  }

  /**
   * Another host has rotated. Where the key here does not open the new data keys, those that are open stay.
   *
   * @internal
   */
  async renew(): Promise<void> {
    await Promise.allSettled((await this.all()).map((ring) => ring.renew()));
  }

  /**
   * The keys of a database. Its codec can be used at once: it rejects with `locked` as long as there is no key.
   *
   * @param onOpened called whenever they were unlocked, or others were found, or something was found that is behind
   * @internal
   */
  ring(store: KeyStore, onOpened?: OnOpened): KeyRing {
    const ring = new KeyRing(store, () => this.currentKey(), onOpened);
    this.rings.push(ring);
    return ring;
  }

  /**
   * A ring is being made: whatever is done to all databases waits for it.
   *
   * @internal
   */
  joins(ring: Promise<KeyRing>): void {
    const made: Promise<unknown> = ring.catch(() => undefined).finally(() => this.joining.delete(made));
    this.joining.add(made);
  }

  /**
   * The database of these keys was closed.
   *
   * @internal
   */
  release(ring: KeyRing): void {
    const at = this.rings.indexOf(ring);
    if (at >= 0) this.rings.splice(at, 1);
    ring.forget();
  }

  /** Of all databases that use it. Errors: RunnerError `wrong-key` if the key that was given is not theirs, or a storage code. */
  async state(): Promise<LockState> {
    const states = await Promise.all(
      (await this.all()).map((ring) =>
        ring.state().catch((error: unknown): LockState => {
          if (!RunnerError.is(error, "locked")) throw error;
          return "locked";
        }),
      ),
    );
    if (this.key !== undefined) return states.every((state) => state === "unlocked") ? "unlocked" : "locked";
    return states.every((state) => state === "new") ? "new" : "locked";
  }

  /**
   * Gives the key. If it is the first one ever, it becomes that of the databases.
   *
   * @returns the key in the form in which it can be given again: from a passphrase, what keys are derived from
   * Errors: RunnerError `wrong-key`, nothing changed; `locked` if somebody has locked it since this call began;
   * `invalid-input` for what is no key.
   */
  async unlock(given: EncryptionKey): Promise<CryptoKey> {
    const refuse = this.refuseLater();
    const key = await toKey(given);
    for (const ring of await this.all()) await ring.check(key);
    refuse();
    const before = this.key;
    const used = this.use(key);
    try {
      // Where none has any, they are made now: the next key that is given must be this one.
      for (const ring of await this.all()) await ring.keys();
    } catch (error) {
      refuse();
      // Whoever gave it was refused: it must not be used later.
      if (this.key === used) this.use(before);
      throw error;
    }
    refuse();
    this.tell();
    return key;
  }

  /**
   * Forgets the keys, and has tabs forget theirs: nothing can be read or written until somebody unlocks it. Also where a
   * storage code is thrown.
   */
  async lock(): Promise<void> {
    try {
      await this.countLock();
    } finally {
      this.forget();
    }
  }

  /**
   * From now on no key that a tab has kept unlocks it by itself. A database in which that cannot be written keeps it out of
   * no other.
   *
   * @internal
   */
  async countLock(): Promise<void> {
    const counted = await Promise.allSettled((await this.all()).map((ring) => ring.countLock()));
    for (const one of counted) if (one.status === "rejected") throw one.reason;
  }

  /**
   * Whoever waits for a function that gives the key is refused: a sign-out must not wait for it.
   *
   * @internal
   */
  stopWaiting(): void {
    this.waiting?.abort();
  }

  /** @internal */
  forget(): void {
    this.forgotten++;
    this.use(undefined);
    this.tell();
  }

  /**
   * From now on `next` unlocks the databases, and `current` no more. What is stored is not encrypted anew: see
   * {@link rotate}.
   *
   * Errors: RunnerError `wrong-key`, nothing changed; `locked` if somebody has locked it since this call began: it stays
   * locked, and the key may have changed. Call again with the same keys.
   */
  async changeKey(current: EncryptionKey, next: EncryptionKey): Promise<CryptoKey> {
    const refuse = this.refuseLater();
    const [from, to] = await Promise.all([toKey(current), toKey(next)]);
    const rings = await this.all();
    // A call that was cut off may have changed some.
    const done = await Promise.all(rings.map(async (ring) => !(await ring.isOpenedBy(from)) && ring.isOpenedBy(to)));
    for (const [at, ring] of rings.entries()) if (!done[at]) await ring.check(from);
    refuse();
    // All or none: a lock that comes from now on leaves no database with the other key.
    for (const [at, ring] of rings.entries()) if (!done[at]) await ring.change(from, { key: to });
    refuse();
    this.use(to);
    this.tell();
    this.changes.next();
    return to;
  }

  /** New records are encrypted with new data keys from now on; older ones anew, in the background. */
  async rotate(): Promise<void> {
    const key = await this.currentKey();
    for (const ring of await this.all()) await ring.change(key, { rotates: true });
    this.rotations.next();
  }

  private keyOf(give: () => EncryptionKey | Promise<EncryptionKey>): Lazy<CryptoKey> {
    let hasFailed = false;
    /** Undefined: it has failed, or was not asked yet. */
    let asked: Promise<CryptoKey> | undefined;
    /** It was waited for in vain: it is not asked again meanwhile. */
    let isLate = false;
    const ask = (): Promise<CryptoKey> => {
      const asking = (async () => toKey(await give()))();
      asking.then(
        () => {
          if (isLate) lazy.get().catch(() => undefined);
          isLate = false;
        },
        () => {
          asked = undefined;
          isLate = false;
        },
      );
      return asking;
    };
    const lazy: Lazy<CryptoKey> = new Lazy(async () => {
      let key: CryptoKey;
      try {
        key = await this.awaited((asked ??= ask()), isLate);
      } catch (error) {
        hasFailed = true;
        isLate = asked !== undefined;
        throw keyFailed(error, isLate);
      }
      // Whoever was refused meanwhile looks again. Another key may have taken its place, or none.
      if (hasFailed && this.key === lazy) this.states.next(true);
      return key;
    });
    return lazy;
  }

  /** @param isLate it is not waited for again */
  private async awaited(asked: Promise<CryptoKey>, isLate: boolean): Promise<CryptoKey> {
    const over = new AbortController();
    this.waiting = over;
    if (isLate) over.abort();
    const tooLong = systemClock.after(KEY_MS, over.signal).then(() => {
      throw new Error("The function that gives the key has not answered");
    });
    try {
      return await Promise.race([asked, tooLong]);
    } finally {
      over.abort();
    }
  }

  private async all(): Promise<readonly KeyRing[]> {
    await Promise.all(this.joining);
    return [...this.rings];
  }

  private use(key: CryptoKey | Lazy<CryptoKey> | undefined): Lazy<CryptoKey> | undefined {
    this.key = key instanceof Lazy || key === undefined ? key : new Lazy(() => key);
    this.stopWaiting();
    for (const ring of this.rings) ring.forget();
    return this.key;
  }

  /** @returns throws a RunnerError `locked` if somebody has locked it since: whoever signs out is not undone */
  private refuseLater(): () => void {
    const { forgotten } = this;
    return () => {
      if (this.forgotten !== forgotten) throw new RunnerError("locked");
    };
  }

  private tell(): void {
    const isUnlocked = this.key !== undefined;
    if (isUnlocked !== this.states.value) this.states.next(isUnlocked);
  }
}
