import type { RunAgentInput } from "@ag-ui/client";
import type { GiveUpReason, RecoveryNote } from "../run/recovery.js";
import { retryAfterOf, verdictOf, type Verdict } from "../run/verdict.js";
import type { RecoveryWaiting } from "../storage/waiting.js";
import { mayRecover } from "./claim/recovery-record.js";
import { brokenRunOf, type BrokenRun } from "./history/broken-run.js";
import type { History } from "./history/history.js";
import { isUnreadable } from "./history/run-log.js";
import type { Signals } from "./live/signals.js";
import type { RunnerParts } from "./parts.js";

/** What of an agent recovery depends on. */
export interface RecoveringAgent {
  readonly continues: boolean;
  readonly repeatableTools: readonly string[];
}

/**
 * Decides what becomes of broken runs, and keeps the decision in the log. Loaded when a run waits that goes on with one.
 * Every step may be repeated, by any host: deciding twice decides the same.
 */
export class Recoveries {
  constructor(
    private readonly parts: RunnerParts,
    private readonly history: History,
    private readonly signals: Signals,
  ) {}

  /**
   * Decides a recovery that waits undecided. If it goes on, it waits for its time from then on (`notBefore`); else it waits no
   * more, and the run's row says why.
   *
   * @param agent undefined where it is not there any more
   * @returns when it is to start; undefined where it does not
   */
  async decide(waiting: RecoveryWaiting, agent: RecoveringAgent | undefined): Promise<number | undefined> {
    const { store } = this.parts;
    const { threadId, runId } = waiting;
    const verdict = await this.verdict(waiting, agent);
    if (verdict?.is === "go") {
      await store.updateWaiting(threadId, runId, { notBefore: verdict.at });
      this.signals.waitingChangedHere(threadId);
      return verdict.at;
    }
    await this.end(waiting, verdict);
    return undefined;
  }

  /** Somebody decided that a recovery does not go on. @returns false if it does not wait any more */
  cancel(waiting: RecoveryWaiting): Promise<boolean> {
    return this.end(waiting, gaveUp(waiting, "cancelled"));
  }

  /** The thread refuses what it repeats, and would do so each time. @returns false if it does not wait any more */
  refused(waiting: RecoveryWaiting): Promise<boolean> {
    return this.end(waiting, UNREADABLE);
  }

  private async end(waiting: RecoveryWaiting, note: RecoveryNote | undefined): Promise<boolean> {
    const isEnded = await this.parts.store.endRecovery(waiting, note);
    if (isEnded) this.signals.waitingChangedHere(waiting.threadId);
    return isEnded;
  }

  /**
   * The input of the run that goes on. It is judged once more: its row may be old, and somebody may have changed it.
   *
   * @param agent see {@link decide}; called unless the thread went on
   * @returns undefined if it does not go on: it waits no more. Errors: those of the store, and of `agent`
   */
  async input(
    waiting: RecoveryWaiting,
    agent: () => Promise<RecoveringAgent | undefined>,
  ): Promise<RunAgentInput | undefined> {
    const { threadId, runId, of } = waiting;
    const broken = await this.brokenRun(threadId, of);
    if (broken === undefined) {
      await this.end(waiting, gaveUp(waiting, "went-on"));
      return undefined;
    }
    const verdict = this.judge(waiting, broken, await agent());
    if (verdict?.is !== "go") {
      await this.end(waiting, verdict);
      return undefined;
    }
    const { resume, again = {} } = broken.input;
    return {
      tools: [],
      context: [],
      forwardedProps: {},
      ...again,
      threadId,
      runId,
      // The thread has them, and its state.
      messages: [],
      ...(resume !== undefined && { resume }),
    };
  }

  /** Undefined: nobody recovers the agent's runs any more, or the run is another device's. */
  private async verdict(waiting: RecoveryWaiting, agent: RecoveringAgent | undefined): Promise<Verdict | undefined> {
    const { threadId, of, ofIndex, agentId } = waiting;
    if (this.parts.recovery.policyOf?.(agentId) === undefined) return undefined;
    if (agent === undefined) return UNREADABLE;
    try {
      const broken = await this.brokenRun(threadId, of);
      if (broken === undefined) return gaveUp(waiting, "went-on");
      if (!mayRecover(this.parts.recovery, broken.row)) return undefined;
      const closing = await this.parts.store.closing(threadId, ofIndex);
      return this.judge(waiting, broken, agent, closing && retryAfterOf(closing.terminal));
    } catch (error) {
      // Any host would fail in it.
      if (isUnreadable(error)) return UNREADABLE;
      throw error;
    }
  }

  /** @returns undefined: nobody recovers the agent's runs */
  private judge(
    { agentId }: RecoveryWaiting,
    { row, startFor }: BrokenRun,
    agent: RecoveringAgent | undefined,
    retryAfterMs?: number,
  ): Verdict | undefined {
    const policy = this.parts.recovery.policyOf?.(agentId);
    if (policy === undefined) return undefined;
    // No other agent is given the thread.
    if (agent === undefined || row.agentId !== agentId) return UNREADABLE;
    const { started } = startFor(agent);
    return verdictOf({
      policy,
      number: row.attempt?.number ?? 1,
      started: started.map(({ name }) => name),
      repeatable: new Set([...(policy.repeatableTools ?? []), ...agent.repeatableTools]),
      retryAfterMs,
      endedAt: row.endedAt ?? row.startedAt,
    });
  }

  private async brokenRun(threadId: string, of: string): Promise<BrokenRun | undefined> {
    const { store } = this.parts;
    const head = await store.head(threadId);
    if (head === undefined || head.deleted === true || head.live !== undefined) return undefined;
    return brokenRunOf(store, this.history.log, threadId, await this.history.base(head), of);
  }
}

const UNREADABLE: RecoveryNote = { is: "ask", why: "unreadable" };

const gaveUp = ({ attempt }: RecoveryWaiting, why: GiveUpReason): RecoveryNote => ({
  is: "gave-up",
  why,
  attempts: (attempt?.number ?? 2) - 1,
});
