import { EventType } from "@ag-ui/core";
import { randomId } from "../../platform/ids.js";
import { RunnerError } from "../../run/errors.js";
import type { ThreadBase } from "../../run/input-plan.js";
import { endOf, pageOf, type MessagePart, type ThreadEnd } from "../../run/message-page.js";
import { settledPrelude } from "../../run/prelude.js";
import { runNames } from "../../run/run-names.js";
import type { BaseEvent } from "@ag-ui/client";
import type { Derived, RunClosing, RunRow, RunStore, StoredMessageRow, ThreadHead } from "../../storage/run-store.js";
import { loaded } from "../../run/loaded.js";
import type { RunStatus } from "../../run/types.js";
import { foldRows } from "./fold-rows.js";
import { keep } from "./recent.js";
import type { RecordedRun } from "./recorded-run.js";
import { isUnreadable, RunLog, unlessUnreadable } from "./run-log.js";

/** A thread before its first run. */
export const newThread = (): ThreadBase => ({
  runIndex: -1,
  messages: [],
  runOf: new Map(),
  addedBy: new Map(),
  state: {},
  interrupts: [],
});

const ENDS_IN_ERROR: ReadonlySet<RunStatus> = new Set<RunStatus>(["errored", "broken"]);

/** Most readers of settled runs need nothing rebuilt. */
const rebuilding = () => loaded(import("./rebuild.js"));

const keyOf = (threadId: string, runIndex: number): string => JSON.stringify([threadId, runIndex]);

const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n);

const inOrder = (rows: StoredMessageRow[]): StoredMessageRow[] => rows.sort((a, b) => a.runIndex - b.runIndex);

function rowsFrom(runIndex: number, { messages, rewritten }: Derived): StoredMessageRow[] {
  if (rewritten && messages.length === 0) return [{ runIndex, resets: true, row: undefined }];
  return messages.map((row, n) => ({ runIndex, resets: rewritten && n === 0, row }));
}

/** Threads as they were after their runs: read from the store, cached while surely valid. */
export class History {
  /** Ends of threads, with the epoch of the read, so that a follow-up run need not read its history. */
  private readonly cache = new Map<string, { readonly epoch: number; readonly base: ThreadBase }>();
  /** Derived data that could not be written (disk full): read from here instead. */
  private readonly unwritten = new Map<string, { readonly closing: RunClosing; readonly derived: Derived }>();
  /** By thread and run: rows rebuilt from the log, in place of unreadable ones in the store. */
  private readonly salvaged = new Map<string, Map<number, readonly StoredMessageRow[]>>();

  readonly log: RunLog;

  constructor(private readonly store: RunStore) {
    this.log = new RunLog(store);
  }

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

  /** The cached end of the thread with its epoch, which a writer must check. */
  last(threadId: string): { readonly epoch: number; readonly base: ThreadBase } | undefined {
    return this.cache.get(threadId);
  }

  remember(threadId: string, epoch: number, base: ThreadBase): void {
    keep(this.cache, threadId, { epoch, base });
  }

  forget(threadId: string): void {
    this.cache.delete(threadId);
    this.salvaged.delete(threadId);
  }

  forgetAll(): void {
    this.cache.clear();
    this.salvaged.clear();
    this.unwritten.clear();
  }

  /** The thread as it was after run `runIndex` (-1: before the first). */
  async baseAt(head: ThreadHead, runIndex: number): Promise<ThreadBase> {
    if (runIndex < 0) return newThread();
    const path = await this.derivedPath(head, runIndex);
    const [stored, { state, interrupts }] = await Promise.all([
      this.rowsOf(head, path, runIndex),
      this.stateAfter(head, runIndex),
    ]);
    return { runIndex, ...foldRows(this.withUnwritten(head, path, runIndex, stored)), state, interrupts };
  }

  /**
   * Messages of the thread as it was after run `runIndex`: the `limit` ones before the one with id `before`, or the
   * last ones. They may be the cache's own objects.
   *
   * @returns undefined where there is no message of the id `before`
   */
  async page(
    head: ThreadHead,
    runIndex: number,
    before: string | undefined,
    limit: number,
  ): Promise<MessagePart | undefined> {
    if (runIndex < 0) return pageOf([], before, limit);
    const { threadId } = head;
    const cached = this.cache.get(threadId);
    if (cached?.epoch === head.epoch && cached.base.runIndex === runIndex) {
      return pageOf(cached.base.messages, before, limit);
    }
    const path = await this.derivedPath(head, runIndex);
    // The store's pages lack what could not be written. That is rare (disk full), and the page is cut from the whole
    // thread.
    if (this.lacks(head, path, runIndex)) return pageOf((await this.baseAt(head, runIndex)).messages, before, limit);
    try {
      return await this.store.messagePage(threadId, runIndex, path, { before, limit });
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return pageOf((await this.baseAt(head, runIndex)).messages, before, limit);
    }
  }

  /** The thread as it was after run `runIndex`, with its last `limit` messages or all. */
  async endAt(head: ThreadHead, runIndex: number, limit: number | undefined): Promise<ThreadEnd> {
    // L16: only what is shown is read.
    if (limit === undefined || runIndex < 0) return endOf(await this.baseAt(head, runIndex), limit);
    // Without `before` there is always a page.
    const { messages, earlier } = (await this.page(head, runIndex, undefined, limit))!;
    const { state, interrupts } = await this.stateAfter(head, runIndex);
    return { runIndex, messages, earlier, state, interrupts };
  }

  /** The path to run `runIndex`; undefined where the thread has no branches. Derives what is still underived on it. */
  private async derivedPath(head: ThreadHead, runIndex: number): Promise<Set<number> | undefined> {
    const path = head.branched === true ? await this.log.pathTo(head, runIndex) : undefined;
    // In order: each run is derived from what the ones before it left.
    for (const underived of head.underived ?? []) {
      if (underived <= runIndex && (path === undefined || path.has(underived))) await this.derive(head, underived);
    }
    return path;
  }

  /** State and interrupts after a run; rebuilt from the log if their record is unreadable. */
  private async stateAfter(head: ThreadHead, runIndex: number): Promise<Pick<ThreadBase, "state" | "interrupts">> {
    const { threadId } = head;
    try {
      const after =
        this.unwritten.get(keyOf(threadId, runIndex))?.derived ?? (await this.store.stateAfter(threadId, runIndex));
      if (after === undefined) throw new RunnerError("corrupt-record", { threadId, runIndex, store: "states" });
      return after;
    } catch (error) {
      // The log has no events of a run that was cut off.
      if (!isUnreadable(error) || (head.cut === true && runIndex === head.first)) throw error;
      return this.readAsFar(head, runIndex, async ({ content: { state, interrupts } }) => ({ state, interrupts }));
    }
  }

  /** The store lacks the derived data of some run of the path. */
  private lacks(
    { threadId, underived = [] }: ThreadHead,
    path: ReadonlySet<number> | undefined,
    upTo: number,
  ): boolean {
    return underived.some(
      (runIndex) => runIndex <= upTo && path?.has(runIndex) !== false && this.unwritten.has(keyOf(threadId, runIndex)),
    );
  }

  /** The thread as run `runIndex` found it. */
  async baseBefore(head: ThreadHead, runIndex: number): Promise<ThreadBase> {
    return this.baseAt(head, (await this.log.run(head, runIndex)).prevRunIndex ?? -1);
  }

  /**
   * The events of the active path from its first run to `upTo`, packed as they are stored; what was cut off is replaced
   * by its snapshot.
   */
  async pathEvents(head: ThreadHead, upTo: number): Promise<BaseEvent[]> {
    const { threadId, first = 0 } = head;
    let events: BaseEvent[] = [];
    const path = head.branched === true ? [...(await this.log.pathTo(head, upTo))].sort((a, b) => a - b) : undefined;
    const count = path?.length ?? upTo - first + 1;
    for (let n = 0; n < count; n++) {
      const runIndex = path?.[n] ?? first + n;
      const isCut = head.cut === true && runIndex === first;
      const ofRun = isCut ? undefined : await this.log.eventsIfReadable(threadId, runIndex);
      if (ofRun !== undefined) events.push(...ofRun);
      // The snapshot includes everything before it.
      else events = await this.settledEvents(head, endOf(await this.baseAt(head, runIndex)));
    }
    return events;
  }

  /** Rebuilds a run from its log, on the base that it started from. */
  async viewOf(head: ThreadHead, runIndex: number): Promise<RecordedRun> {
    const { viewOf } = await rebuilding();
    return viewOf(this, this.store, head, runIndex);
  }

  /**
   * Events that rebuild the thread up to the end of a settled run.
   *
   * @param forget the reader may hold reasoning of another branch
   */
  async settledEvents(head: ThreadHead, end: ThreadEnd, forget = false): Promise<BaseEvent[]> {
    const { runIndex, state, messages, interrupts } = end;
    if (runIndex < 0) return [];
    const closing =
      this.unwritten.get(keyOf(head.threadId, runIndex))?.closing ?? (await this.closingOf(head, runIndex));
    const isOpen = closing.terminal.type === EventType.RUN_ERROR && interrupts.length > 0;
    const interrupted = isOpen ? { runId: await this.interruptedBefore(head, runIndex), interrupts } : undefined;
    return settledPrelude({ ...closing, state, messages, ...(interrupted && { interrupted }) }, forget);
  }

  /** The closing record of a run; rebuilt from the log if it is missing or unreadable. */
  private async closingOf(head: ThreadHead, runIndex: number): Promise<RunClosing> {
    const closing = await this.store.closing(head.threadId, runIndex).catch(unlessUnreadable);
    return closing ?? this.readAsFar(head, runIndex, async (view) => view.closing());
  }

  /**
   * Events that name the run of each message, up to the last settled run. The thread's snapshot comes in that run and
   * cannot tell.
   */
  async namesOf(head: ThreadHead, { runIndex: last, messages, addedBy }: ThreadEnd): Promise<BaseEvent[]> {
    const idsOf = new Map<number, string[]>();
    for (const { id } of messages) {
      // The base has the messages of runs that were cut off.
      const by = Math.max(addedBy?.(id) ?? last, head.first ?? 0);
      if (by === last) continue;
      const ids = idsOf.get(by);
      if (ids === undefined) idsOf.set(by, [id]);
      else ids.push(id);
    }
    if (idsOf.size === 0) return [];
    return runNames(
      head.threadId,
      (await this.log.runsAt(head, [...idsOf.keys()])).map(({ runIndex, runId, status }) => ({
        runId,
        status,
        messageIds: idsOf.get(runIndex) ?? [],
      })),
    );
  }

  /** The id of the run whose interrupts are still open after run `runIndex`, which ended in RUN_ERROR. */
  private async interruptedBefore(head: ThreadHead, runIndex: number): Promise<string> {
    let run: RunRow | undefined = await this.log.run(head, runIndex);
    // Runs that end in RUN_ERROR leave interrupts alone; the last other run set them.
    while (run !== undefined && ENDS_IN_ERROR.has(run.status)) run = await this.log.runBefore(head, run);
    // A limit may have cut it off.
    return run?.runId ?? randomId();
  }

  /**
   * Derives the messages and state of a run that was settled without reading its content. Earlier runs are derived
   * already.
   */
  private async derive(head: ThreadHead, runIndex: number): Promise<void> {
    const { threadId, underived = [] } = head;
    const known = this.unwritten.get(keyOf(threadId, runIndex));
    if (known !== undefined) return this.writeDerived(threadId, runIndex, known.closing, known.derived);
    // The store has all that was derived but these; they are read from memory.
    const left = underived.filter((before) => before < runIndex && this.unwritten.has(keyOf(threadId, before)));
    return this.readAsFar({ ...head, underived: left }, runIndex, (view) =>
      this.writeDerived(threadId, runIndex, view.closing(), view.derived()),
    );
  }

  /** Reads as much of a settled run as is readable and as `use` accepts. */
  private async readAsFar<T>(head: ThreadHead, runIndex: number, use: (view: RecordedRun) => Promise<T>): Promise<T> {
    const { readAsFar } = await rebuilding();
    return readAsFar(this, this.store, head, runIndex, use);
  }

  private async writeDerived(threadId: string, runIndex: number, closing: RunClosing, derived: Derived): Promise<void> {
    const key = keyOf(threadId, runIndex);
    try {
      await this.store.derive(threadId, runIndex, closing, derived);
      this.unwritten.delete(key);
    } catch (error) {
      // Readers get it from memory. The write is retried until it succeeds, also where the run's record is unreadable.
      if (!RunnerError.is(error, "quota-exceeded") && !isUnreadable(error)) throw error;
      this.unwritten.set(key, { closing, derived });
    }
  }

  /** The path's rows in the store; unreadable rows of a run are rebuilt from its log. */
  private async rowsOf(
    head: ThreadHead,
    path: ReadonlySet<number> | undefined,
    upTo: number,
  ): Promise<readonly StoredMessageRow[]> {
    const { threadId, first = 0 } = head;
    for (;;) {
      const salvaged = this.salvaged.get(threadId) ?? new Map<number, readonly StoredMessageRow[]>();
      const instead = [...salvaged].flatMap(([at, rows]) => (at <= upTo && path?.has(at) !== false ? rows : []));
      const whole = path ?? (salvaged.size === 0 ? undefined : range(first, upTo));
      const left = whole && new Set([...whole].filter((at) => !salvaged.has(at)));
      try {
        const rows = await this.store.messageRows(threadId, upTo, left);
        return instead.length === 0 ? rows : inOrder([...rows, ...instead]);
      } catch (error) {
        const lost = RunnerError.is(error, "corrupt-record") ? error.details["runIndex"] : undefined;
        if (typeof lost !== "number" || salvaged.has(lost)) throw error;
        // The log has no events of a run that was cut off.
        const isCut = head.cut === true && lost === first;
        const derived = isCut ? undefined : await this.readAsFar(head, lost, async (view) => view.derived());
        this.salvaged.set(threadId, salvaged.set(lost, derived === undefined ? [] : rowsFrom(lost, derived)));
      }
    }
  }

  /** The path's rows in order, including those that are not in the store yet. */
  private withUnwritten(
    { threadId, underived = [] }: ThreadHead,
    path: ReadonlySet<number> | undefined,
    upTo: number,
    rows: readonly StoredMessageRow[],
  ): readonly StoredMessageRow[] {
    const added = underived.flatMap((runIndex): StoredMessageRow[] => {
      const left = this.unwritten.get(keyOf(threadId, runIndex))?.derived;
      if (left === undefined || runIndex > upTo || path?.has(runIndex) === false) return [];
      return rowsFrom(runIndex, left);
    });
    return added.length === 0 ? rows : inOrder([...rows, ...added]);
  }
}
