import type { BaseEvent, Message } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { messageIdsOf } from "../run/message-ids.js";

/** Ids kept in all; the least recently used threads are dropped first. */
const MAX_IDS = 100_000;

/**
 * The messages that each page has of each thread: what it sent last and what it got since. If it later omits one of
 * them, that is a cut; omitting one that it never had is not.
 */
export class GivenMessages {
  /** By page and thread, most recently used last. */
  private readonly given = new Map<string, Set<string>>();
  private count = 0;

  /** @returns a callback for each event of the thread that the page gets */
  noting(page: string, threadId: string): (event: BaseEvent) => void {
    const key = keyOf(page, threadId);
    return (event) => {
      if (event.type === EventType.MESSAGES_SNAPSHOT) this.remove(key);
      this.add(key, messageIdsOf(event));
    };
  }

  /** The page started a run with these messages. If it knew none of them, it sent only new ones. */
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
   * The ids that the page has but did not send; none if it sent nothing that it has.
   *
   * @returns undefined if nothing is known about the page
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
