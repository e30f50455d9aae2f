import type { BaseEvent, Message } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { endOf, type Piece, runIdOf } from "../soak/check.js";

/** What a page posts to the test process, as it happens. */
export interface Report {
  readonly load: string;
  readonly threadId: string;
  readonly piece: Piece;
}

/** One request at a time, so that they arrive in order; what comes in the meantime goes with the next. */
export class Reporter {
  private waiting: Report[] = [];
  private sending = false;

  constructor(private readonly url: string) {}

  add(report: Report): void {
    this.waiting.push(report);
    if (!this.sending) void this.send();
  }

  isDone(): boolean {
    return !this.sending;
  }

  private async send(): Promise<void> {
    this.sending = true;
    while (this.waiting.length > 0) {
      await fetch(this.url, { method: "POST", mode: "no-cors", body: JSON.stringify(this.waiting.splice(0)) });
    }
    this.sending = false;
  }
}

export const contentOf = (message: Message): string =>
  "content" in message && typeof message.content === "string" ? message.content : "";

/** What an event tells of the numbers, `runId` being the run that it belongs to. */
export function* piecesOf(event: BaseEvent, runId: string): Generator<Piece> {
  const {
    messageId = "",
    delta,
    messages,
  } = event as BaseEvent & { messageId?: string; delta?: string; messages?: Message[] };
  const end = endOf(event);
  if (end !== undefined) yield { is: "end", runId, end };
  const ofRun = runIdOf(messageId);
  if (event.type === EventType.TEXT_MESSAGE_CONTENT && ofRun !== undefined && delta !== undefined) {
    yield { is: "text", runId: ofRun, text: delta };
  }
  if (event.type !== EventType.MESSAGES_SNAPSHOT || messages === undefined) return;
  const texts: Record<string, string> = {};
  for (const message of messages) {
    const of = runIdOf(message.id);
    if (of !== undefined) texts[of] = contentOf(message);
  }
  yield { is: "snapshot", texts };
}
