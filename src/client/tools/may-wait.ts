import type { AgentSubscriber } from "@ag-ui/client";
import { distinctUntilChanged, Observable, Subscription } from "rxjs";
import type { LocalAgent } from "../local-agent.js";

/**
 * The agent's thread while tool calls of it may wait: nothing runs, and messages since somebody wrote have calls without
 * results. Else undefined.
 */
export const mayWait = (agent: LocalAgent): Observable<string | undefined> =>
  new Observable<string | undefined>((subscriber) => {
    let isIdle = false;
    const look = (): void => subscriber.next(isIdle && hasUnanswered(agent) ? agent.threadId : undefined);
    const hooks: AgentSubscriber = {
      onMessagesChanged: () => {
        if (isIdle) look();
      },
      onRunFinalized: ({ input }) => {
        if (input.runId !== agent.refused) look();
      },
    };
    const subscription = new Subscription();
    subscription.add(
      agent.run$.subscribe((run) => {
        isIdle = run.is === "idle" && run.gone === undefined;
        look();
      }),
    );
    const { unsubscribe } = agent.subscribe(hooks);
    subscription.add(unsubscribe);
    return subscription;
  }).pipe(distinctUntilChanged());

/** Whether messages since somebody wrote have a call without a result. Which of them wait, only the host knows. */
export function hasUnanswered(agent: LocalAgent): boolean {
  const { messages, hasEarlier } = agent;
  const answered = new Set<string>();
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]!;
    // What the page shows already is not yet the thread's: the host may refuse it.
    if (message.role === "user" && agent.isSent(message.id)) return false;
    if (message.role === "tool" && agent.isSent(message.id)) answered.add(message.toolCallId);
    if (message.role !== "assistant") continue;
    if ((message.toolCalls ?? []).some(({ id }) => !answered.has(id))) return true;
  }
  // The call may stand before the first message that is loaded.
  return hasEarlier;
}
