import type { Observable } from "rxjs";

/**
 * What the devices of one person, or of one team, share: for each thread a log of entries, all in one order. Entries are
 * bytes that a space does not look into. The engine behind it (NATS JetStream) is chosen elsewhere; the tests have one in
 * memory.
 *
 * - All readers must get the entries in one order, each once, none left out.
 * - An entry that was acknowledged must survive the loss of any one server, as far as the servers were set up for it.
 */
export interface Space {
  /** The newest state first. */
  readonly state$: Observable<SpaceState>;
  /**
   * Everything after entry `after`, of all threads; then each new entry. The first thing is `begins`, again after each
   * time the connection was lost. It waits while there is none. A `begins` of another log, or with a `last` below what was read
   * before, means that the entries begin anew.
   *
   * @param after the `seq` of the last known entry, its mark, and the log that it is of; undefined: from the first
   * @param signal ends it
   */
  read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void>;
  /**
   * The last entry of each thread that has any, in any order, as it is at the call or a little later; then it ends. A thread
   * that gets an entry meanwhile may come again, with that one. An entry that cannot be opened must come with an empty body,
   * and so must the one before it where the thread's last one is not whole: no thread may be left out. Errors: SpaceOffline,
   * also where the connection is lost meanwhile
   *
   * @param signal ends it
   */
  lasts(signal: AbortSignal): AsyncGenerator<SpaceEntry, void>;
  /**
   * The entries of one thread that are there at the call, in order, each once, none left out; then it ends. Errors:
   * SpaceOffline, also where the connection is lost meanwhile
   *
   * @param signal ends it
   * @param after the seq of an entry of the thread: only those behind it. Default: all
   */
  entries(thread: string, signal: AbortSignal, after?: number): AsyncGenerator<SpaceEntry, void>;
  /**
   * Adds an entry to a thread, unless somebody else was first: a compare-and-set.
   *
   * @param thread 1 to 64 characters of A to Z, a to z, 0 to 9, `-` and `_`
   * @param body as large as it may be
   * @param at `last`: the `seq` of the thread's last entry, 0 if there is none; with another one nothing is added.
   *   `id`: of the entry. Repeating the call with it, after an ambiguous end, adds nothing. `isWhole`: it stands for all
   *   entries of the thread before it
   * @returns its `seq`; undefined, nothing added, where `last` is not the thread's last one. Errors: SpaceOffline
   */
  add(thread: string, body: Uint8Array, at: NewPlace): Promise<number | undefined>;
  /**
   * Removes the entries of a thread before entry `below`, which stands for them: all of them at once, or none. Errors:
   * SpaceOffline, they may be removed or not
   *
   * @param below 0: nothing is removed. @returns false where it is not allowed, or cannot be done, as without this method
   */
  remove?(thread: string, below: number): Promise<boolean>;
  /** Tells whichever devices are online, at most once. What is told offline is dropped. */
  tell(body: Uint8Array): void;
  /** What other devices tell, and this one. */
  readonly told$: Observable<Uint8Array>;
  /** Sends what is on its way, and disconnects. Reads end. */
  close(): Promise<void>;
}

/** Where an entry is added, see `Space.add`. */
export interface NewPlace {
  readonly last: number;
  readonly id: string;
  readonly isWhole?: boolean;
}

/** A place in the log of a space. */
export interface SpacePlace {
  /** Another one where the log was made anew. The same for all devices. */
  readonly log: string;
  readonly seq: number;
  /** As the frame with this `seq` had it. */
  readonly mark?: string | undefined;
}

/** What a reader of a space gets. */
export type SpaceFrame =
  /** `last`: how far it went at that time, 0: nothing is there. A reader has all when it got an entry, or `passed`, with this seq. */
  | { readonly is: "begins"; readonly log: string; readonly last: number }
  /** What is there is no entry, such as a part of one that was never completed. */
  | { readonly is: "passed"; readonly seq: number; readonly mark?: string | undefined }
  | {
      readonly is: "entry";
      readonly thread: string;
      readonly seq: number;
      readonly body: Uint8Array;
      /** The `last` that its writer gave, where that is authenticated: elsewhere it says nothing. Absent: not known. */
      readonly after?: number;
      /** Of {@link Space.lasts}: the seq of what stands behind it in its thread and is no entry. `seq` is 0 where none is. */
      readonly end?: number;
      /** Differs from that of other entries. Where a log has another one there, it has lost its last entries, and got others. */
      readonly mark?: string | undefined;
    };

/** An entry of a space. */
export type SpaceEntry = Extract<SpaceFrame, { is: "entry" }>;

/** The connection of a device to its space. */
export type SpaceState =
  | { readonly is: "connecting" }
  | { readonly is: "online" }
  /** `message`: why, for people. It goes on trying, unless it is `refused`. */
  | { readonly is: "offline"; readonly message?: string }
  /** The credentials are not valid, or do not allow what is needed; or the keys of an encrypted space are not here. */
  | { readonly is: "refused"; readonly message: string };

/** There is no connection, it was lost, or the servers are not ready: what was to be added may be there or not. */
export class SpaceOffline extends Error {
  override readonly name = "SpaceOffline";
}
