import { BehaviorSubject, type Observable } from "rxjs";
import { RunnerError } from "../../run/errors.js";
import { checkNames, type Names } from "../../run/options.js";
import { toKey } from "./keys.js";
import { KeyRing, type KeyStore } from "./key-ring.js";

/** A passphrase, or a key that may wrap and unwrap keys, see {@link createEncryptionKey}. */
export type EncryptionKey = CryptoKey | string;

export interface EncryptionOptions {
  /** The key, or a function that is called when it is first needed. Absent: somebody unlocks it later. */
  readonly key?: EncryptionKey | (() => EncryptionKey | Promise<EncryptionKey>);
}

/** `new`: nothing is encrypted yet, and the first key that is given becomes that of the databases. */
export type LockState = "new" | "locked" | "unlocked";

const NAMES: Names<EncryptionOptions> = { key: true };

/**
 * Encrypts what databases hold: AES-GCM, each with data keys of its own, which the given key wraps. One object can be given
 * to a runtime, checkpoint stores and savers, which are then locked and unlocked together.
 */
export class Encryption {
  private readonly rings: KeyRing[] = [];
  /** Rings that are being made. */
  private readonly joining = new Set<Promise<unknown>>();
  private readonly states = new BehaviorSubject<boolean>(false);
  private key: Promise<CryptoKey> | undefined;

  /** @throws RunnerError `invalid-input` */
  constructor(private readonly options: EncryptionOptions = {}) {
    checkNames(options, NAMES, { of: "Encryption" });
    this.states.next(options.key !== undefined);
  }

  /** Whether a key is here: not whether it is the right one. Replays the latest value. */
  get unlocked$(): Observable<boolean> {
    return this.states.asObservable();
  }

  /**
   * The keys of a database. Its codec can be used at once: it rejects with `locked` as long as there is no key.
   *
   * @param onOpened called whenever they were unlocked, or others were found
   * @internal
   */
  ring(store: KeyStore, onOpened?: () => void): KeyRing {
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

  /** Errors: RunnerError `wrong-key` if the key that was given is not that of the databases, or a storage code. */
  async state(): Promise<LockState> {
    if (this.states.value) {
      for (const ring of await this.all()) await ring.keys();
      return "unlocked";
    }
    const isNew = await Promise.all((await this.all()).map((ring) => ring.isNew()));
    return isNew.every(Boolean) ? "new" : "locked";
  }

  /**
   * Gives the key. If it is the first one ever, it becomes that of the databases.
   *
   * @returns the key in the form in which it can be given again: from a passphrase, what keys are derived from
   * Errors: RunnerError `wrong-key`, nothing changed; `invalid-input` for what is no key.
   */
  async unlock(given: EncryptionKey): Promise<CryptoKey> {
    const key = await toKey(given);
    for (const ring of await this.all()) await ring.check(key);
    this.use(Promise.resolve(key));
    this.states.next(true);
    return key;
  }

  /** Forgets all keys: nothing can be read or written until somebody unlocks it. */
  lock(): void {
    this.use(undefined);
    this.states.next(false);
  }

  /**
   * From now on `next` unlocks the databases, and `current` no more. What is stored is not encrypted anew: see
   * {@link rotate}.
   *
   * Errors: RunnerError `wrong-key`, nothing changed.
   */
  async changeKey(current: EncryptionKey, next: EncryptionKey): Promise<CryptoKey> {
    const [from, to] = await Promise.all([toKey(current), toKey(next)]);
    const rings = await this.all();
    // A call that was cut off may have changed some.
    const done = await Promise.all(rings.map(async (ring) => !(await ring.isOpenedBy(from)) && ring.isOpenedBy(to)));
    if (!done.includes(true)) for (const ring of rings) await ring.check(from);
    for (const [at, ring] of rings.entries()) if (!done[at]) await ring.change(from, { key: to });
    this.use(Promise.resolve(to));
    this.states.next(true);
    return to;
  }

  /** New records are encrypted with new data keys from now on; older ones anew, in the background. */
  async rotate(): Promise<void> {
    const key = await this.currentKey();
    for (const ring of await this.all()) await ring.change(key, { rotates: true });
    this.states.next(true);
  }

  private async all(): Promise<readonly KeyRing[]> {
    await Promise.all(this.joining);
    return [...this.rings];
  }

  private use(key: Promise<CryptoKey> | undefined): void {
    this.key = key;
    for (const ring of this.rings) ring.forget();
  }

  private currentKey(): Promise<CryptoKey> {
    if (!this.states.value) return Promise.reject(new RunnerError("locked"));
    const { key } = this.options;
    const asked = (this.key ??= Promise.resolve(typeof key === "function" ? key() : key!).then(toKey));
    asked.catch(() => this.key === asked && (this.key = undefined));
    return asked;
  }
}
