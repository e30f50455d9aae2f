import { messageOf, RunnerError } from "../run/errors.js";
import type { FedRun } from "../run/run-feed.js";
import type { History } from "../runner/history/history.js";
import { isUnreadable, unlessDamaged } from "../runner/history/run-log.js";
import type { RunnerParts } from "../runner/parts.js";
import { digestOf, plainCodec } from "../storage/codec.js";
import type { DeviceName } from "../storage/devices.js";
import type { ThreadHead } from "../storage/run-store.js";
import type { Devices } from "./devices.js";
import { isReadable, type SpaceMessage } from "./messages.js";
import { nextOfLive, type Next } from "./outgoing-run.js";
import { nextToSend, readToSend } from "./outgoing.js";
import { runName } from "./run-name.js";
import type { ThreadRecord } from "./sync-database.js";

/** How long nothing is looked for in the log of a thread that another device holds, in ms. */
const LOOK_MS = 1_000;
/** How long a device may take to send again what the servers have lost of its run, in ms. */
const PATIENCE_MS = 10_000;

export interface SenderContext {
  readonly parts: RunnerParts;
  readonly history: History;
  readonly self: DeviceName;
  readonly devices: Devices;
  /** Runs that a host of this device is about to start now: see `idKey`. */
  readonly starting: () => ReadonlySet<string>;
  /** The run that a host of this context executes in the thread. */
  readonly live: (threadId: string) => FedRun | undefined;
}

/** A thread whose runs and changes are sent. */
export interface SentThread {
  /** Own runs that the space has whole, see `runKey`. */
  readonly whole: ReadonlySet<string>;
  /** As it is known now. */
  record(): ThreadRecord;
  /** Something may be sent now. */
  isOpen(): boolean;
  /** A run of another device is written down while it goes on. */
  isTaken(): boolean;
  /** What others have changed of the thread's entry in the list is in the log. */
  isListed(): boolean;
  /** The end of the active path that others have made is. */
  isEndHere(): boolean;
  /** This run is in the space, whole. @param leftOut the name of one that cannot be sent, if it can be read */
  skip(runIndex: number, leftOut?: string): void;
  /** @returns false where something else comes first; it rings when that was done */
  add(message: SpaceMessage): Promise<boolean>;
}

/** Sends what this device has of a thread and the space does not. */
export class Sender {
  /** Until then, by the clock of the host, nothing is left to send: nothing has changed in the log since it was looked at. */
  private until = -Infinity;

  constructor(
    private readonly context: SenderContext,
    private readonly thread: SentThread,
  ) {}

  /** A run of which another device is to send the rest, the last entry meanwhile, and since when. */
  private lacking: { readonly name: string; readonly last: number; readonly since: number } | undefined;

  /** Something may have changed in the log. */
  look(): void {
    this.until = -Infinity;
  }

  /** A run of this host is sent while it goes on. */
  get isStreaming(): boolean {
    return this.nextOfLive() !== undefined;
  }

  /** Sends all that there is. Errors: of the log or the space */
  async send(): Promise<void> {
    const { thread } = this;
    const { clock } = this.context.parts;
    while (thread.isOpen()) {
      // The thread is another device's now, and nothing has changed in the log.
      if (thread.isTaken() && clock.elapsed() < this.until) return;
      const { last } = thread.record().state;
      this.until = clock.elapsed() + LOOK_MS;
      const { next } = this.nextOfLive() ?? (await this.next());
      const isOld = thread.record().state.last !== last;
      if (isOld || next !== undefined) this.look();
      // It was decided by what is not the last entry any more.
      if (isOld) continue;
      if (next === undefined) return;
      if (next.is === "sent") thread.skip(next.runIndex, next.leftOut);
      else if (!isReadable(next.message)) this.leaveOut(next.message);
      else if (!(await thread.add(next.message))) return;
    }
  }

  /** Something in the log that no other device would understand must not keep later runs here. Errors: `corrupt-record` */
  private leaveOut(message: SpaceMessage): void {
    const { type, threadId } = message;
    const { sent } = this.thread.record();
    if (type !== "run" && type !== "events" && type !== "end") throw new RunnerError("corrupt-record", { threadId });
    this.context.parts.logger.warn(`${threadId}: not sent: a run that other devices would not understand`);
    this.thread.skip(sent, type === "run" ? runName(message) : message.runId);
  }

  /** What is to be sent next, by what stands in the log. */
  async next(): Promise<{ readonly head: ThreadHead | undefined; readonly next: Next }> {
    const { parts, history, self } = this.context;
    const { whole } = this.thread;
    const record = this.thread.record();
    const starting = this.context.starting();
    const read = await readToSend(parts.store, record, self);
    const { head } = read;
    const isListed = this.thread.isListed();
    const isEndHere = this.thread.isEndHere();
    const digest = (fingerprint: string) => digestOf(parts.store.codec ?? plainCodec, fingerprint);
    const now = parts.clock.now();
    const isGivenUp = (id: string, name: string): boolean =>
      this.context.devices.isAway(id) || this.lacksFor(name) >= PATIENCE_MS;
    const eventsUpTo = history.pathEvents.bind(history);
    const context = {
      device: self,
      starting,
      isListed,
      isEndHere,
      digest,
      whole,
      now,
      isGivenUp,
      eventsUpTo,
    };
    const next = await nextToSend(parts.store, read, record, context).catch(async (error: unknown): Promise<Next> => {
      const { threadId, sent } = this.thread.record();
      if (!isUnreadable(error) || head === undefined || sent >= head.runCount) throw error;
      // A record that cannot be read must not keep later runs here.
      parts.logger.warn(`${threadId}: not sent: ${messageOf(error)}`);
      const row = await parts.store.run(threadId, sent).catch(unlessDamaged);
      return { is: "sent", runIndex: sent, ...(row && { leftOut: runName(row) }) };
    });
    return { head, next };
  }

  /** How long nothing has come of the rest of this run, in ms. */
  private lacksFor(name: string): number {
    const { last } = this.thread.record().state;
    const since = this.context.parts.clock.elapsed();
    if (this.lacking?.name !== name || this.lacking.last !== last) this.lacking = { name, last, since };
    return since - this.lacking.since;
  }

  private nextOfLive(): ReturnType<typeof nextOfLive> {
    const { live, self } = this.context;
    const record = this.thread.record();
    return nextOfLive(record, live(record.threadId), self);
  }
}
