import {
  BehaviorSubject,
  combineLatest,
  concatMap,
  distinctUntilChanged,
  filter,
  map,
  share,
  type Observable,
  type Subscription,
} from "rxjs";
import { abortWith, sharedController } from "../../platform/abort.js";
import { Bell } from "../../platform/bell.js";
import type { MakeId } from "../../platform/ids.js";
import type { Logger } from "../../platform/log.js";
import { RunnerError } from "../../run/errors.js";
import { equalJson } from "../../run/json.js";
import { isSealed, type PayloadPlace } from "../../storage/codec.js";
import type { Encryption } from "../../storage/encryption/encryption.js";
import { keyIdOf, open, seal } from "../../storage/encryption/sealed.js";
import {
  SpaceOffline,
  type NewPlace,
  type Space,
  type SpaceEntry,
  type SpaceFrame,
  type SpacePlace,
  type SpaceState,
} from "../space.js";
import { KEYS_THREAD } from "../thread-key.js";
import { KeyHolder, NotJoined, type KeyStore } from "./key-holder.js";
import { threadKey, type SpaceKeys } from "./space-keys.js";

export interface SealedSpaceParts {
  /** What is encrypted goes through it. */
  readonly space: Space;
  /** Keys are bound to it; empty where it has none. */
  readonly name: string;
  readonly encryption: Pick<Encryption, "currentKey" | "keyChanges$">;
  readonly store: KeyStore;
  /** See {@link KeyHolder}. */
  readonly keyMark?: () => Promise<string | undefined>;
  readonly logger: Pick<Logger, "warn">;
  readonly makeId: MakeId;
}

/** What an entry that cannot be opened says. */
const NOTHING = new Uint8Array();
/** How many threads it is said of that something in them cannot be opened. */
const MOST_WARNINGS = 1_000;
/** The `last` of its writer stands before an entry. */
const AFTER_BYTES = 8;

const TOLD: PayloadPlace = ["told to a space"];
const placeOf = (log: string, thread: string): PayloadPlace => ["entry of a space", log, thread];

/**
 * A space whose servers see ciphertext: entries and what is told are encrypted, keys of threads are keyed digests. Each entry
 * is bound to its log, its thread, and the entry that it was added after.
 *
 * Nothing is read or added before the keys are known, see {@link KeyHolder}.
 */
export class SealedSpace implements Space {
  readonly told$: Observable<Uint8Array>;
  private readonly stands = new BehaviorSubject<SpaceState>({ is: "connecting" });
  private readonly closed = sharedController();
  private readonly bell = new Bell();
  private readonly holder: KeyHolder;
  private readonly changes: Subscription;
  private readonly warned = new Set<string>();
  /** The log whose entries are read, and added to. */
  private log: string | undefined;
  /** One thing after the other. */
  private telling: Promise<void> = Promise.resolve();

  constructor(private readonly parts: SealedSpaceParts) {
    const { space, encryption } = parts;
    this.holder = new KeyHolder(parts);
    this.told$ = space.told$.pipe(
      concatMap((body) => this.heard(body)),
      filter((body) => body !== undefined),
      share(),
    );
    this.changes = encryption.keyChanges$.subscribe(() => {
      this.bell.ring();
      this.holder.keyChanged().catch((error: unknown) => this.warnOfKeys(error));
    });
  }

  get state$(): Observable<SpaceState> {
    return combineLatest([this.parts.space.state$, this.stands]).pipe(
      map(([state, own]): SpaceState => (state.is === "online" || own.is === "refused" ? own : state)),
      distinctUntilChanged<SpaceState>(equalJson),
    );
  }

  /** The key of a thread's entries, once the keys of the space are known. Errors: RunnerError `closed` */
  readonly keyOf = async (threadId: string): Promise<string> => {
    for (;;) {
      const seen = this.bell.count;
      const { keys } = this.holder;
      if (keys !== undefined) return threadKey(keys, threadId);
      if (this.closed.signal.aborted) throw new RunnerError("closed");
      await this.bell.wait(seen, this.closed.signal);
    }
  };

  async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    const until = abortWith(signal, this.closed.signal);
    const { space } = this.parts;
    try {
      await this.holder.load();
      this.bell.ring();
      let isJoined = false;
      while (!until.signal.aborted) {
        let isStranger = false;
        for await (const frame of space.read(after && placeBelow(after), until.signal)) {
          if (frame.is === "entry") {
            if (frame.thread === KEYS_THREAD) await this.holder.read(frame.seq, frame.body);
            yield await this.opened(frame);
          } else if (frame.is === "passed") yield frame;
          else if (this.holder.isOf(frame.log, isJoined ? Infinity : frame.last)) {
            isJoined = false;
            yield { ...frame, log: this.begun(frame.log) };
          } else {
            isStranger = true;
            break;
          }
        }
        if (!isStranger) return;
        // A log that was set back may say less than it has now.
        isJoined = await this.join(until.signal);
      }
    } finally {
      until.abort();
    }
  }

  async *lasts(signal: AbortSignal): AsyncGenerator<SpaceEntry, void> {
    if (signal.aborted) return;
    this.begunWith();
    for await (const entry of this.parts.space.lasts(signal)) {
      // One that is not whole is not somebody else's.
      const isNothing = entry.thread === KEYS_THREAD || entry.body.length === 0;
      yield isNothing ? { ...entry, body: NOTHING } : await this.opened(entry);
    }
  }

  async *entries(thread: string, signal: AbortSignal, after?: number): AsyncGenerator<SpaceEntry, void> {
    if (signal.aborted) return;
    this.begunWith();
    for await (const entry of this.parts.space.entries(thread, signal, after)) yield await this.opened(entry);
  }

  async add(thread: string, body: Uint8Array, at: NewPlace): Promise<number | undefined> {
    const { log, keys } = this.begunWith();
    const whole = new Uint8Array(AFTER_BYTES + body.length);
    new DataView(whole.buffer).setBigUint64(0, BigInt(at.last));
    whole.set(body, AFTER_BYTES);
    return this.parts.space.add(thread, await seal(keys.data, whole, placeOf(log, thread)), at);
  }

  async remove(thread: string, below: number): Promise<boolean> {
    return (await this.parts.space.remove?.(thread, below)) ?? false;
  }

  tell(body: Uint8Array): void {
    const { keys } = this.holder;
    if (keys === undefined) return;
    const told = this.telling.then(async () => this.parts.space.tell(await seal(keys.data, body, TOLD)));
    this.telling = told.catch(() => undefined);
  }

  async close(): Promise<void> {
    this.closed.abort();
    this.changes.unsubscribe();
    await this.telling;
    await this.parts.space.close();
  }

  /** The log that is read, and its keys. @throws SpaceOffline they are not known yet */
  private begunWith(): { readonly log: string; readonly keys: SpaceKeys } {
    const { log } = this;
    const { keys } = this.holder;
    if (log === undefined || keys === undefined) throw new SpaceOffline("The keys of the space are not known yet");
    return { log, keys };
  }

  /** Its entries can be read. @returns what this log is called: one with other keys is another one */
  private begun(log: string): string {
    this.log = log;
    this.stands.next({ is: "online" });
    this.holder.publish().catch((error: unknown) => this.warnOfKeys(error));
    return `${log}.${this.holder.keys?.id ?? ""}`;
  }

  /** Until the keys of the log are known, or there is no connection. @returns whether they are */
  private async join(signal: AbortSignal): Promise<boolean> {
    const seen = this.bell.count;
    if (this.stands.value.is === "online") this.stands.next({ is: "connecting" });
    try {
      await this.holder.join(signal);
      this.bell.ring();
      return !signal.aborted;
    } catch (error) {
      if (error instanceof SpaceOffline || signal.aborted) return false;
      if (!(error instanceof NotJoined)) throw error;
      this.stands.next({ is: "refused", message: error.message });
      this.parts.logger.warn(error.message);
      await this.untilOtherwise(error.place, seen, signal);
      return false;
    }
  }

  /** Until the key was changed, here or in the space, or the log was made anew. */
  private async untilOtherwise(place: SpacePlace, seen: number, signal: AbortSignal): Promise<void> {
    const until = abortWith(signal);
    void this.bell.wait(seen, until.signal).then(() => until.abort());
    for await (const frame of this.parts.space.read(place, until.signal)) {
      if (frame.is === "begins" ? frame.log !== place.log : frame.is === "entry" && frame.thread === KEYS_THREAD) break;
    }
    until.abort();
  }

  private async opened(entry: SpaceEntry): Promise<SpaceEntry> {
    const { thread, body } = entry;
    const { log } = this;
    const { keys } = this.holder;
    if (thread !== KEYS_THREAD && log !== undefined && keys !== undefined) {
      const whole = await openedBy(keys, body, placeOf(log, thread));
      if (whole !== undefined && whole.length >= AFTER_BYTES) {
        const after = Number(new DataView(whole.buffer, whole.byteOffset).getBigUint64(0));
        return { ...entry, body: whole.subarray(AFTER_BYTES), after };
      }
      this.warn(log, thread);
    }
    return { ...entry, body: NOTHING };
  }

  private async heard(body: Uint8Array): Promise<Uint8Array | undefined> {
    const { keys } = this.holder;
    return keys && openedBy(keys, body, TOLD);
  }

  private warn(log: string, thread: string): void {
    const of = `${log} ${thread}`;
    if (this.warned.has(of) || this.warned.size >= MOST_WARNINGS) return;
    this.warned.add(of);
    this.parts.logger.warn(
      `An entry of the space cannot be opened and is passed over: somebody without its key added it`,
    );
  }

  private warnOfKeys(error: unknown): void {
    if (error instanceof SpaceOffline || this.closed.signal.aborted) return;
    this.parts.logger.warn(`The space is still opened by the former key: ${String(error)}`);
  }
}

/** What these keys have encrypted for this place; undefined for anything else. */
async function openedBy({ data }: SpaceKeys, body: Uint8Array, place: PayloadPlace): Promise<Uint8Array | undefined> {
  if (!isSealed(body) || keyIdOf(body) !== data.id) return undefined;
  const value = await open(data, body, place).catch(() => undefined);
  return value instanceof Uint8Array ? value : undefined;
}

/** A place as the space below knows it. */
const placeBelow = (place: SpacePlace): SpacePlace => ({
  ...place,
  log: place.log.slice(0, place.log.lastIndexOf(".")),
});
