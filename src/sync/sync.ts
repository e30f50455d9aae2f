import { BehaviorSubject, type Observable } from "rxjs";
import { abortWith, sharedController } from "../platform/abort.js";
import { ringOrSilence, Bell } from "../platform/bell.js";
import type { HeldLock } from "../platform/locks.js";
import { hostLifeLockName, syncLockName } from "../platform/names.js";
import { isSameDatabase } from "../run/epochs.js";
import { Recovery } from "../runner/claim/recovery.js";
import { History } from "../runner/history/history.js";
import type { Admission, ElsewhereParts, RunnerParts } from "../runner/parts.js";
import { equalJson } from "../run/json.js";
import type { DeviceName } from "../storage/devices.js";
import type { SyncState } from "../wire/shapes.js";
import { Devices, type StopCall } from "./devices.js";
import { decodeMessage } from "./messages.js";
import type { Space, SpacePlace, SpaceState } from "./space.js";
import { SyncDatabase, type ThreadRecord } from "./sync-database.js";
import { keyOfThread } from "./thread-key.js";
import { ThreadSync, type ThreadSyncContext } from "./thread-sync.js";
import { NO_ENTRIES } from "./thread-state.js";

/** How long a run that starts waits for the space, in ms; then it starts as if the device were offline. */
const CLAIM_MS = 2_000;
/** Pause after a failure that nobody expected, in ms. */
const RETRY_MS = 1_000;

export interface SyncParts {
  readonly space: Space;
  /** A host of its own, which runs no agents. */
  readonly parts: RunnerParts;
  /** What the runs of this device ask. */
  readonly elsewhere: ElsewhereParts;
  /** What people call this device. */
  readonly deviceName: string;
  /** Ends a run of this device. */
  readonly stop: (call: StopCall) => void;
}

/** Its database was closed, or fails: whatever comes next tries again. */
const quiet = (): void => undefined;

/** Another device has a version of this library that this one does not understand. */
class NewerDevice extends Error {
  constructor() {
    super("Another device has a newer version of this app: reload the page");
  }
}

/**
 * Keeps the threads of this device in step with those of the others in its space. The log of the device stays what its
 * tabs read and write: what others add is written down in it, what is added here is sent from it. One host of a database
 * does this; where it ends, the next one goes on.
 */
export class Sync {
  private readonly closed = sharedController();
  private readonly database: SyncDatabase;
  private readonly threads = new Map<string, Promise<ThreadSync | undefined>>();
  private readonly open = new Map<string, ThreadSync>();
  private readonly byKey = new Map<string, ThreadSync>();
  /** Threads that may have something that is to be sent. */
  private readonly unsent = new Set<string>();
  private readonly starting = new Set<string>();
  private readonly unsaved = new Set<ThreadSync>();
  private readonly moved = new Bell();
  private readonly status: BehaviorSubject<SyncState>;
  private readonly running: Promise<void>;
  private self: DeviceName;
  private devices: Devices | undefined;
  private context: ThreadSyncContext | undefined;
  private place: SpacePlace | undefined;
  /** The last entry when the connection was made. */
  private target: number | undefined;
  private readonly held: HeldLock[] = [];
  private forgetting: Promise<void> = Promise.resolve();
  /** How often the space began anew. */
  private era = 0;
  /** The servers have lost what they had: every device sends all that it has. */
  private revives = false;
  /** An epoch of the log. */
  private epoch: number | undefined;
  /** What was made anew, and is still to be met: what is known of the space is forgotten. */
  private anew: "space" | "log" | undefined;
  /** Why nothing can be sent. */
  private failure: string | undefined;
  /** Another device has a newer version: nothing is read or sent any more. */
  private isOutdated = false;
  /** Ends the reading of now. */
  private session: AbortController | undefined;
  private state: SpaceState = { is: "connecting" };

  constructor(private readonly options: SyncParts) {
    const { parts, elsewhere, space, deviceName } = options;
    this.self = { id: "", name: deviceName };
    this.database = new SyncDatabase(parts.dbName, parts.clock);
    this.status = new BehaviorSubject<SyncState>({ is: "connecting", isCurrent: false, devices: [] });
    elsewhere.admit = (...run) => this.admit(...run);
    space.state$.subscribe((state) => {
      if (state.is !== "online") this.target = undefined;
      if (!this.isOutdated) this.state = state;
      this.tell();
    });
    this.running = this.run().catch((error: unknown) => {
      if (!this.closed.signal.aborted) parts.logger.error(`Devices are not in step: ${String(error)}`);
    });
  }

  get status$(): Observable<SyncState> {
    return this.status;
  }

  /** Everything was read, and the connection is there. */
  private get isCurrent(): boolean {
    return this.state.is === "online" && this.target !== undefined && (this.place?.seq ?? 0) >= this.target;
  }

  /**
   * Asks whether a run may start, and tells the other devices so. The caller holds the thread's lock here. Where the
   * device is offline, it may: what others add meanwhile stands beside it.
   */
  async admit(threadId: string, runId: string): Promise<Admission> {
    const admitted: Admission = { is: "admitted", release: () => void this.starting.delete(runId) };
    const { clock } = this.options.parts;
    const until = abortWith(this.closed.signal);
    void clock.after(CLAIM_MS, until.signal).then(() => until.abort());
    try {
      while (this.isCurrent && !until.signal.aborted) {
        const seen = this.moved.count;
        const thread = await this.threadOf(threadId);
        if (thread === undefined) return admitted;
        const { heldBy } = thread;
        const { lock } = thread.record.state;
        if (heldBy !== undefined && lock !== undefined)
          return { is: "busy", deviceName: heldBy.name, runId: lock.runId };
        if (thread.isBehind) return { is: "behind", wait: () => this.writtenDown(thread) };
        this.starting.add(runId);
        const release = (): void => {
          this.starting.delete(runId);
          thread.ring();
        };
        const claim = { type: "claim", threadId, runId, device: this.self } as const;
        const added = thread.add(claim);
        const result = await Promise.race([added, clock.after(CLAIM_MS, until.signal).then(() => "late" as const)]);
        if (result !== false) return { is: "admitted", release };
        this.starting.delete(runId);
        await ringOrSilence(this.moved, seen, clock, CLAIM_MS, until.signal);
      }
    } catch {
      // Offline: see above.
    } finally {
      until.abort();
    }
    return admitted;
  }

  async close(): Promise<void> {
    const { elsewhere } = this.options;
    delete elsewhere.admit;
    this.devices?.leave();
    this.closed.abort();
    await this.running;
    for (const thread of this.open.values()) await thread.end();
    await this.options.space.close();
    this.options.parts.channel.close();
    for (const lock of this.held) await lock.release();
    await this.database.close();
    this.status.complete();
  }

  private async run(): Promise<void> {
    const { parts, space, stop } = this.options;
    const { signal } = this.closed;
    const { dbName, locks, makeId, clock } = parts;
    // One host of the database: the others wait for its end. The life lock makes others take what it writes down for live.
    for (const name of [syncLockName(dbName), hostLifeLockName(dbName, parts.hostId)]) {
      const holding = locks.hold(name);
      const lock = await Promise.race([holding, clock.after(Infinity, signal).then(() => undefined)]);
      if (lock === undefined) return void holding.then((late) => late.release(), quiet);
      this.held.push(lock);
    }
    this.self = { ...this.self, id: await this.database.device(makeId()) };
    const devices = new Devices(space, this.self, clock, () => this.devicesChanged(), signal);
    this.devices = devices;
    devices.stops$.subscribe(stop);
    const history = new History(parts.store);
    this.context = {
      parts,
      history,
      recovery: new Recovery(parts, () => undefined, signal),
      space,
      self: this.self,
      devices,
      isCurrent: () => this.isCurrent,
      starting: () => new Set(this.starting),
      unsaved: (thread) => void this.unsaved.add(thread),
      save: (thread) => this.save(thread),
      unsent: ({ record }) => void this.unsent.add(record.threadId),
      failed: (why) => this.failed(why),
      signal,
    };
    const hearing = parts.channel.messages$.subscribe(({ type, threadId, runId, deleted }) => {
      const mirrored = this.open.get(threadId)?.liveRunId;
      const isMirrored = mirrored !== undefined && (type === "claim" || (type === "stop" && runId === mirrored));
      if (isMirrored) {
        parts.channel.post({ type: type === "claim" ? "refused" : "stop-ack", threadId, runId: mirrored });
      }
      if (type === "claim" || type === "refused" || type === "wait" || type === "stop-ack") return;
      const activated = type === "changed" ? runId : undefined;
      this.heard(threadId, deleted === true, activated).catch(quiet);
    });
    signal.addEventListener("abort", () => hearing.unsubscribe(), { once: true });
    let isOpen = false;
    while (!signal.aborted) {
      const session = abortWith(signal);
      this.session = session;
      try {
        if (!isOpen) await this.lookAtLog();
        isOpen = true;
        if (this.anew !== undefined) await this.beginAnew(this.anew);
        this.anew = undefined;
        await this.read(session.signal);
      } catch (error) {
        parts.logger.warn(`Devices are not in step: ${String(error)}`);
        // What it says cannot be understood here, and nothing can be sent behind it.
        if (error instanceof NewerDevice) return this.refuse(error.message);
        await clock.after(RETRY_MS, signal);
      } finally {
        session.abort();
      }
    }
  }

  private async refuse(message: string): Promise<void> {
    this.isOutdated = true;
    this.target = undefined;
    this.state = { is: "refused", message };
    this.tell();
    for (const thread of this.open.values()) await thread.end();
    // A newer build of this origin goes on.
    for (const lock of this.held.splice(0)) await lock.release();
  }

  /** The log was deleted: what the space has comes back. */
  logLost(): void {
    this.anew = "log";
    this.session?.abort();
  }

  private async lookAtLog(): Promise<void> {
    this.place = await this.database.place();
    this.revives = await this.database.revives();
    const [first] = await this.options.parts.store.heads(undefined);
    this.epoch = await this.database.epoch();
    const isOther = this.epoch !== undefined && (first === undefined || !isSameDatabase(first.epoch, this.epoch));
    if (isOther) this.anew = "log";
    else await this.lookAtAll();
  }

  private async read(signal: AbortSignal): Promise<void> {
    for await (const frame of this.options.space.read(this.place, signal)) {
      if (frame.is === "begins") {
        // The last entries may be lost, too: of a power failure, or an older backup.
        const isOther = this.place !== undefined && (this.place.log !== frame.log || frame.last < this.place.seq);
        if (isOther) {
          this.anew = "space";
          return;
        }
        this.place ??= { log: frame.log, seq: 0 };
        this.target = frame.last;
      } else {
        await this.take(frame.thread, frame.seq, frame.body);
        this.place = { log: this.place?.log ?? "", seq: frame.seq };
      }
      this.moved.ring();
      if (this.isCurrent) this.current();
    }
  }

  private async take(key: string, seq: number, body: Uint8Array): Promise<void> {
    const message = decodeMessage(body);
    if (message === "newer") throw new NewerDevice();
    // Anybody may have added it; an entry about another thread has nothing to say here.
    if (message === undefined || (await keyOfThread(message.threadId)) !== key) return this.skip(key, seq);
    const thread = await this.threadOf(message.threadId);
    await thread?.take(seq, message);
    thread?.ring();
  }

  /** What is added to the thread comes after this entry, which says nothing. */
  private async skip(key: string, seq: number): Promise<void> {
    const open = this.byKey.get(key);
    if (open !== undefined) return open.skip(seq);
    const known = (await this.database.thread(key)) ?? { key, threadId: "", state: NO_ENTRIES, sent: 0 };
    await this.database.put([{ ...known, state: { ...known.state, last: Math.max(known.state.last, seq) } }]);
    // It may have been opened meanwhile.
    this.byKey.get(key)?.skip(seq);
  }

  /** The space was made anew, and everything that is here is sent again; or the log was, and everything is read again. */
  private async beginAnew(what: "space" | "log"): Promise<void> {
    this.place = undefined;
    const before = [...this.open.values()];
    this.era++;
    this.threads.clear();
    this.open.clear();
    this.byKey.clear();
    this.unsaved.clear();
    // Whoever asks for a thread meanwhile waits: what is known of it is forgotten.
    this.forgetting = (async () => {
      for (const thread of before)
        await thread.end(`The run was interrupted: the ${what} of its threads was made anew`);
      await this.database.forget(what === "space");
      this.epoch = undefined;
      this.revives ||= what === "space";
    })();
    await this.forgetting;
    await this.lookAtAll();
  }

  private current(): void {
    this.tell();
    for (const threadId of this.unsent) this.threadOf(threadId).then((thread) => thread?.ring(), quiet);
    this.unsent.clear();
  }

  /** @param activated the run whose branch was taken up */
  private async heard(threadId: string, isDeleted: boolean, activated: string | undefined): Promise<void> {
    this.moved.ring();
    const thread = await this.threadOf(threadId);
    if (thread === undefined) return;
    const { state } = thread.record;
    if (activated !== undefined) thread.note({ activating: { runId: activated, knew: state.active } });
    if (isDeleted && state.lastRun > 0 && state.deleted !== true) {
      const head = await this.options.parts.store.head(threadId);
      if (head?.deleted === true) return thread.note({ deleting: state.lastRun });
    }
    if (!this.isCurrent) this.unsent.add(threadId);
    thread.ring();
  }

  /** Looks which threads have something that the space does not have. */
  private async lookAtAll(): Promise<void> {
    const { store } = this.options.parts;
    for (let after: string | undefined; ;) {
      const heads = await store.heads(after);
      if (heads.length === 0) return;
      for (const { threadId } of heads) this.unsent.add(threadId);
      after = heads.at(-1)?.threadId;
    }
  }

  private threadOf(threadId: string): Promise<ThreadSync | undefined> {
    const { context } = this;
    if (context === undefined || this.closed.signal.aborted) return Promise.resolve(undefined);
    const known = this.threads.get(threadId);
    if (known !== undefined) return known;
    const { era } = this;
    const loading = this.forgetting.then(async (): Promise<ThreadSync | undefined> => {
      const key = await keyOfThread(threadId);
      const record = await this.recordOf(key, threadId);
      if (era !== this.era) return this.threadOf(threadId);
      const thread = new ThreadSync(context, record);
      this.open.set(threadId, thread);
      this.byKey.set(key, thread);
      return thread;
    });
    this.threads.set(threadId, loading);
    return loading;
  }

  private async recordOf(key: string, threadId: string): Promise<ThreadRecord> {
    const known = await this.database.thread(key);
    if (known === undefined) {
      return { key, threadId, state: NO_ENTRIES, sent: 0, ...(this.revives && { revives: [] }) };
    }
    const { state, deleting = state.lastRun } = known;
    if (state.lastRun === 0 || state.deleted === true) return { ...known, threadId };
    // It may have been deleted while nobody looked.
    const head = await this.options.parts.store.head(threadId);
    return head?.deleted === true ? { ...known, deleting } : known;
  }

  private async writtenDown(thread: ThreadSync): Promise<void> {
    const until = abortWith(this.closed.signal);
    const { clock } = this.options.parts;
    void clock.after(CLAIM_MS, until.signal).then(() => until.abort());
    await Promise.race([thread.settled(), clock.after(CLAIM_MS, until.signal)]);
    until.abort();
  }

  private async save(thread: ThreadSync): Promise<void> {
    this.unsaved.delete(thread);
    // What comes from now on is not in it.
    const { record } = thread;
    if (this.epoch === undefined) {
      this.epoch = (await this.options.parts.store.head(thread.record.threadId))?.epoch;
      if (this.epoch !== undefined) await this.database.setEpoch(this.epoch);
    }
    const { place } = this;
    let seq = place?.seq ?? 0;
    for (const { firstUnsaved } of this.unsaved) seq = Math.min(seq, (firstUnsaved ?? Infinity) - 1);
    return this.database.put([record], place && { log: place.log, seq });
  }

  private failed(why: string | undefined): void {
    if (why === this.failure) return;
    this.failure = why;
    this.tell();
  }

  private devicesChanged(): void {
    const isSame = equalJson(this.devices?.online ?? [], this.status.value.devices);
    if (!isSame) this.tell();
    // A device that is away holds up nothing any more.
    for (const thread of this.open.values()) if (!thread.isWrittenDown) thread.ring();
  }

  private tell(): void {
    const { state, isCurrent, failure } = this;
    const told = state.is === "online" && failure !== undefined ? { ...state, message: failure } : state;
    const next: SyncState = { ...told, isCurrent, devices: this.devices?.online ?? [] };
    if (!equalJson(next, this.status.value)) this.status.next(next);
  }
}
