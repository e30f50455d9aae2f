import { defined } from "../platform/defined.js";
import { tabLifeLockName } from "../platform/names.js";
import type { Lives } from "../platform/locks.js";
import { abortWith } from "../platform/abort.js";
import { ringOrSilence } from "../platform/bell.js";
import { RunnerError } from "../run/errors.js";
import { equalJson } from "../run/json.js";
import {
  abandonCall,
  answerCall,
  claimCall,
  pendingIn,
  type PendingToolCall,
  type PendingToolCalls,
} from "../storage/pending-tool-calls.js";
import type { ThreadToolCalls, ToolCallAnswer, ToolCallClaim, WaitingToolCall } from "../wire/shapes.js";
import { checkMessages } from "./checks.js";
import type { Signals } from "./live/signals.js";
import type { RunnerParts } from "./parts.js";

/** After so long without a message the log is read: a message of another host may be lost. In ms. */
const SILENCE_MS = 5_000;

const NONE: ThreadToolCalls = { calls: [] };

const shown = ({ toolCallId, name, status, token, followUp, elsewhere }: PendingToolCall): WaitingToolCall => ({
  toolCallId,
  name,
  status,
  ...defined({ token, followUp, elsewhere }),
});

const shownOf = (pending: PendingToolCalls | undefined): ThreadToolCalls =>
  pending === undefined
    ? NONE
    : {
        nextRunId: pending.nextRunId,
        ...defined({ agentId: pending.agentId }),
        calls: pending.calls.map(shown),
      };

/**
 * The calls of front-end tools that wait for a tab: each is claimed in the log before a handler runs, and answered once.
 * A claim lasts as long as its tab; when the tab is gone, whoever watches the thread frees the call.
 */
export class ToolCalls {
  constructor(
    private readonly parts: Pick<RunnerParts, "store" | "clock" | "elsewhere">,
    private readonly signals: Pick<Signals, "bellOf" | "changedHere">,
  ) {}

  /** The calls of a thread, now and after each change, until `signal` aborts. Errors: RunnerError `locked` */
  async *watch(threadId: string, lives: Lives, signal: AbortSignal): AsyncGenerator<ThreadToolCalls, void> {
    const { store, clock } = this.parts;
    await store.readable?.();
    const { bell, release } = this.signals.bellOf(threadId);
    const watched = new Set<string>();
    const watching = abortWith(signal);
    let last: ThreadToolCalls | undefined;
    try {
      while (!signal.aborted) {
        const seen = bell.count;
        const pending = pendingIn(await store.head(threadId));
        for (const { toolCallId, status, token, tabId } of pending?.calls ?? []) {
          if (status !== "claimed" || token === undefined || tabId === undefined || watched.has(token)) continue;
          watched.add(token);
          void lives
            .whenFree(tabLifeLockName(tabId), watching.signal)
            .then((isGone) => (isGone ? this.change(threadId, toolCallId, abandonCall(token)) : undefined))
            // Tried again at the next look: a live run may carry the claim along.
            .catch(() => watched.delete(token));
        }
        const now = shownOf(pending);
        if (!equalJson(now, last)) yield (last = now);
        await ringOrSilence(bell, seen, clock, SILENCE_MS, signal);
      }
    } finally {
      watching.abort();
      release();
    }
  }

  /**
   * Claims a call for a handler of a tab.
   *
   * @param tabId the tab whose end ends the claim
   * @returns false where another tab has it, it was answered, or it was interrupted, or called on another device, and nobody
   *   said that it is to run again, or here. Errors: RunnerError `call-over`
   */
  async claim({ threadId, toolCallId, token, once = false, again = false }: ToolCallClaim, tabId: string) {
    const change = claimCall({ token, tabId, once, again });
    return (await this.change(threadId, toolCallId, (call) => change(call))) !== "refused";
  }

  /** Records a call's result, as the message whose id is the token. Errors: RunnerError `call-over`, `invalid-input` */
  async answer({ threadId, toolCallId, token, by, content, error, followUp = true }: ToolCallAnswer): Promise<void> {
    const message = {
      id: token,
      role: "tool",
      toolCallId,
      content,
      ...(error !== undefined && { error }),
    };
    const [result] = checkMessages([message as Parameters<typeof checkMessages>[0][number]], "result"); // checks it
    if (result?.role !== "tool") throw new RunnerError("invalid-input", { field: "result" });
    const { store, elsewhere } = this.parts;
    if (elsewhere.answer !== undefined) {
      const asked = pendingIn(await store.head(threadId))?.calls.find((call) => call.toolCallId === toolCallId);
      const counts = asked && answerCall(token, by, followUp, result)(asked).is === "changed";
      if (counts === true) await elsewhere.answer({ threadId, result, followUp });
    }
    const done = await this.change(
      threadId,
      toolCallId,
      (call, stored) => answerCall(token, by, followUp, stored)(call),
      result,
    );
    if (done === "refused") throw new RunnerError("call-over", { threadId, toolCallId });
  }

  private async change(...change: Parameters<RunnerParts["store"]["changeToolCall"]>) {
    const done = await this.parts.store.changeToolCall(...change);
    if (done === "changed") this.signals.changedHere(change[0]);
    return done;
  }
}
