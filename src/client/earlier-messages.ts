import type { Message } from "@ag-ui/client";
import type { MessagePage } from "../wire/shapes.js";

/** The part of a thread before the messages that an agent has: what is loaded of it when somebody scrolls up. */
export class EarlierMessages {
  /** The first message that was loaded; undefined where the thread has none before those that the agent has. */
  private first: string | undefined;
  /** Ids of those that were loaded since the last snapshot. */
  private readonly loaded = new Set<string>();
  private loading: Promise<readonly Message[]> | undefined;
  private moved = false;

  /** The id before which the next page ends; undefined where there is none. */
  get before(): string | undefined {
    return this.first;
  }

  /** The thread was rewritten, and what stands before the messages that the agent has is not known any more. */
  get isMoved(): boolean {
    return this.moved;
  }

  /**
   * An agent tells the messages of the thread, which takes those away that it does not tell of.
   *
   * @param held the messages of the thread that there are
   */
  retold(messages: readonly Message[], held: readonly Message[]): void {
    if (this.first === undefined) return;
    // What an agent leaves out of these stays.
    const first = held.find(({ role }) => role !== "reasoning" && role !== "activity");
    const isTold = (it: string): boolean => messages.some(({ id }) => id === it);
    if (first === undefined || !isTold(first.id)) this.moved = true;
    // The page began with a message that somebody edited.
    else if (!isTold(this.first)) this.first = first.id;
  }

  isLoaded(id: string): boolean {
    return this.loaded.has(id);
  }

  /** A snapshot takes the place of all messages. @param first its first message, where the thread has others before it */
  begin(first: string | undefined): void {
    this.first = first;
    this.moved = false;
    this.loaded.clear();
  }

  /**
   * Loads the page before the first message, once at a time.
   *
   * @param put called with the messages, unless a snapshot came meanwhile
   */
  load(
    read: (before: string) => Promise<MessagePage>,
    put: (messages: readonly Message[]) => void,
  ): Promise<readonly Message[]> {
    this.loading ??= this.loadNow(read, put).finally(() => (this.loading = undefined));
    return this.loading;
  }

  private async loadNow(
    read: (before: string) => Promise<MessagePage>,
    put: (messages: readonly Message[]) => void,
  ): Promise<readonly Message[]> {
    const { first } = this;
    if (first === undefined) return [];
    const { messages, earlier } = await read(first);
    if (this.first !== first) return [];
    this.first = earlier ? (messages[0]?.id ?? first) : undefined;
    for (const { id } of messages) this.loaded.add(id);
    put(messages);
    return messages;
  }

  copy(): EarlierMessages {
    const copy = new EarlierMessages();
    copy.first = this.first;
    copy.moved = this.moved;
    return copy;
  }
}
