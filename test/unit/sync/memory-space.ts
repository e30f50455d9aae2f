import { BehaviorSubject, filter, Subject, type Observable } from "rxjs";
import { Bell } from "../../../src/platform/bell.js";
import {
  SpaceOffline,
  type Space,
  type SpaceEntry,
  type SpaceFrame,
  type SpacePlace,
  type SpaceState,
} from "../../../src/sync/space.js";

interface Entry {
  readonly thread: string;
  readonly seq: number;
  readonly id: string;
  readonly body: Uint8Array;
}

/** The server of a space, in memory. */
export class MemoryServer {
  readonly bell = new Bell();
  readonly told = new Subject<Uint8Array>();
  entries: Entry[] = [];
  log = "log-1";

  add(thread: string, body: Uint8Array, last: number, id: string): number | undefined {
    const its = this.entries.filter((entry) => entry.thread === thread);
    const known = its.find((entry) => entry.id === id);
    if (known !== undefined) return known.seq;
    if ((its.at(-1)?.seq ?? 0) !== last) return undefined;
    const seq = this.last + 1;
    this.entries.push({ thread, seq, id, body });
    this.bell.ring();
    return seq;
  }

  /** The seq of the last entry. */
  get last(): number {
    return this.entries.at(-1)?.seq ?? 0;
  }

  /** The first entry after this one. */
  next(seq: number): Entry | undefined {
    // Where nothing was removed, it stands at its place.
    const entry = this.entries[seq];
    return entry?.seq === seq + 1 ? entry : this.entries.find((one) => one.seq > seq);
  }

  /** The thread's entries up to the one that is the last now; where that is removed meanwhile, up to what stands for it. */
  *upToNow(thread: string, after: number): Generator<Entry, void> {
    const its = (entry: Entry): boolean => entry.thread === thread;
    const last = this.entries.findLast(its)?.seq ?? 0;
    for (let seq = after; seq < last;) {
      const entry = this.entries.find((one) => its(one) && one.seq > seq);
      if (entry === undefined) return;
      yield entry;
      ({ seq } = entry);
    }
  }

  /** @param below the thread's first entry that stays */
  remove(thread: string, below: number): void {
    this.entries = this.entries.filter((entry) => entry.thread !== thread || entry.seq >= below);
  }

  /** It has lost its disk. */
  lose(): void {
    this.entries = [];
    this.log = `${this.log}-anew`;
    this.bell.ring();
  }
}

/** One device's way to the server, which can be cut. */
export class MemorySpace implements Space {
  private readonly state: BehaviorSubject<SpaceState>;
  private readonly cut = new Bell();

  constructor(
    readonly server: MemoryServer,
    private readonly faults: {
      readonly loseAnswer?: () => boolean;
      /** The request is lost with a connection after which there is another one already. */
      readonly loseRequest?: (body: Uint8Array) => boolean;
      /** The entry is read by all before its writer has the answer. */
      readonly lateAnswer?: () => Promise<void>;
      /** Whether the credentials allow it. */
      readonly mayRemove?: () => boolean;
      /** At first there is no connection yet. */
      readonly isConnecting?: true;
    } = {},
  ) {
    this.state = new BehaviorSubject<SpaceState>({ is: faults.isConnecting === true ? "connecting" : "online" });
  }

  get state$(): Observable<SpaceState> {
    return this.state;
  }

  get told$(): Observable<Uint8Array> {
    return this.server.told.pipe(filter(() => this.isOnline));
  }

  get isOnline(): boolean {
    return this.state.value.is === "online";
  }

  connect(isOnline: boolean): void {
    if (isOnline === this.isOnline) return;
    this.state.next(isOnline ? { is: "online" } : { is: "offline" });
    this.cut.ring();
    this.server.bell.ring();
  }

  async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    let seq = after?.seq ?? 0;
    let log = after?.log;
    let begun: number | undefined;
    while (!signal.aborted) {
      const seen = this.server.bell.count;
      if (this.isOnline) {
        if (begun !== this.cut.count || log !== this.server.log) {
          begun = this.cut.count;
          if ((log !== undefined && log !== this.server.log) || seq > this.server.last) seq = 0;
          log = this.server.log;
          yield { is: "begins", log, last: this.server.last };
        }
        const entry = this.server.next(seq);
        if (entry !== undefined) {
          seq = entry.seq;
          yield { is: "entry", thread: entry.thread, seq, body: entry.body };
          continue;
        }
      }
      await this.server.bell.wait(seen, signal);
    }
  }

  async *lasts(signal: AbortSignal): AsyncGenerator<SpaceEntry, void> {
    const { entries } = this.server;
    yield* this.present(() => new Map(entries.map((entry) => [entry.thread, entry])).values(), signal);
  }

  async *entries(thread: string, signal: AbortSignal, after = 0): AsyncGenerator<SpaceEntry, void> {
    yield* this.present(() => this.server.upToNow(thread, after), signal);
  }

  private async *present(entries: () => Iterable<Entry>, signal: AbortSignal): AsyncGenerator<SpaceEntry, void> {
    const { count } = this.cut;
    const { log } = this.server;
    const check = (): void => {
      if (!this.isOnline || count !== this.cut.count || log !== this.server.log) throw new SpaceOffline();
    };
    if (signal.aborted) return;
    check();
    for (const { thread, seq, body } of entries()) {
      yield { is: "entry", thread, seq, body };
      if (signal.aborted) return;
      check();
    }
  }

  async add(
    thread: string,
    body: Uint8Array,
    { last, id }: { readonly last: number; readonly id: string },
  ): Promise<number | undefined> {
    await Promise.resolve();
    if (!this.isOnline || this.faults.loseRequest?.(body) === true) throw new SpaceOffline();
    const seq = this.server.add(thread, body, last, id);
    await this.faults.lateAnswer?.();
    if (this.faults.loseAnswer?.() === true) throw new SpaceOffline();
    return seq;
  }

  async remove(thread: string, below: number): Promise<boolean> {
    await Promise.resolve();
    if (!this.isOnline) throw new SpaceOffline();
    if (this.faults.mayRemove?.() === false) return false;
    if (below > 0) this.server.remove(thread, below);
    return true;
  }

  tell(body: Uint8Array): void {
    if (this.isOnline) this.server.told.next(body);
  }

  async close(): Promise<void> {
    this.connect(false);
  }
}
