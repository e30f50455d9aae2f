import type { ThreadRecord } from "./sync-database.js";
import { ThreadSync, type ThreadSyncContext } from "./thread-sync.js";

interface OpenThreadsOptions {
  /** The key of a thread's entries. */
  readonly keyOf: (threadId: string) => Promise<string>;
  /** What is known of the thread. */
  readonly recordOf: (key: string, threadId: string) => Promise<ThreadRecord>;
  /** Undefined where none is opened yet, or any more. */
  readonly context: () => ThreadSyncContext | undefined;
  readonly opened: (thread: ThreadSync) => void;
}

/** The threads that are kept in step: each is opened once, when somebody first needs it. */
export class OpenThreads {
  private readonly opened = new Map<string, Promise<ThreadSync | undefined>>();
  private readonly opening = new Set<Promise<unknown>>();
  private readonly byId = new Map<string, ThreadSync>();
  private readonly byKey = new Map<string, ThreadSync>();
  private forgetting: Promise<void> = Promise.resolve();
  /** How often all were forgotten. */
  private era = 0;

  constructor(private readonly options: OpenThreadsOptions) {}

  /** Those that are open now. */
  get all(): readonly ThreadSync[] {
    return [...this.byId.values()];
  }

  get(threadId: string): ThreadSync | undefined {
    return this.byId.get(threadId);
  }

  withKey(key: string): ThreadSync | undefined {
    return this.byKey.get(key);
  }

  /** It is open, or being opened. */
  has(threadId: string): boolean {
    return this.opened.has(threadId);
  }

  /** Resolves when those that are being opened now are open, or could not be opened. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.opening);
  }

  /** Opens it. @returns undefined where none is opened any more. Errors: what is known of it cannot be read */
  open(threadId: string): Promise<ThreadSync | undefined> {
    const { context, keyOf, recordOf, opened } = this.options;
    if (context() === undefined) return Promise.resolve(undefined);
    const known = this.opened.get(threadId);
    if (known !== undefined) return known;
    const { era } = this;
    const opening = this.forgetting.then(async (): Promise<ThreadSync | undefined> => {
      const key = await keyOf(threadId);
      const record = await recordOf(key, threadId);
      const its = context();
      if (era !== this.era || its === undefined) return this.open(threadId);
      const thread = new ThreadSync(its, record);
      this.byId.set(threadId, thread);
      this.byKey.set(key, thread);
      opened(thread);
      // What a host before this one has left of it is known to nobody else.
      thread.ring();
      return thread;
    });
    this.opened.set(threadId, opening);
    this.opening.add(opening);
    // What cannot be read now is read again by whoever needs it next.
    const forget = (): void => {
      if (this.opened.get(threadId) === opening) this.opened.delete(threadId);
    };
    opening.catch(forget).finally(() => this.opening.delete(opening));
    return opening;
  }

  /** It has left this device. @returns whether it was open */
  left(thread: ThreadSync): boolean {
    const { threadId } = thread.record;
    if (this.byId.get(threadId) !== thread) return false;
    this.opened.delete(threadId);
    this.byId.delete(threadId);
    this.byKey.delete(thread.key);
    return true;
  }

  /** Forgets them all. @param after whoever asks for one meanwhile waits for its end */
  async forget(after: (before: readonly ThreadSync[]) => Promise<void>): Promise<void> {
    const before = this.all;
    this.era++;
    this.opened.clear();
    this.byId.clear();
    this.byKey.clear();
    this.forgetting = after(before);
    await this.forgetting;
  }
}
