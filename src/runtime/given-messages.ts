import type { BaseEvent, Message } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { messageIdsOf } from "../run/message-ids.js";

/** So many ids are kept in all: those of the threads that were asked for last. */
const MAX_IDS = 100_000;

/**
 * Which messages of which threads each page has: what it sent last, and what it was given since. What it lacks of them
 * later, it has cut; what it never had, it merely lacks.
 */
export class GivenMessages {
  /** By page and thread, the last one used at the end. */
  private readonly given = new Map<string, Set<string>>();
  private count = 0;

  /** @returns is to be called with each event of the thread that the page is given */
  noting(page: string, threadId: string): (event: BaseEvent) => void {
    const key = keyOf(page, threadId);
    return (event) => {
      if (event.type === EventType.MESSAGES_SNAPSHOT) this.remove(key);
      this.add(key, messageIdsOf(event));
    };
  }

  /** The page has started a run with these messages. Who sends nothing of what it was given sends only what is new. */
  sent(page: string, threadId: string, messages: readonly Message[]): void {
    const key = keyOf(page, threadId);
    const given = this.given.get(key);
    if (given !== undefined && messages.some(({ id }) => given.has(id))) this.remove(key);
    this.add(
      key,
      messages.map(({ id }) => id),
    );
  }

  /**
   * Of what the page has of the thread, the ids of what it does not send; none where it sends nothing of it.
   *
   * @returns undefined where nothing is known of the page
   */
  cutOf(page: string, threadId: string, sent: readonly Message[]): readonly string[] | undefined {
    const given = this.given.get(keyOf(page, threadId));
    if (given === undefined) return undefined;
    const held = new Set(sent.map(({ id }) => id));
    const cut = [...given].filter((id) => !held.has(id));
    return cut.length === given.size ? [] : cut;
  }

  private add(key: string, messageIds: readonly string[]): void {
    if (messageIds.length === 0) return;
    const ids = this.given.get(key) ?? new Set<string>();
    this.remove(key);
    for (const id of messageIds) ids.add(id);
    this.given.set(key, ids);
    this.count += ids.size;
    for (const oldest of this.given.keys()) {
      if (this.count <= MAX_IDS) return;
      this.remove(oldest);
    }
  }

  private remove(key: string): void {
    this.count -= this.given.get(key)?.size ?? 0;
    this.given.delete(key);
  }
}

const keyOf = (page: string, threadId: string): string => JSON.stringify([page, threadId]);
