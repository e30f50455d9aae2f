import type { Interrupt, RunAgentInput } from "@ag-ui/client";
import { map, merge, type Observable } from "rxjs";
import { RunnerError } from "../run/errors.js";
import { isAnswer } from "../run/interrupts.js";
import { pendingIn, type PendingToolCalls } from "../storage/pending-tool-calls.js";
import type { RunStore, ThreadHead } from "../storage/run-store.js";
import type { AskedWaiting, WaitingUpdate } from "../storage/waiting.js";
import { checkInput, fingerprint } from "./checks.js";
import type { History } from "./history/history.js";
import { steadily } from "../storage/steadily.js";
import type { Signals } from "./live/signals.js";

/** How many runs may wait in one thread. */
export const MAX_WAITING = 1_000;

/** A thread, as far as it decides whether a waiting run may start. */
export interface ThreadNow {
  readonly head: ThreadHead | undefined;
  /** Open interrupts; none while a run is live. */
  readonly interrupts: readonly Interrupt[];
  /** Calls of front-end tools that are awaited, or whose results go on first. */
  readonly toolCalls: Pick<PendingToolCalls, "calls"> | undefined;
}

export interface OutboxChange {
  /** Undefined: of any thread. */
  readonly threadId: string | undefined;
  /** Other runs may wait than before; else only why they wait may have changed. */
  readonly waits: boolean;
}

/** The runs of the log that wait for their turn; each change is told to all hosts. Who starts them: the runtime. */
export class Outbox {
  constructor(
    /** What waits is read from it. */
    readonly store: RunStore,
    private readonly history: Pick<History, "base">,
    private readonly signals: Signals,
    /** Settles what this host leaves behind when it dies. */
    private readonly watchHolder: (holder: string | undefined) => void,
  ) {}

  /**
   * @returns `waits`, also if it did before; `exists` if it is in the log already. Errors: RunnerError `thread-busy` where as
   *   many wait as may
   */
  async add(run: AskedWaiting, input: RunAgentInput): Promise<"waits" | "exists"> {
    const { threadId, runId } = run;
    const answer = isAnswer(input) ? fingerprint(checkInput(input)) : undefined;
    const added = await this.store.addWaiting(run, MAX_WAITING, answer);
    if (added.is === "full") throw new RunnerError("thread-busy", { threadId, runId, waiting: MAX_WAITING });
    if (added.is === "added") this.signals.waitingChangedHere(threadId);
    return added.is === "exists" ? "exists" : "waits";
  }

  async move(threadId: string, runId: string, before: string | null): Promise<boolean> {
    return this.told(threadId, await this.store.moveWaiting(threadId, runId, before));
  }

  async remove(threadId: string, runId: string): Promise<boolean> {
    return this.told(threadId, await this.store.removeWaiting(threadId, runId));
  }

  async update(threadId: string, runId: string, update: WaitingUpdate): Promise<boolean> {
    return this.told(threadId, await this.store.updateWaiting(threadId, runId, update));
  }

  /** What the thread is now. */
  thread(threadId: string): Promise<ThreadNow> {
    return steadily(this.store, threadId, async (head) => {
      // Nobody else may look at the live run that the others wait for (L9).
      if (head?.live !== undefined) this.watchHolder(head.holder);
      const isIdle = head !== undefined && head.live === undefined && head.deleted !== true;
      const interrupts = isIdle ? (await this.history.base(head)).interrupts : [];
      // Those whose results are for the next message wait for nothing, and another device may never come back.
      const calls = pendingIn(head)?.calls.filter(
        ({ status, followUp, elsewhere }) => elsewhere !== true && (status !== "answered" || followUp !== false),
      );
      return { head, interrupts, toolCalls: calls === undefined || calls.length === 0 ? undefined : { calls } };
    });
  }

  /** Emits when the waiting runs of a thread, or why they wait, may have changed. */
  get changed$(): Observable<OutboxChange> {
    const { changed$, anew$ } = this.signals;
    return merge(
      changed$.pipe(map(({ threadId, waits, isDeleted }) => ({ threadId, waits: waits || isDeleted }))),
      anew$.pipe(map(() => ({ threadId: undefined, waits: true }))),
    );
  }

  private told(threadId: string, isChanged: boolean): boolean {
    if (isChanged) this.signals.waitingChangedHere(threadId);
    return isChanged;
  }
}
