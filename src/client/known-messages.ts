import type { BaseEvent, Message } from "@ag-ui/client";
import { messageIdsOf } from "../run/message-ids.js";

/** Which messages the thread has, as far as this agent was told: only the others are sent. */
export class KnownMessages {
  /** Ids that the thread has. */
  private readonly ids = new Set<string>();
  /** Those of them that came since the agent's list was last looked at. */
  private readonly told = new Set<string>();
  /** Ids that it had, as far as it does not have them any more. */
  private readonly former = new Set<string>();
  /** What the agent's own list has shown: ids, with the content of what a person wrote and may edit. */
  private readonly shown = new Map<string, string | undefined>();

  /** Notes what an event from the host says that the thread has. */
  note(event: BaseEvent): void {
    for (const id of messageIdsOf(event)) {
      this.ids.add(id);
      this.told.add(id);
    }
  }

  /** The thread has never had a message of this id. */
  isUnsent(id: string): boolean {
    return !this.ids.has(id) && !this.former.has(id);
  }

  /** The thread is told whole, from now on: what it had before is to be sent again where it is wanted again. */
  beginAnew(): void {
    for (const id of this.ids) this.former.add(id);
    this.ids.clear();
    this.told.clear();
    this.shown.clear();
  }

  /**
   * What the agent now shows of the thread.
   *
   * @param what `all`: what was changed here went with the run that has ended. `told`: only what came since the last call;
   *   what was changed before that still is to be sent
   */
  show(messages: readonly Message[], what: "all" | "told"): void {
    if (what === "all") this.shown.clear();
    const now = what === "all" ? this.ids : this.told;
    for (const message of messages) if (now.has(message.id)) this.noteShown(message);
    this.told.clear();
  }

  /** Of the thread's earlier part, shown from now on. */
  load(messages: readonly Message[]): void {
    for (const message of messages) {
      this.ids.add(message.id);
      this.noteShown(message);
    }
  }

  /** The messages that the thread does not have yet; undefined where the agent's history was changed. */
  news(messages: readonly Message[]): readonly Message[] | undefined {
    const held = new Map(messages.map((message) => [message.id, message]));
    for (const [id, written] of this.shown) {
      const message = held.get(id);
      if (message === undefined || writtenIn(message) !== written) return undefined;
    }
    return messages.filter((message) => !this.ids.has(message.id));
  }

  /**
   * Ids of those that were shown and are not held any more.
   *
   * @param isWhole nothing stands before the messages that are held: a list without any of what was shown was cleared, and
   *   is no edit
   */
  cut(messages: readonly Message[], isWhole: boolean): string[] {
    const held = new Set(messages.map(({ id }) => id));
    const cut = [...this.shown.keys()].filter((id) => !held.has(id));
    return isWhole && cut.length === this.shown.size ? [] : cut;
  }

  /** Something that the thread has was taken out of the messages. */
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
    // Clients send none of those, so that one that is not sent says nothing.
    if (message.role !== "activity") this.shown.set(message.id, writtenIn(message));
  }
}

const writtenIn = (message: Message): string | undefined =>
  message.role === "user" ? JSON.stringify(message.content) : undefined;
