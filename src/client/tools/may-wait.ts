import type { AgentSubscriber } from "@ag-ui/client";
import { distinctUntilChanged, Observable, Subscription } from "rxjs";
import type { LocalAgent } from "../local-agent.js";

/** Whether tool calls may wait: nothing runs, and messages since somebody wrote have calls without results. */
export const mayWait = (agent: LocalAgent): Observable<boolean> =>
  new Observable<boolean>((subscriber) => {
    let isIdle = false;
    const look = (): void => subscriber.next(isIdle && hasUnanswered(agent));
    const hooks: AgentSubscriber = {
      onMessagesChanged: () => {
        if (isIdle) look();
      },
      onRunFinalized: look,
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
export function hasUnanswered({ messages, hasEarlier }: LocalAgent): boolean {
  const answered = new Set<string>();
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]!;
    if (message.role === "user") return false;
    if (message.role === "tool") answered.add(message.toolCallId);
    if (message.role !== "assistant") continue;
    if ((message.toolCalls ?? []).some(({ id }) => !answered.has(id))) return true;
  }
  // The call may stand before the first message that is loaded.
  return hasEarlier;
}
