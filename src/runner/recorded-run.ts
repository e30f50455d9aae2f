import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { RunnerError } from "../run/errors.js";
import type { ThreadBase } from "../run/input-plan.js";
import { RunView } from "../run/run-view.js";
import type { Chunk } from "../run/types.js";
import type { Derived, MessageRow, PersistedInput, RunClosing } from "../storage/run-store.js";

/** RUN_STARTED with the messages that the run was asked with, where it was made without knowing them. */
export function withInput(started: BaseEvent, { messages }: PersistedInput): BaseEvent {
  if (started.type !== EventType.RUN_STARTED || started["input"] !== undefined) return started;
  const { threadId, runId } = started as BaseEvent & { threadId: string; runId: string };
  return {
    ...started,
    input: { threadId, runId, messages: [...messages], tools: [], context: [], forwardedProps: {}, state: {} },
  };
}

/** What the committed events of one run have led to, on the base that the run started from. */
export class RecordedRun {
  private readonly view: RunView;
  private last = -1;

  constructor(
    private readonly start: ThreadBase,
    private readonly input: PersistedInput,
  ) {
    this.view = new RunView(start);
  }

  /** The last event that is in it. */
  get seq(): number {
    return this.last;
  }

  /** Its first event is in it. */
  get started(): boolean {
    return this.last >= 0;
  }

  /** Its terminal event is in it. */
  get ended(): boolean {
    return this.view.live.terminal !== undefined;
  }

  applyChunk(chunk: Chunk): void {
    for (const { event } of chunk.entries) {
      this.view.apply(event.type === EventType.RUN_STARTED ? withInput(event, this.input) : event);
    }
    this.last = chunk.firstSeq + chunk.count - 1;
  }

  /** The events that lead a reader of the base up to here. A copy: the run may go on. */
  prelude(): BaseEvent[] {
    return structuredClone(this.view.prelude());
  }

  /** Of a run that has ended. */
  closing(): RunClosing {
    const { runStarted, customs, terminal } = this.view.live;
    if (runStarted === undefined || terminal === undefined)
      throw new RunnerError("corrupt-record", { store: "chunks" });
    const { input: _input, ...withoutInput } = runStarted;
    return { runStarted: withoutInput as BaseEvent, customs, terminal };
  }

  /** The messages that the run added or changed, in their places, and what it left behind. */
  derived(): Derived {
    const { messages, touched, rewritten, state, interrupts } = this.view.fold;
    if (rewritten) return { messages: messages.map((message) => ({ message })), rewritten, state, interrupts };
    const rows: MessageRow[] = [];
    const lastKept = messages.findLastIndex((message) => !touched.has(message.id) || this.start.runOf.has(message.id));
    messages.forEach((message, at) => {
      if (!touched.has(message.id)) return;
      const before = messages[at - 1];
      const inserted = at < lastKept && !this.start.runOf.has(message.id) && before !== undefined;
      rows.push({ message, ...(inserted && { after: before.id }) });
    });
    return { messages: rows, rewritten, state, interrupts };
  }

  /** The thread after this run, which has ended. */
  base(runIndex: number): ThreadBase {
    const { messages, touched, rewritten, state, interrupts } = this.view.fold;
    const runOf = new Map(rewritten ? messages.map((message) => [message.id, runIndex]) : this.start.runOf);
    if (!rewritten) for (const id of touched) runOf.set(id, runIndex);
    return { runIndex, messages, runOf, state, interrupts };
  }
}
