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
    const seq = this.entries.length + 1;
    this.entries.push({ thread, seq, id, body });
    this.bell.ring();
    return seq;
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
  private readonly state = new BehaviorSubject<SpaceState>({ is: "online" });
  private readonly cut = new Bell();

  constructor(
    readonly server: MemoryServer,
    private readonly faults: {
      readonly loseAnswer?: () => boolean;
      /** The entry is read by all before its writer has the answer. */
      readonly lateAnswer?: () => Promise<void>;
    } = {},
  ) {}

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
          if ((log !== undefined && log !== this.server.log) || seq > this.server.entries.length) seq = 0;
          log = this.server.log;
          yield { is: "begins", log, last: this.server.entries.length };
        }
        const entry = this.server.entries[seq];
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
    yield* this.present(() => new Map(this.server.entries.map((entry) => [entry.thread, entry])).values(), signal);
  }

  async *entries(thread: string, signal: AbortSignal): AsyncGenerator<SpaceEntry, void> {
    yield* this.present(() => this.server.entries.filter((entry) => entry.thread === thread), signal);
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
    if (!this.isOnline) throw new SpaceOffline();
    const seq = this.server.add(thread, body, last, id);
    await this.faults.lateAnswer?.();
    if (this.faults.loseAnswer?.() === true) throw new SpaceOffline();
    return seq;
  }

  tell(body: Uint8Array): void {
    if (this.isOnline) this.server.told.next(body);
  }

  async close(): Promise<void> {
    this.connect(false);
  }
}
