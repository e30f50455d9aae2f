import type { Message } from "@ag-ui/client";
import { RunnerError } from "../run/errors.js";
import type { ThreadBase } from "../run/input-plan.js";
import { settledPrelude } from "../run/prelude.js";
import type { BaseEvent } from "@ag-ui/client";
import type { RunRow, RunStore, ThreadHead } from "../storage/run-store.js";
import { lastSeq, sliceChunk } from "../run/pack.js";
import { completed, RecordedRun } from "./recorded-run.js";

/** Threads whose end is kept in memory, so that a follow-up run need not read its history. */
const CACHED_THREADS = 16;
/** Events fetched from the log at a time. */
const PAGE_EVENTS = 8_192;

/** A thread before its first run. */
export const newThread = (): ThreadBase => ({
  runIndex: -1,
  messages: [],
  runOf: new Map(),
  state: {},
  interrupts: [],
});

/** What threads looked like after their runs: read from the store, kept while it is sure to be true. */
export class History {
  /** By thread, with the epoch that it was read at; in order of use. */
  private readonly cache = new Map<string, { readonly epoch: number; readonly base: ThreadBase }>();

  constructor(private readonly store: RunStore) {}

  /** The thread at the end of its active path. `head` must have no live run. */
  async base(head: ThreadHead): Promise<ThreadBase> {
    const cached = this.cache.get(head.threadId);
    if (cached?.epoch === head.epoch && cached.base.runIndex === head.activeRunIndex) {
      this.remember(head.threadId, head.epoch, cached.base);
      return cached.base;
    }
    const base = await this.baseAt(head, head.activeRunIndex);
    this.remember(head.threadId, head.epoch, base);
    return base;
  }

  /** The thread's end as this host last knew it, with the epoch of that: whoever writes on it has to check that. */
  last(threadId: string): { readonly epoch: number; readonly base: ThreadBase } | undefined {
    return this.cache.get(threadId);
  }

  remember(threadId: string, epoch: number, base: ThreadBase): void {
    this.cache.delete(threadId);
    this.cache.set(threadId, { epoch, base });
    const oldest = this.cache.keys().next().value;
    if (this.cache.size > CACHED_THREADS && oldest !== undefined) this.cache.delete(oldest);
  }

  forget(threadId: string): void {
    this.cache.delete(threadId);
  }

  forgetAll(): void {
    this.cache.clear();
  }

  /** The thread as it was after run `runIndex` (-1: before the first). */
  async baseAt(head: ThreadHead, runIndex: number): Promise<ThreadBase> {
    if (runIndex < 0) return newThread();
    const { threadId } = head;
    const path = head.branched === true ? await this.pathTo(threadId, runIndex) : undefined;
    // From the first on: each is derived from what the ones before it left.
    for (const underived of head.underived ?? []) {
      if (underived <= runIndex && (path === undefined || path.has(underived))) await this.derive(head, underived);
    }
    const rows = await this.store.messageRows(threadId, runIndex, path);
    const after = await this.store.stateAfter(threadId, runIndex);
    if (after === undefined) throw new RunnerError("corrupt-record", { threadId, runIndex, store: "states" });
    let messages: Message[] = [];
    const places = new Map<string, number>();
    const runOf = new Map<string, number>();
    let rewrittenBy: number | undefined;
    for (const { resets, row, runIndex: from } of rows) {
      if (resets) {
        rewrittenBy = from;
        messages = [];
        places.clear();
        runOf.clear();
      }
      if (row === undefined) continue;
      const { message } = row;
      // A rewritten thread is told whole, with each of several messages of one id; the first of them counts.
      const place = rewrittenBy === from ? undefined : places.get(message.id);
      runOf.set(message.id, from);
      if (rewrittenBy === from && places.has(message.id)) messages.push(message);
      else if (place !== undefined) messages[place] = message;
      else if (row.after !== undefined && places.has(row.after)) {
        messages.splice(places.get(row.after)! + 1, 0, message);
        messages.forEach((moved, at) => places.set(moved.id, at));
      } else places.set(message.id, messages.push(message) - 1);
    }
    return { runIndex, messages, runOf, state: after.state, interrupts: after.interrupts };
  }

  /** The runs from the first to `runIndex`. */
  async pathTo(threadId: string, runIndex: number): Promise<Set<number>> {
    const prev = new Map((await this.store.runs(threadId)).map((run) => [run.runIndex, run.prevRunIndex]));
    const path = new Set<number>();
    for (let at: number | null | undefined = runIndex; at !== null && at !== undefined; at = prev.get(at)) path.add(at);
    return path;
  }

  /** A run that the head knows of. Errors: RunnerError `corrupt-record` */
  async run({ threadId }: ThreadHead, runIndex: number): Promise<RunRow> {
    const run = await this.store.run(threadId, runIndex);
    if (run === undefined) throw new RunnerError("corrupt-record", { threadId, runIndex, store: "runs" });
    return run;
  }

  /** The run that `run` continues. */
  async runBefore({ threadId, prevRunIndex }: RunRow): Promise<RunRow | undefined> {
    return prevRunIndex === null ? undefined : this.store.run(threadId, prevRunIndex);
  }

  /** The thread as run `runIndex` found it. */
  async baseBefore(head: ThreadHead, runIndex: number): Promise<ThreadBase> {
    return this.baseAt(head, (await this.run(head, runIndex)).prevRunIndex ?? -1);
  }

  /** The committed chunks of a run with events after `afterSeq`, in order, up to now. */
  async *chunksOf(run: { readonly threadId: string; readonly runIndex: number }, afterSeq: number) {
    for (let seq = afterSeq; ;) {
      const chunks = await completed(this.store, await this.store.chunks(run.threadId, run.runIndex, seq, PAGE_EVENTS));
      for (const chunk of chunks) {
        const rest = sliceChunk(chunk, seq + 1);
        if (rest === undefined) continue;
        yield rest;
        seq = lastSeq(rest);
      }
      if (chunks.length === 0) return;
    }
  }

  /**
   * The events of the active path from its first run to `upTo`, joined as they are stored; of what was cut off, the
   * snapshot that is left.
   */
  async pathEvents(head: ThreadHead, upTo: number): Promise<BaseEvent[]> {
    const { threadId, first = 0 } = head;
    const events: BaseEvent[] = [];
    const path = head.branched === true ? [...(await this.pathTo(threadId, upTo))].sort((a, b) => a - b) : undefined;
    const count = path?.length ?? upTo - first + 1;
    for (let n = 0; n < count; n++) {
      const runIndex = path?.[n] ?? first + n;
      if (head.cut === true && runIndex === first) {
        events.push(...(await this.settledEvents(head, await this.baseAt(head, runIndex))));
      } else
        for await (const chunk of this.chunksOf({ threadId, runIndex }, -1))
          events.push(...chunk.entries.map(({ event }) => event));
    }
    return events;
  }

  /** A run's view from its log, on the base that it started from. */
  async viewOf(head: ThreadHead, runIndex: number): Promise<RecordedRun> {
    const run = await this.run(head, runIndex);
    const input = await this.store.input(head.threadId, runIndex);
    if (input === undefined) {
      throw new RunnerError("corrupt-record", { threadId: head.threadId, runIndex, store: "runs" });
    }
    const base = await this.baseAt(head, run.prevRunIndex ?? -1);
    const view = new RecordedRun(base, input);
    for await (const chunk of this.chunksOf(run, -1)) view.applyChunk(chunk);
    return view;
  }

  /** Events that rebuild everything up to the end of settled run `runIndex`. */
  async settledEvents(head: ThreadHead, base: ThreadBase): Promise<BaseEvent[]> {
    if (base.runIndex < 0) return [];
    const closing = await this.store.closing(head.threadId, base.runIndex);
    if (closing === undefined) throw new RunnerError("corrupt-record", { threadId: head.threadId, store: "runs" });
    return settledPrelude({ ...closing, state: base.state, messages: base.messages, interrupts: base.interrupts });
  }

  /** Adds what a run left behind that was settled without reading its content. The runs before it are derived. */
  private async derive(head: ThreadHead, runIndex: number): Promise<void> {
    const { underived: _underived, ...rest } = head;
    const view = await this.viewOf(rest, runIndex);
    await this.store.derive(head.threadId, runIndex, view.closing(), view.derived());
  }
}
