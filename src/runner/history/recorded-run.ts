import { cloneJson } from "../../run/json.js";
import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message } from "@ag-ui/client";
import { RunnerError } from "../../run/errors.js";
import type { ThreadBase } from "../../run/input-plan.js";
import type { ThreadContent } from "../../run/fold.js";
import { lastSeq } from "../../run/pack.js";
import { livePrelude, type LivePrelude, type Shown } from "../../run/live-prelude.js";
import { addedBy, endOf, type ThreadEnd } from "../../run/message-page.js";
import { RunView } from "../../run/run-view.js";
import type { Chunk } from "../../run/types.js";
import type { Derived, MessageRow, PersistedInput, RunClosing } from "../../storage/run-store.js";
import { withInput } from "./run-input.js";

/** One run as rebuilt from its committed events, on the base that it started from. */
export class RecordedRun extends RunView {
  private last = -1;

  constructor(
    readonly start: ThreadBase,
    private readonly input: PersistedInput,
  ) {
    super(start);
  }

  /** Seq of the last applied event; -1 for none. */
  get seq(): number {
    return this.last;
  }

  /** Messages and state so far; live, see {@link Fold}. */
  get content(): ThreadContent {
    return this.fold;
  }

  /** There is a message of this id, or will be once the run's input is recorded. */
  has(messageId: string): boolean {
    if (this.fold.list.get(messageId) !== undefined) return true;
    return !this.started && this.input.messages.some(({ id }) => id === messageId);
  }

  /** Ids of the interrupts that were open when it started: it answers them. */
  get answered(): readonly string[] {
    return this.start.interrupts.map(({ id }) => id);
  }

  /** Its first event was applied. */
  get started(): boolean {
    return this.last >= 0;
  }

  /** Its terminal event was applied. */
  get ended(): boolean {
    return this.terminal !== undefined;
  }

  applyChunk(chunk: Chunk): void {
    for (const { event } of chunk.entries) {
      this.apply(event.type === EventType.RUN_STARTED ? withInput(event, this.input) : event);
    }
    this.last = lastSeq(chunk);
  }

  /** The thread as the run found it, with its last `limit` messages or all. */
  before(limit?: number): ThreadEnd {
    return endOf(this.start, limit);
  }

  /** Events that bring a reader of {@link before} up to date. A copy: the run may go on. */
  prelude(shown: Shown = {}): LivePrelude {
    const { events, earlier } = livePrelude(this, shown);
    // Strings are shared: a waiting reader costs no second copy of the thread.
    return { events: cloneJson(events), earlier };
  }

  /** The closing record; only of a run that has ended. */
  closing(): RunClosing {
    const { runStarted, customs, terminal } = this;
    if (runStarted === undefined || terminal === undefined)
      throw new RunnerError("corrupt-record", { store: "chunks" });
    const { input: _input, ...withoutInput } = runStarted;
    return { runStarted: withoutInput as BaseEvent, customs, terminal };
  }

  /** The messages that the run added or changed, with their places, and the state and interrupts after it. */
  derived(): Derived {
    const { messages, state, interrupts, list } = this.fold;
    const { touched, rewritten, doubled } = list;
    if (rewritten || doubled) {
      return { messages: messages.map((message) => this.rowOf(message)), rewritten: true, state, interrupts };
    }
    const rows: MessageRow[] = [];
    // Backwards: most touched messages are at the end, and the loop stops at the first of them.
    let beforeKept = false;
    for (let at = messages.length - 1; at >= 0 && rows.length < touched.size; at--) {
      const message = messages[at]!;
      const isOld = this.start.runOf.has(message.id);
      if (touched.has(message.id)) {
        const before = messages[at - 1];
        const inserted = beforeKept && !isOld && before !== undefined;
        rows.push({ ...this.rowOf(message), ...(inserted && { after: before.id }) });
        beforeKept ||= isOld;
      } else beforeKept = true;
    }
    return { messages: rows.toReversed(), rewritten, state, interrupts };
  }

  private rowOf(message: Message): MessageRow {
    const by = addedBy(this.start, message.id);
    return { message, ...(by !== undefined && { addedBy: by }) };
  }

  /** The thread after this run, which has ended. Replaces the base that the run started from and reuses its maps. */
  base(runIndex: number): ThreadBase {
    const { messages, state, interrupts, list } = this.fold;
    const rewritten = list.doubled || list.rewritten;
    const runOf = rewritten ? new Map<string, number>() : this.start.runOf;
    const added = rewritten ? new Map<string, number>() : this.start.addedBy;
    for (const id of rewritten ? messages.map((message) => message.id) : list.touched) {
      const by = addedBy(this.start, id);
      if (by !== undefined && by !== runIndex) added.set(id, by);
      runOf.set(id, runIndex);
    }
    return { runIndex, messages, runOf, addedBy: added, index: list.handOn(), state, interrupts };
  }
}
