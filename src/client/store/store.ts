/**
 * What a component reads and is told of: the contract of React's `useSyncExternalStore`, of Svelte's stores but for
 * their names, and easily any other framework's.
 */
export interface ReadableStore<Snapshot> {
  /**
   * Calls `listener` after each change of the snapshot, at most once per frame of the screen while events stream.
   *
   * @returns ends it; a second call is a no-op
   */
  subscribe(listener: () => void): () => void;
  /** The same object until something in it changes. Nothing in it is ever changed. */
  getSnapshot(): Snapshot;
  /** What it shows before anything is read: on a server, and while a page is hydrated. */
  getServerSnapshot(): Snapshot;
}

/** Frames are not drawn in hidden tabs: listeners are told after so long, in ms. */
const HIDDEN_MS = 100;

/** Calls `work` before the next frame is drawn, or after {@link HIDDEN_MS}. Without a screen: in a task of its own. */
function onNextFrame(work: () => void): void {
  let isDone = false;
  const once = (): void => {
    if (isDone) return;
    isDone = true;
    work();
  };
  if (typeof requestAnimationFrame !== "function") return void setTimeout(once);
  requestAnimationFrame(once);
  setTimeout(once, HIDDEN_MS);
}

const isShallowEqual = <T extends object>(one: T, other: T): boolean => {
  const keys = Object.keys(one) as (keyof T)[];
  return keys.length === Object.keys(other).length && keys.every((key) => Object.is(one[key], other[key]));
};

/** The list that was there, if the other has the same items: whoever compares lists need not look into them. */
export const sameList = <T>(was: readonly T[], now: readonly T[]): readonly T[] =>
  was.length === now.length && was.every((item, index) => item === now[index]) ? was : [...now];

/**
 * A store that works while somebody listens: it begins with the first listener and ends a microtask after the last one
 * has gone, so that a component that is mounted again at once (React's StrictMode) changes nothing.
 */
export abstract class Store<Snapshot extends object> implements ReadableStore<Snapshot> {
  private readonly listeners = new Set<() => void>();
  private end: (() => void) | undefined;
  private snapshot: Snapshot;
  private isDue = false;

  protected constructor(private readonly empty: Snapshot) {
    this.snapshot = empty;
  }

  // These are bound: frameworks call them by themselves.
  /** See {@link ReadableStore.subscribe}. */
  readonly subscribe = (listener: () => void): (() => void) => {
    const told = (): void => listener();
    this.listeners.add(told);
    this.end ??= this.begin();
    return () => {
      if (!this.listeners.delete(told)) return;
      queueMicrotask(() => {
        if (this.listeners.size > 0) return;
        this.end?.();
        this.end = undefined;
      });
    };
  };

  /** See {@link ReadableStore.getSnapshot}. */
  readonly getSnapshot = (): Snapshot => this.snapshot;

  /** See {@link ReadableStore.getServerSnapshot}. */
  readonly getServerSnapshot = (): Snapshot => this.empty;

  /** The first listener has come. @returns ends what it began */
  protected abstract begin(): () => void;

  /** What there is to show now. @param was the snapshot before, whose unchanged parts are to be used again */
  protected abstract read(was: Snapshot): Snapshot;

  /** It works, because somebody listens. */
  protected get isBegun(): boolean {
    return this.end !== undefined;
  }

  /** Something streams in: listeners are told before the next frame. */
  protected changed(): void {
    if (this.isDue) return;
    this.isDue = true;
    onNextFrame(() => {
      if (this.isDue) this.tell();
    });
  }

  /** The user did something: listeners are told at once. */
  protected tell(): void {
    this.isDue = false;
    const now = this.read(this.snapshot);
    if (isShallowEqual(now, this.snapshot)) return;
    this.snapshot = now;
    for (const listener of this.listeners) listener();
  }
}
