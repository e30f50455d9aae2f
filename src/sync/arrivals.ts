import { defined } from "../platform/defined.js";
import { messageOf, RunnerError } from "../run/errors.js";
import { isUnreadable } from "../runner/history/run-log.js";
import type { FedRun } from "../run/run-feed.js";
import type { DeviceName } from "../storage/devices.js";
import type { RunRow } from "../storage/run-store.js";
import type { Devices } from "./devices.js";
import { IncomingRun, type Written } from "./incoming.js";
import { changeList, isFromBefore } from "./log-changes.js";
import { answerOfSpace, type PendingToolCall } from "../storage/pending-tool-calls.js";
import type { DeletedMessage, ResultMessage, RunMessage, ThreadMessage } from "./messages.js";
import type { MirrorContext } from "./mirror.js";
import { namedRun, runName } from "./run-name.js";
import type { Listed, ThreadRecord } from "./sync-database.js";

export interface ArrivalsContext extends MirrorContext {
  readonly devices: Devices;
  /** Something was written down. */
  readonly wrote: () => void;
}

/** What is to be written into the log. */
type Waiting =
  | { readonly is: "run"; readonly run: IncomingRun }
  | {
      readonly is: "thread";
      readonly message: ThreadMessage;
      readonly before: Listed | undefined;
      readonly untold: ReadonlySet<keyof Listed> | undefined;
    }
  | { readonly is: "result"; readonly message: ResultMessage }
  | { readonly is: "deleted"; readonly message: DeletedMessage };

/** What other devices have added to a thread, on its way into the log, in the order of the space. */
export class Arrivals {
  private readonly threadId: string;
  private readonly waiting: Waiting[] = [];
  /** Those of `waiting` for which something else has to come first. */
  private readonly later = new WeakSet<Waiting>();
  /** By name: runs of which more may come. */
  private readonly runs = new Map<string, IncomingRun>();
  /** By name: runs of which nothing is in the log, though they were read to the end, with those that they continue. */
  private readonly leftOut: Map<string, string | null>;

  /** @param forget deletes the thread, as another device did. @param lacks remembers which runs were left out */
  constructor(
    private readonly context: ArrivalsContext,
    private readonly record: () => ThreadRecord,
    private readonly forget: () => Promise<Written>,
    private readonly lacks: (leftOut: readonly (readonly [string, string | null])[]) => void,
  ) {
    const { threadId, lacks: known } = record();
    this.threadId = threadId;
    this.leftOut = new Map(known);
  }

  get areWrittenDown(): boolean {
    return this.waiting.length === 0;
  }

  /** Something waits for nothing but the thread. */
  get areBehind(): boolean {
    return this.waiting.some((one) => !this.later.has(one));
  }

  /** Nothing is in the log of some run. */
  get haveUnseen(): boolean {
    return this.waiting.some((one) => one.is === "run" && one.run.isUnseen);
  }

  /** Something becomes the end of the active path, or is that while it goes on. */
  get moveEnd(): boolean {
    return this.waiting.some((one) => one.is === "run" && !one.run.isBeside);
  }

  /** Something changes how the thread is listed. */
  get changeList(): boolean {
    return this.waiting.some(({ is }) => is === "thread");
  }

  /** How the thread was listed before what others have changed of that; undefined: they have not, or nobody knows. */
  get listedBefore(): Listed | undefined {
    const { self } = this.context;
    const first = this.waiting.find((one) => one.is === "thread" && one.message.device.id !== self.id);
    return first?.is === "thread" ? first.before : undefined;
  }

  /** The run that is written down while it goes on. */
  get live(): FedRun | undefined {
    for (const one of this.waiting) if (one.is === "run" && one.run.isLive) return one.run.fed;
    return undefined;
  }

  add(one: Exclude<Waiting, { is: "run" }>): void {
    this.waiting.push(one);
  }

  /** A run begins, or is sent again, maybe by another device that has it whole. @param behind the end of the active path then */
  expect(message: RunMessage, isBeside: boolean, behind: string | null, row: RunRow | undefined): void {
    const isCopy = row?.device !== undefined && row.device.id !== message.device.id && row.status === "broken";
    this.push(new IncomingRun(this.context, message, isBeside, behind, isCopy ? { toStop: undefined } : undefined));
  }

  /** It is still to be written down, or to the end. */
  expects(name: string): boolean {
    return this.named(name) !== undefined;
  }

  /** What comes of it is added to what is still to be written down. */
  takes(name: string): boolean {
    return this.waitingRun(name) !== undefined;
  }

  /** More of the run may come, from another device. */
  knows(name: string): boolean {
    return this.runs.has(name);
  }

  /**
   * A run of which more has come. Where it began before what was read now, it is made of what the log has of it.
   *
   * @returns undefined where it is none of another device
   */
  run(name: string, row: RunRow | undefined, isBeside: boolean): IncomingRun | undefined {
    const known = this.waitingRun(name);
    if (known !== undefined) return known;
    const before = this.runs.get(name);
    // Its device was away before anything of it had come.
    if (row === undefined && before?.isUnseen === true) return this.push(before);
    if (row?.device === undefined) return undefined;
    const begun = { toStop: before?.toStop };
    return this.push(new IncomingRun(this.context, startOf(row, row.device), isBeside, null, begun));
  }

  /** Nothing of it is in the log, and nobody here knows why: its beginning was read by a host that has ended. */
  isUnknown(name: string, row: RunRow | undefined): boolean {
    return row === undefined && !this.runs.has(name) && !this.leftOut.has(name);
  }

  /** Nothing more of the run comes. */
  isWhole(name: string): void {
    this.runs.delete(name);
  }

  /** Another device sends the run from now on. */
  giveWay(name: string): void {
    this.runs.get(name)?.giveWay();
    this.runs.delete(name);
  }

  /** The thread was deleted while the run was live. @param isGone its log is, so nothing more is written down */
  cutOff(name: string, isGone: boolean): void {
    const run = this.waitingRun(name);
    if (isGone) run?.giveWay();
    else run?.abandon();
    this.runs.delete(name);
  }

  /** Nothing of it is written down any more. @param why see {@link IncomingRun.giveUp} */
  async giveUp(why: string | undefined): Promise<void> {
    this.runs.clear();
    for (const one of this.waiting.splice(0)) {
      // Where its end cannot be written, whoever opens the log next does.
      if (one.is === "run") await one.run.giveUp(why).catch(() => undefined);
    }
  }

  /** Writes down what there is, as far as the thread is free. */
  async writeDown(): Promise<void> {
    let isBlocked = false;
    for (const one of this.waiting.slice()) {
      // What people change of the list waits for no run, and what stands before a live run may wait for its end.
      const waits: boolean = isBlocked && one.is !== "thread" && !(one.is === "run" && one.run.isLive);
      const written: Written = waits ? "blocked" : await this.writeIfValid(one);
      // Something may have come meanwhile for a run that was broken off.
      const isOver: boolean = written === "done" || written === "nothing";
      const isDone: boolean = isOver && !(one.is === "run" && one.run.hasMore);
      if (isDone && written === "done" && one.is === "run") this.settled(one.run);
      if (isDone) this.waiting.splice(this.waiting.indexOf(one), 1);
      if (isDone || (one.is === "run" && one.run.isLive)) this.context.wrote();
      isBlocked ||= written === "blocked" || (isOver && !isDone);
      if (written === "later") this.later.add(one);
      else this.later.delete(one);
    }
  }

  /** Nobody has heard of its device here, and somebody who took it for dead has gone on from it. */
  private isLeft({ run }: IncomingRun): boolean {
    const name = runName(run);
    const { devices } = this.context;
    if (!devices.areHeard || devices.isOnline(run.device.id)) return false;
    return this.waiting.some((one) => one.is === "run" && one.run.run.prev === name);
  }

  private push(run: IncomingRun): IncomingRun {
    this.runs.set(runName(run.run), run);
    this.waiting.push({ is: "run", run });
    return run;
  }

  private named(name: string | null): IncomingRun | undefined {
    for (const one of this.waiting) if (one.is === "run" && runName(one.run.run) === name) return one.run;
    return undefined;
  }

  private waitingRun(name: string): IncomingRun | undefined {
    const known = this.runs.get(name);
    return this.waiting.some((one) => one.is === "run" && one.run === known) ? known : undefined;
  }

  /** What can never be written down is left out: it must not keep what follows it (L19). */
  private async writeIfValid(one: Waiting): Promise<Written> {
    try {
      return await this.write(one);
    } catch (error) {
      if (!isUnreadable(error) && !RunnerError.is(error, "invalid-input")) throw error;
      this.context.parts.logger.warn(`${this.threadId}: left out: ${messageOf(error)}`);
      if (one.is === "run") {
        await one.run.giveUp("A part of it cannot be read").catch(() => undefined);
        one.run.giveWay();
        this.runs.delete(runName(one.run.run));
      }
      return "done";
    }
  }

  private async write(one: Waiting): Promise<Written> {
    const { parts, devices } = this.context;
    const { threadId } = this;
    switch (one.is) {
      case "run": {
        const { device, runId } = one.run.run;
        const stop = (): void => devices.askToStop(device.id, { threadId, runId });
        if (one.run.isUnseen) await this.rebase(one.run);
        // Whatever is appended brings it along.
        if (one.run.isLive && !one.run.hasMore) {
          const head = await parts.store.head(threadId);
          one.run.lookAt(head);
          if (head?.stop?.runId === runId) one.run.toStop = true;
        }
        return one.run.write(devices.isAway(device.id) || this.isLeft(one.run), stop);
      }
      case "thread":
        // A thread that is not here was deleted here, or is still to come.
        return (await changeList(this.context, one.message, one.before, one.untold)) === "later" &&
          this.waiting[0] !== one
          ? "later"
          : "done";
      case "result":
        return this.writeResult(one.message, this.waiting[0] === one);
      case "deleted":
        return this.writeDeletion(one);
    }
  }

  /** What waits for something before it goes with the thread. */
  private async writeDeletion(one: Waiting): Promise<Written> {
    const before = this.waiting.slice(0, this.waiting.indexOf(one));
    if (!before.every((other) => this.later.has(other))) return "later";
    const written = await this.forget();
    if (written === "done") this.waiting.splice(0, before.length);
    return written;
  }

  /** Nothing of the run is in the log, and nothing more of it comes; or it is there, though it was left out before. */
  private settled({ isLeftOut, run }: IncomingRun): void {
    const name = runName(run);
    if (!isLeftOut && !this.leftOut.delete(name)) return;
    if (isLeftOut) this.leftOut.set(name, run.prev);
    this.lacks([...this.leftOut]);
  }

  /**
   * What continues a run that was left out stands behind the one before that. So does what continues one that was never sent:
   * what was the end of the active path then is the next best, unless limits have cut off what came before here.
   */
  private async rebase(incoming: IncomingRun): Promise<void> {
    let { prev } = incoming.run;
    // Names may lie: one that continues itself ends this, too.
    const missing = new Set<string>();
    while (prev !== null && !(await this.isThere(prev, incoming))) {
      let before = this.leftOut.get(prev);
      if (before === undefined) {
        const { behind } = incoming;
        const head = await this.context.parts.store.head(this.threadId);
        // It may come yet: of a deleted thread, or where the servers have lost what came first, it is sent again.
        if (behind === null || isFromBefore(head, this.record())) return;
        before = head?.cut === true ? null : behind;
      }
      missing.add(prev);
      prev = before === null || missing.has(before) ? null : before;
    }
    if (prev !== incoming.run.prev) incoming.run = { ...incoming.run, prev };
  }

  /** The run is in the log, or on its way, and does not wait for this one. */
  private async isThere(name: string, one: IncomingRun): Promise<boolean> {
    const passed = new Set<IncomingRun>();
    for (let at = this.named(name); at !== undefined && !passed.has(at); at = this.named(at.run.prev)) {
      if (at === one) return false;
      passed.add(at);
    }
    return passed.size > 0 || (await this.context.parts.store.runNamed(this.threadId, namedRun(name))) !== undefined;
  }

  /** The result of a tool call. Where the thread has gone on here without it, nobody waits for it. */
  private async writeResult({ runId, result, followUp }: ResultMessage, isFirst: boolean): Promise<Written> {
    const { parts } = this.context;
    const { threadId } = this;
    const [run, head] = await Promise.all([
      parts.store.runNamed(threadId, namedRun(runId)),
      parts.store.head(threadId),
    ]);
    // The run may be still to come.
    if (run === undefined) return isFirst ? "done" : "later";
    // A run of this device that has just begun carries the call along.
    if (head?.live !== undefined && head.pending !== undefined) return "blocked";
    // A call of a later run may have its id.
    const isIts = ({ madeIn }: PendingToolCall): boolean =>
      madeIn === run.runIndex || head?.pending?.runIndex === run.runIndex;
    const changing = parts.store.changeToolCall(
      threadId,
      result.toolCallId,
      (call, stored) => (isIts(call) ? answerOfSpace(result.id, followUp !== false, stored)(call) : { is: "none" }),
      result,
    );
    const changed = await changing.catch((error: unknown) => {
      if (!RunnerError.is(error, "call-over")) throw error;
      return "none";
    });
    if (changed === "changed") parts.channel.post({ type: "changed", threadId });
    return "done";
  }
}

/** What the log has of a run whose beginning was read earlier. */
const startOf = (
  { threadId, runId, answerId, agentId, startedAt, fingerprint, asker }: RunRow,
  device: DeviceName,
): IncomingRun["run"] => ({
  type: "run",
  threadId,
  runId,
  device,
  prev: null,
  knew: null,
  startedAt,
  fingerprint,
  ...defined({ answerId, agentId, asker }),
  input: { messages: [] },
  title: "",
});
