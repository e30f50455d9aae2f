import { type AGUIEvent, EventType, type RunAgentInput } from "@ag-ui/client";

/**
 * An agent of the demo that a test can hold: while a lock called `hold <threadId> <pattern>` is held when a run of the
 * thread starts, the run waits for that lock once what it has said matches the pattern. A lock, not a message: it is in
 * force before the agent is loaded, and it ends with the tab that holds it.
 */
export async function* held(
  { threadId }: RunAgentInput,
  { signal }: { readonly signal: AbortSignal },
  events: AsyncIterable<AGUIEvent>,
): AsyncGenerator<AGUIEvent> {
  const prefix = `hold ${threadId} `;
  const locks = (await navigator.locks.query()).held ?? [];
  let lock = locks.find(({ name }) => name?.startsWith(prefix))?.name;
  let said = "";
  for await (const event of events) {
    yield event;
    if (lock === undefined || event.type !== EventType.TEXT_MESSAGE_CONTENT) continue;
    said += String(event["delta"]);
    if (!new RegExp(lock.slice(prefix.length)).test(said)) continue;
    await navigator.locks
      .request(lock, { mode: "shared", signal }, () => undefined)
      .catch((error: unknown) => {
        // Stopped meanwhile: the agent hears of that itself.
        if (!signal.aborted) throw error;
      });
    lock = undefined;
  }
}
