import type { Observable } from "rxjs";
import { abortWith, onAbort, sharedController } from "../platform/abort.js";
import { Bell, ringOrSilence } from "../platform/bell.js";
import { isSameDatabase } from "../run/epochs.js";
import { RunnerError } from "../run/errors.js";
import { Recovery } from "../runner/claim/recovery.js";
import { History } from "../runner/history/history.js";
import { equalJson } from "../run/json.js";
import type { DeviceName } from "../storage/devices.js";
import type { SyncState } from "../wire/shapes.js";
import { AbsentThreads } from "./absent-threads.js";
import { Admissions } from "./admissions.js";
import { CompactingThreads } from "./compacting-threads.js";
import { Devices } from "./devices.js";
import { NotUnderstood, understood, type SpaceMessage } from "./messages.js";
import { SpaceOffline, type SpaceEntry } from "./space.js";
import { KEYS_THREAD } from "./thread-key.js";
import { LeavingThreads } from "./leaving-threads.js";
import { OpenThreads } from "./open-threads.js";
import { openedRecord } from "./opened-record.js";
import { OwnDevice } from "./own-device.js";
import { SavedPlace } from "./saved-place.js";
import { Serving } from "./serving.js";
import { Standing } from "./standing.js";
import type { SyncHost, SyncParts } from "./sync-host.js";
import { tellResult } from "./tell-result.js";
import type { ThreadSync, ThreadSyncContext } from "./thread-sync.js";
import { NO_ENTRIES } from "./thread-state.js";
import { UnsentThreads } from "./unsent-threads.js";

/** Pause after a failure that nobody expected, in ms. */
const RETRY_MS = 1_000;
/** How long a host that closes waits for the space, and how often it looks, in ms. */
const LEAVE_MS = 3_000;
const LOOK_MS = 250;

/** Its database was closed, or fails: whatever comes next tries again. */
const quiet = (): void => undefined;

const ENCRYPTED =
  "What the devices of this space share is encrypted: give encryption to the runtime of this one, with their key";

/**
 * Keeps the threads of this device in step with those of the others in its space. The log of the device stays what its
 * tabs read and write: what others add is written down in it, what is added here is sent from it. One host of a database
 * does this; where it ends, the next one goes on.
 */
export class Sync {
  private readonly closed = sharedController();
  private readonly threads: OpenThreads;
  private readonly unsent: UnsentThreads;
  private readonly moved = new Bell();
  private readonly standing: Standing;
  private readonly device: OwnDevice;
  private readonly running: Promise<void>;
  private readonly host: SyncHost;
  private self: DeviceName;
  private devices: Devices | undefined;
  private context: ThreadSyncContext | undefined;
  private readonly place: SavedPlace;
  /** The log that was read last. */
  private log: string | undefined;
  /** The servers have lost what they had: every device sends all that it has. */
  private revives = false;
  /** An epoch of the log. */
  private epoch: number | undefined;
  /** What was made anew, and is still to be met: what is known of the space is forgotten. */
  private anew: "space" | "log" | undefined;
  /** Ends the reading of now. */
  private session: AbortController | undefined;
  private readonly admissions: Admissions;
  private readonly absent: AbsentThreads;
  private readonly leaving: LeavingThreads;
  private readonly compacting: CompactingThreads;
  /** Of a server. */
  private serving: Serving | undefined;

  constructor(private readonly options: SyncParts) {
    const { parts, elsewhere, space, deviceName, database } = options;
    this.self = { id: "", name: deviceName };
    this.standing = new Standing({
      read: () => this.place.now?.seq ?? 0,
      toCome: () => this.absent.toCome,
      online: () => this.devices?.online ?? [],
    });
    this.place = new SavedPlace((records, place) => database.put(records, place));
    this.host = {
      ...options,
      threadOf: (threadId) => this.threads.open(threadId),
      openOf: (threadId) => this.threads.get(threadId),
      context: () => this.context,
      self: () => this.self,
      state: () => this.standing.state,
      isCurrent: () => this.standing.isCurrent,
      isListed: () => this.place.now !== undefined,
      revives: () => this.revives,
      counted: () => this.standing.tell(),
      refuse: (message) => this.refuse(message),
      moved: this.moved,
      closed: this.closed.signal,
    };
    this.device = new OwnDevice(this.host);
    this.unsent = new UnsentThreads(this.host);
    this.threads = new OpenThreads({
      keyOf: options.keyOf,
      recordOf: (key, threadId) => openedRecord(this.host, this.absent.list, key, threadId),
      context: () => (this.standing.refused !== undefined || this.closed.signal.aborted ? undefined : this.context),
      opened: (thread) => this.compacting.look(thread),
    });
    this.absent = new AbsentThreads(this.host);
    this.admissions = new Admissions({ ...this.host, absent: this.absent });
    this.leaving = new LeavingThreads(this.host);
    this.compacting = new CompactingThreads(this.host);
    elsewhere.answer = (answered) => tellResult(this.host, answered);
    elsewhere.fetch = (threadId) => this.absent.fetch(threadId);
    elsewhere.admit = (request) => this.admissions.admit(request);
    elsewhere.advanced = (threadId) => this.threads.get(threadId)?.ring();
    elsewhere.written = (threadId) => this.threads.get(threadId)?.arrivals.live;
    elsewhere.leave = () => this.sendRest();
    const states = space.state$.subscribe((state) => {
      this.standing.changed(state);
      this.moved.ring();
      // What was read may have been said before the state.
      if (this.isCurrent) this.current();
      else this.standing.tell();
    });
    onAbort(this.closed.signal, () => states.unsubscribe());
    this.running = this.run().catch((error: unknown) => {
      if (!this.closed.signal.aborted) parts.logger.error(`Devices are not in step: ${String(error)}`);
    });
  }

  get status$(): Observable<SyncState> {
    return this.standing.status;
  }

  private get isCurrent(): boolean {
    return this.standing.isCurrent;
  }

  /** The device was heard of since this host is here, and is not any more. */
  hasLeft(id: string): boolean {
    return this.devices?.wasHere(id) === true && this.devices.isAway(id);
  }

  async close(): Promise<void> {
    const { elsewhere } = this.options;
    delete elsewhere.admit;
    delete elsewhere.answer;
    delete elsewhere.fetch;
    delete elsewhere.advanced;
    delete elsewhere.written;
    delete elsewhere.leave;
    this.devices?.leave();
    this.closed.abort();
    await this.running;
    for (const thread of this.threads.all) await thread.end();
    await this.options.space.close().catch(quiet);
    this.options.parts.channel.close();
    await this.device.release();
    await this.options.database.close();
    this.standing.status.complete();
  }

  /** What runs of this device came to is sent: a host in memory has nothing of it afterwards, and others would execute it again. */
  private async sendRest(): Promise<void> {
    const { clock } = this.options.parts;
    const until = abortWith(this.closed.signal);
    const late = clock.after(LEAVE_MS, until.signal).then(() => until.abort());
    for (;;) {
      const seen = this.moved.count;
      const ours = this.threads.all.filter(({ isOurs }) => isOurs);
      if (ours.length === 0) break;
      if (this.isCurrent) await Promise.race([Promise.all(ours.map((thread) => thread.settled())), late]);
      // Where the connection is lost now, the next host sends a log on disk.
      if (this.options.server === undefined || until.signal.aborted || !ours.some(({ isOurs }) => isOurs)) break;
      await ringOrSilence(this.moved, seen, clock, LOOK_MS, until.signal);
    }
    until.abort();
  }

  private async run(): Promise<void> {
    const { parts, space, stop } = this.options;
    const { signal } = this.closed;
    const { clock } = parts;
    if (!(await this.device.hold())) return;
    const id = await this.device.id();
    if (id === undefined || signal.aborted) return;
    this.self = { ...this.self, id };
    const { server } = this.options;
    const said = { ...this.self, ...(server !== undefined && { agents: server.agents }) };
    const changed = (): void => this.devicesChanged();
    const devices = new Devices(
      space,
      said,
      parts.hostId,
      clock,
      changed,
      () => void this.device.renew(),
      stop,
      signal,
    );
    this.devices = devices;
    this.serving = server && new Serving({ ...this.host, server, devices });
    const history = new History(parts.store);
    this.context = {
      parts,
      history,
      recovery: new Recovery(parts, () => undefined, signal),
      space,
      self: this.self,
      devices,
      isCurrent: () => this.isCurrent,
      starting: () => new Set([...this.admissions.starting, ...(this.serving?.executing ?? [])]),
      wrote: () => this.moved.ring(),
      stop: this.options.stop,
      live: (threadId) => this.options.elsewhere.live?.(threadId),
      unsaved: (thread) => this.place.add(thread),
      save: (thread) => this.save(thread),
      unsent: ({ record }) => this.unsent.add(record.threadId),
      letGo: (key, threadId, last) => this.absent.list.letGo(key, threadId, last),
      left: (thread) => this.left(thread),
      failed: (why) => this.standing.failed(why),
      refuse: (message) => this.refuse(message),
      signal,
    };
    const { elsewhere } = this.options;
    const hearing = parts.channel.messages$.subscribe(({ type, threadId, runId, deleted }) => {
      const mirrored = this.threads.get(threadId)?.arrivals.live?.runId;
      const isMirrored = mirrored !== undefined && (type === "claim" || (type === "stop" && runId === mirrored));
      if (isMirrored) {
        parts.channel.post({ type: type === "claim" ? "refused" : "stop-ack", threadId, runId: mirrored });
      }
      if (type === "claim" || type === "refused" || type === "wait" || type === "stop-ack") return;
      // It has rung already.
      if (type === "advanced" && elsewhere.live?.(threadId)?.runId === runId) return;
      this.heard(threadId, deleted === true).catch(quiet);
    });
    onAbort(signal, () => hearing.unsubscribe());
    let isOpen = false;
    while (!signal.aborted) {
      const session = abortWith(signal);
      this.session = session;
      try {
        if (!isOpen) {
          await this.absent.open();
          await this.lookAtLog();
          void this.unsent.lookAtHeld().catch(quiet);
        }
        isOpen = true;
        if (this.anew !== undefined) await this.beginAnew(this.anew);
        this.anew = undefined;
        if (this.standing.refused === undefined) await this.read(session.signal);
        if (this.standing.refused !== undefined) return await this.leaveSpace(this.standing.refused);
      } catch (error) {
        if (!(error instanceof SpaceOffline)) parts.logger.warn(`Devices are not in step: ${String(error)}`);
        if (error instanceof NotUnderstood) return this.leaveSpace(error.message);
        // Somebody has changed what is known of a thread: everything is read again.
        if (RunnerError.is(error, "corrupt-record") && error.details["store"] === "sync") this.anew ??= "log";
        await clock.after(RETRY_MS, signal);
      } finally {
        session.abort();
      }
    }
  }

  /** A thread has come upon what is not understood here. */
  private refuse(message: string): void {
    this.standing.refused = message;
    this.session?.abort();
  }

  private async leaveSpace(message: string): Promise<void> {
    this.standing.refuse(message);
    // Its live runs would hold their threads, and its agents be asked for, as long as it is heard of.
    this.devices?.leave();
    this.devices = undefined;
    this.standing.tell();
    for (const thread of this.threads.all) await thread.end();
    // A newer build of this origin goes on.
    await this.device.release();
  }

  /** The log was deleted: what the space has comes back. */
  logLost(): void {
    this.anew = "log";
    this.session?.abort();
  }

  private async lookAtLog(): Promise<void> {
    this.place.begin(await this.options.database.get("place"));
    this.revives = (await this.options.database.get("revives")) !== undefined;
    const [first] = await this.options.parts.store.heads(undefined);
    this.epoch = await this.options.database.get("epoch");
    const isOther = this.epoch !== undefined && (first === undefined || !isSameDatabase(first.epoch, this.epoch));
    if (isOther || (this.epoch === undefined && (await this.absent.list.isLost()))) this.anew = "log";
    else await this.lookAtAll();
  }

  private async read(signal: AbortSignal): Promise<void> {
    for await (const frame of this.options.space.read(this.place.now, signal)) {
      if (frame.is === "begins") {
        // The last entries may be lost, too: of a power failure, or an older backup.
        const isSame = await this.isOf(frame.log);
        const { now } = this.place;
        const isOther = now !== undefined && (now.log !== frame.log || frame.last < now.seq);
        if (isOther || !isSame) {
          this.anew = "space";
          return;
        }
        if (now === undefined && frame.last > 0 && this.absent.list.isAble) {
          await this.list(frame.last, signal);
          this.place.now = { log: frame.log, seq: frame.last };
          await this.options.database.put([], this.place.now);
          return;
        }
        this.place.now ??= { log: frame.log, seq: 0 };
        this.standing.target = frame.last;
      } else {
        if (frame.is === "entry") await this.take(frame);
        // A host that ends may not have taken it.
        if (signal.aborted) return;
        this.place.now = { log: this.place.now?.log ?? "", seq: frame.seq, mark: frame.mark };
      }
      this.moved.ring();
      if (this.isCurrent) this.current();
    }
    // A space that was closed ends each read at once: without a pause nothing else would ever run here.
    await this.options.parts.clock.after(RETRY_MS, signal);
  }

  /** What is known was read in this log, and its threads have the keys that they have there. */
  private async isOf(log: string): Promise<boolean> {
    const before = this.log;
    this.log = log;
    if (before !== undefined) return before === log;
    // Threads that were opened before it began: the log may have been made anew in between, with other keys.
    await this.threads.settled();
    for (const { key, record } of this.threads.all) {
      if ((await this.options.keyOf(record.threadId)) !== key) return false;
    }
    return true;
  }

  /** A device that is new in the space lists its threads first. */
  private async list(upTo: number, signal: AbortSignal): Promise<void> {
    this.standing.target = undefined;
    const lasts = await this.absent.list.read(upTo, (entry) => this.understand(entry), signal);
    await this.threads.settled();
    for (const thread of this.threads.all) await thread.entries.readUpTo(lasts.get(thread.key) ?? 0);
  }

  private async take(entry: SpaceEntry): Promise<void> {
    const { thread: key, seq } = entry;
    const message = await this.understand(entry);
    this.threads.withKey(key)?.entries.compare(entry, message);
    if (message === undefined) return this.skip(entry);
    const { threadId } = message;
    const isPassedOver = !this.threads.has(threadId) && (await this.absent.list.take(entry, message));
    if (isPassedOver && !this.threads.has(threadId)) return;
    const thread = await this.threads.open(threadId);
    // It was opened meanwhile, maybe with what was known before.
    if (isPassedOver) return thread?.entries.readUpTo(seq);
    if ((await thread?.take(entry, message)) === false) return this.take(entry);
    if (thread === undefined) return;
    const serve = (): void => this.serving?.take(thread);
    // While it is read again, it is not known what is asked for.
    if (thread.entries.restored === undefined) serve();
    else void thread.entries.restored.then(serve);
  }

  /** What an entry says; undefined: nothing. Errors: NotUnderstood */
  private async understand({ thread: key, seq, body }: SpaceEntry): Promise<SpaceMessage | undefined> {
    // A space that opens them itself leaves nothing of them.
    if (key === KEYS_THREAD && body.length > 0) throw new NotUnderstood(ENCRYPTED);
    const message = understood({ seq, body });
    // Anybody may have added it; an entry about another thread has nothing to say here.
    const isIts = message !== undefined && (await this.options.keyOf(message.threadId)) === key;
    return isIts ? message : undefined;
  }

  /** What is added to the thread comes after this entry, which says nothing. */
  private async skip(entry: SpaceEntry): Promise<void> {
    const { thread: key, seq } = entry;
    if ((await this.threads.withKey(key)?.take(entry, undefined)) === true) return;
    const known = (await this.options.database.thread(key)) ?? { key, threadId: "", state: NO_ENTRIES, sent: 0 };
    await this.options.database.put([{ ...known, state: { ...known.state, last: Math.max(known.state.last, seq) } }]);
    // It may have been opened meanwhile, with what was known before.
    await this.threads.settled();
    await this.threads.withKey(key)?.take(entry, undefined);
  }

  /** The space was made anew, and everything that is here is sent again; or the log was, and everything is read again. */
  private async beginAnew(what: "space" | "log"): Promise<void> {
    this.place.forget();
    this.standing.target = undefined;
    this.serving?.forget();
    // Whoever asks for a thread meanwhile waits: what is known of it is forgotten.
    await this.threads.forget(async (before) => {
      for (const thread of before)
        await thread.end(`The run was interrupted: the ${what} of its threads was made anew`);
      await this.absent.forget();
      await this.options.database.forget(what === "space");
      this.epoch = undefined;
      this.revives ||= what === "space";
    });
    await this.lookAtAll();
  }

  private current(): void {
    this.standing.tell();
    void this.place.savePlace();
    this.serving?.current();
    this.absent.fetchAll();
    this.leaving.look();
    this.unsent.open();
  }

  private async heard(threadId: string, isDeleted: boolean): Promise<void> {
    // Maybe in another host.
    this.options.elsewhere.used.add(threadId);
    this.moved.ring();
    const thread = await this.threads.open(threadId);
    if (thread === undefined) return;
    if (isDeleted) await thread.entries.deletedHere();
    thread.ring();
  }

  private async lookAtAll(): Promise<void> {
    const { list } = this.absent;
    await this.unsent.lookAtAll(list.has === false ? [] : await list.ids());
  }

  private left(thread: ThreadSync): void {
    if (!this.threads.left(thread)) return;
    this.place.delete(thread);
    this.absent.hasLeft(thread.record.threadId);
  }

  private async save(thread: ThreadSync): Promise<void> {
    this.leaving.changed();
    this.compacting.look(thread);
    // What comes from now on is not in it.
    const { toSave: record } = thread.entries;
    if (this.epoch === undefined) {
      this.epoch = (await this.options.parts.store.head(thread.record.threadId))?.epoch;
      if (this.epoch !== undefined) await this.options.database.set("epoch", this.epoch);
    }
    // It is about what was there before the space or the log began anew.
    if (this.threads.get(record.threadId) !== thread) return;
    await this.place.saveThread(thread, record);
    // The last entry may have been taken meanwhile: no other save comes behind this one.
    if (this.isCurrent) void this.place.savePlace();
  }

  private devicesChanged(): void {
    this.moved.ring();
    const isSame = equalJson(this.devices?.online ?? [], this.standing.status.value.devices);
    if (!isSame) this.standing.tell();
    if (this.isCurrent) this.serving?.current();
    // A device that is away holds up nothing any more.
    for (const thread of this.threads.all) {
      // After the servers have lost something, it may hold what this device has to send.
      const isHeldUp = thread.record.revives !== undefined && thread.record.state.lock !== undefined;
      if (!thread.arrivals.areWrittenDown || isHeldUp) thread.ring();
    }
  }
}
