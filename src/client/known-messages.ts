import type { BaseEvent, Message } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { messageIdsOf } from "../run/message-ids.js";

/** Which messages the thread has, as far as this agent was told; only the others are sent. */
export class KnownMessages {
  /** Ids that the thread has. */
  private readonly ids = new Set<string>();
  /** Those that came since the last {@link show}. */
  private readonly told = new Set<string>();
  /** Ids that it had before the last snapshot. */
  private readonly former = new Set<string>();
  /** Messages that the agent has shown, by id; of user messages the content, which may be edited. */
  private readonly shown = new Map<string, string | undefined>();

  /** Notes the messages that an event from the host brings. */
  note(event: BaseEvent): void {
    const ids = new Set(messageIdsOf(event));
    for (const id of ids) {
      this.ids.add(id);
      this.told.add(id);
    }
    if (event.type !== EventType.MESSAGES_SNAPSHOT) return;
    // What a run takes out (an attempt: results that nobody gave) was removed by nobody here.
    for (const id of this.shown.keys()) if (!ids.has(id)) this.shown.delete(id);
  }

  /** The thread has never had a message of this id. */
  isUnsent(id: string): boolean {
    return !this.ids.has(id) && !this.former.has(id);
  }

  /**
   * A snapshot begins: messages that it lacks are no longer the thread's, and are sent again if they are used again.
   */
  beginAnew(): void {
    for (const id of this.ids) this.former.add(id);
    this.ids.clear();
    this.told.clear();
    this.shown.clear();
  }

  /**
   * Notes what the agent now shows of the thread.
   *
   * @param what `all`: after an own run, which took all changes along. `told`: only what came since the last call;
   *   changes of other messages are still to be sent
   */
  show(messages: readonly Message[], what: "all" | "told"): void {
    if (what === "all") this.shown.clear();
    const now = what === "all" ? this.ids : this.told;
    for (const message of messages) if (now.has(message.id)) this.noteShown(message);
    this.told.clear();
  }

  /** A page of the thread's earlier part is shown from now on. */
  load(messages: readonly Message[]): void {
    for (const message of messages) {
      this.ids.add(message.id);
      this.noteShown(message);
    }
  }

  /** The messages that the thread does not have yet; undefined if the agent's history was edited. */
  news(messages: readonly Message[]): readonly Message[] | undefined {
    const held = new Map(messages.map((message) => [message.id, message]));
    for (const [id, written] of this.shown) {
      const message = held.get(id);
      if (message === undefined || writtenIn(message) !== written) return undefined;
    }
    return messages.filter((message) => !this.ids.has(message.id));
  }

  /**
   * Ids of messages that were shown and are gone.
   *
   * @param isWhole the thread has nothing before `messages`: if all that was shown is gone, the list was cleared, which
   *   is no edit
   */
  cut(messages: readonly Message[], isWhole: boolean): string[] {
    const held = new Set(messages.map(({ id }) => id));
    const cut = [...this.shown.keys()].filter((id) => !held.has(id));
    return isWhole && cut.length === this.shown.size ? [] : cut;
  }

  /** Whether messages of the thread were removed from the list. */
  lacks(messages: readonly Message[]): boolean {
    if (this.cut(messages, false).length > 0) return true;
    return this.ids.size > 0 && !messages.some(({ id }) => this.ids.has(id));
  }

  copy(): KnownMessages {
    const copy = new KnownMessages();
    for (const id of this.ids) copy.ids.add(id);
    for (const id of this.told) copy.told.add(id);
    for (const id of this.former) copy.former.add(id);
    for (const [id, written] of this.shown) copy.shown.set(id, written);
    return copy;
  }

  private noteShown(message: Message): void {
    // Clients send no activities, so a missing one is no edit.
    if (message.role !== "activity") this.shown.set(message.id, writtenIn(message));
  }
}

const writtenIn = (message: Message): string | undefined =>
  message.role === "user" ? JSON.stringify(message.content) : undefined;
