import { RunnerError } from "../run/errors.js";
import { closingEvents } from "../run/finalize.js";
import { ChunkBuilder, lastSeq, sliceChunk } from "../run/pack.js";
import { chunkSize } from "../run/size.js";
import type { FedRun } from "../run/run-feed.js";
import type { RunRow, ThreadHead } from "../storage/run-store.js";
import type { Chunk } from "../run/types.js";
import { baseOf, isBaseThere, leftOn, Mirror, notLater, rowOf, type MirrorContext } from "./mirror.js";
import type { EndMessage, RunMessage, SentChunk } from "./messages.js";
import { runName } from "./run-name.js";

/** Events fetched from the log at a time. */
const PAGE_EVENTS = 8_192;

/**
 * How an attempt to write something down ended: it is there; there is nothing to write, though something may come yet; it
 * waits for something else to come; or for the thread.
 */
export type Written = "done" | "nothing" | "later" | "blocked";

/** A run of another device on its way into the log. */
export class IncomingRun {
  private chunks: SentChunk[] = [];
  private end: EndMessage | undefined;
  private isAbandoned = false;
  /** Its end stands in the log. */
  private isOver = false;
  /** A part of it is in the log. */
  private begun: boolean;
  /** Somebody here asks for its end: its device is told as often as anything of it comes, since it may not hear it. */
  toStop: boolean;
  private mirror: Mirror | undefined;

  /**
   * @param run made of what is in the log, where the run began before what was read now
   * @param isBeside it is not the end of the active path
   * @param behind the name of the run that was the end of the active path when it began
   * @param begun a part of it is in the log
   */
  constructor(
    private readonly context: MirrorContext,
    public run: RunMessage,
    public isBeside: boolean,
    readonly behind: string | null,
    begun?: { readonly toStop: boolean | undefined },
  ) {
    this.begun = begun !== undefined;
    this.toStop = begun?.toStop === true;
  }

  get isLive(): boolean {
    return this.mirror !== undefined;
  }

  get fed(): FedRun | undefined {
    return this.mirror?.fed;
  }

  /** Nothing came meanwhile that would have shown whether another host has taken the run over. */
  lookAt(head: ThreadHead | undefined): void {
    if (this.mirror?.isIn(head) === false) this.mirror.lose();
  }

  /** Nothing of it is in the log. */
  get isUnseen(): boolean {
    return !this.begun;
  }

  /** Nothing of it is in the log, and nothing comes any more. */
  get isLeftOut(): boolean {
    return !this.begun && !this.isOver;
  }

  /** Something came that is not written down yet. */
  get hasMore(): boolean {
    return !this.isOver && (this.chunks.length > 0 || this.end !== undefined);
  }

  add(chunks: readonly SentChunk[]): void {
    this.chunks.push(...chunks);
  }

  finish(end: EndMessage): void {
    this.end = end;
  }

  /** Nothing more of it comes. */
  abandon(): void {
    this.isAbandoned = true;
  }

  /** Another device sends the run from now on, from its first event. */
  giveWay(): void {
    this.isAbandoned = true;
    this.chunks = [];
    this.end = undefined;
  }

  /**
   * Writes down what is there of it.
   *
   * @param isAway its device is not heard of any more
   * @param stop somebody here asks for its end
   */
  async write(isAway: boolean, stop: () => void): Promise<Written> {
    const { end } = this;
    if (this.mirror === undefined) {
      if (this.isAbandoned && this.chunks.length === 0) return "done";
      if (this.isAbandoned && this.isBeside) return this.place(this.brokenEnd());
      if (!this.begun && !(await isBaseThere(this.context, this.run))) return "later";
      // One that was asked for here may leave calls to the tabs: it is settled as their host does it.
      const isAskedHere = this.run.asker?.id === this.context.self.id;
      if (end !== undefined && (this.isBeside || (!this.begun && !isAskedHere))) return this.place(end);
      if (this.isBeside && isAway && this.chunks.length > 0 && !this.begun) return this.placeSoFar();
      if (this.isBeside && isAway && !this.begun) return "nothing";
      if (this.isBeside) return "later";
      // One of which nothing came yet may be abandoned, as if it had never been.
      const isEmpty = this.chunks.length === 0 && end === undefined;
      if (!this.begun && isEmpty && !isAway && !isAskedHere) return "blocked";
      const begun = await Mirror.begin(this.context, this.run, this.begun);
      if (begun === undefined) return "blocked";
      if (begun === "broken") {
        // It cannot go on here: it is put in place of what is here when it is whole.
        this.isBeside = true;
        this.begun = true;
        return "later";
      }
      if (!(begun instanceof Mirror)) return this.over();
      this.mirror = begun;
    }
    const { mirror } = this;
    this.begun = true;
    // More may come meanwhile.
    const arrived = this.chunks.splice(0);
    try {
      if (await mirror.append(arrived)) this.toStop = true;
      if (end !== undefined) await mirror.end(end);
      else if (this.toStop) stop();
    } catch (error) {
      this.chunks.unshift(...arrived);
      // Somebody took it over: the log says what became of it.
      if (!RunnerError.is(error, "fenced")) throw error;
      this.mirror = undefined;
      await mirror.letGo();
      return "blocked";
    }
    if (end !== undefined) return this.over();
    if (!isAway && !this.isAbandoned) return "blocked";
    this.mirror = undefined;
    await mirror.breakOff(this.why);
    return "done";
  }

  /** This host gives it up. @param why undefined where another host goes on with it */
  async giveUp(why: string | undefined): Promise<void> {
    const { mirror } = this;
    this.mirror = undefined;
    await (why === undefined ? mirror?.letGo() : mirror?.breakOff(why));
  }

  private async place(end: EndMessage, arrived: readonly SentChunk[] = this.chunks): Promise<Written> {
    const { parts } = this.context;
    const { run, begun: before } = await this.known();
    const { threadId } = run;
    const base = await baseOf(this.context, run);
    if (base === undefined) return "later";
    const { prevRunIndex, recorded } = base;
    const chunks = [...before];
    for (const sent of [...arrived, end.chunk]) {
      const last = chunks.at(-1);
      const next = last === undefined ? 0 : lastSeq(last) + 1;
      const chunk = sliceChunk({ ...sent, threadId, runIndex: 0, epoch: 0 }, next);
      if (chunk !== undefined) chunks.push(chunk);
    }
    for (const chunk of chunks) recorded.applyChunk(chunk);
    const row: RunRow | undefined = await parts.store.placeRun({
      ...rowOf(run),
      prevRunIndex,
      status: end.status,
      endedAt: end.endedAt,
      listedAt: notLater(this.context, end.endedAt),
      ...(end.closedFrom !== undefined && { closedFrom: end.closedFrom }),
      chunks,
      closing: recorded.closing(),
      derived: recorded.derived(),
      bytes: chunks.reduce((sum, chunk) => sum + chunkSize(chunk), 0),
      left: leftOn(this.context, run, end),
      activates: !this.isBeside,
    });
    if (row === undefined) {
      // A host that has ended may have left a run that is live in the log.
      const live = (await parts.store.head(threadId))?.live;
      if (live !== undefined) await this.context.recovery.endAbandoned(threadId, live);
      return "blocked";
    }
    parts.channel.post({ type: "changed", threadId });
    return this.over();
  }

  /** What came of it is shown as broken; its device may go on with it. */
  private async placeSoFar(): Promise<Written> {
    // More may come meanwhile.
    const chunks = this.chunks.slice();
    const placed = await this.place(this.brokenEnd(), chunks);
    if (placed !== "done") return placed;
    this.chunks.splice(0, chunks.length);
    this.isOver = false;
    this.begun = true;
    return "done";
  }

  private over(): Written {
    this.isOver = true;
    return "done";
  }

  /** Why nothing more of it comes. */
  private get why(): string {
    const { name } = this.run.device;
    return `The run was interrupted: ${name} ${this.isAbandoned ? "does not have it any more" : "is not online any more"}`;
  }

  /** The end of a run that has none, after what came of it. */
  private brokenEnd(): EndMessage {
    const { makeId, clock } = this.context.parts;
    const { threadId, runId, device } = this.run;
    const last = this.chunks.at(-1);
    const firstSeq = last === undefined ? 0 : last.firstSeq + last.count;
    const builder = new ChunkBuilder({ threadId, runIndex: 0, epoch: 0, firstSeq });
    const ending = { status: "broken", threadId, runId, message: this.why, ids: makeId } as const;
    for (const event of closingEvents(last?.open, ending)) builder.add(event, clock.now());
    // There is always a terminal event.
    const chunk = builder.take()!;
    return {
      type: "end",
      threadId,
      runId: runName(this.run),
      device,
      status: "broken",
      endedAt: clock.now(),
      closedFrom: firstSeq,
      chunk,
    };
  }

  /** The run, with what is in the log of it. */
  private async known(): Promise<{ readonly run: RunMessage; readonly begun: readonly Chunk[] }> {
    const { store } = this.context.parts;
    const { threadId } = this.run;
    const row = this.begun ? await store.runNamed(threadId, this.run) : undefined;
    if (row === undefined) return { run: this.run, begun: [] };
    const { runIndex, prevRunIndex, closedFrom = 0 } = row;
    const before = prevRunIndex === null ? undefined : await store.run(threadId, prevRunIndex);
    const prev = before === undefined ? null : runName(before);
    const input = (await store.input(threadId, runIndex)) ?? { messages: [] };
    const begun: Chunk[] = [];
    for (let seq = -1; seq + 1 < closedFrom; seq = lastSeq(begun.at(-1)!)) {
      const chunks = await store.chunks(threadId, runIndex, seq, PAGE_EVENTS);
      const kept = chunks.filter((chunk) => lastSeq(chunk) < closedFrom);
      begun.push(...kept);
      if (kept.length === 0) break;
    }
    return { run: { ...this.run, ...row, device: this.run.device, prev, input }, begun };
  }
}
