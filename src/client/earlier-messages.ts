import type { Message } from "@ag-ui/client";
import type { MessagePage } from "../wire/shapes.js";

/** Messages with a page of earlier ones in front, which takes the place of those that are there already. */
export function withPage(page: readonly Message[], messages: readonly Message[]): Message[] {
  const loaded = new Set(page.map(({ id }) => id));
  return [...page, ...messages.filter(({ id }) => !loaded.has(id))];
}

/** The part of a thread before an agent's messages, loaded page by page when somebody scrolls up. */
export class EarlierMessages {
  /** The id of the first message that the agent has; undefined where the thread has nothing before it. */
  before: string | undefined;
  /** The thread was rewritten: what comes before the agent's messages is no longer known. */
  isMoved = false;
  /** Ids of messages that were loaded since the last snapshot. */
  private readonly loaded = new Set<string>();
  private loading: Promise<readonly Message[]> | undefined;

  /**
   * Takes in a MESSAGES_SNAPSHOT of an agent, which removes the messages that it lacks.
   *
   * @param messages those of the snapshot
   * @param held those of the thread that the agent had
   */
  retold(messages: readonly Message[], held: readonly Message[]): void {
    if (this.before === undefined) return;
    // A snapshot that lacks reasoning or activities does not remove them.
    const first = held.find(({ role }) => role !== "reasoning" && role !== "activity");
    const isTold = (it: string): boolean => messages.some(({ id }) => id === it);
    if (first === undefined || !isTold(first.id)) this.isMoved = true;
    // The first message was replaced by an edit.
    else if (!isTold(this.before)) this.before = first.id;
  }

  isLoaded(id: string): boolean {
    return this.loaded.has(id);
  }

  /** A snapshot replaced all messages. @param first its first message, if the thread has others before it */
  begin(first: string | undefined): void {
    this.before = first;
    this.isMoved = false;
    this.loaded.clear();
  }

  /**
   * Loads the page before the first message; a call while one is pending joins it.
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
    const { before } = this;
    if (before === undefined) return [];
    const { messages, earlier } = await read(before);
    if (this.before !== before) return [];
    this.before = earlier ? (messages[0]?.id ?? before) : undefined;
    for (const { id } of messages) this.loaded.add(id);
    put(messages);
    return messages;
  }

  copy(): EarlierMessages {
    const copy = new EarlierMessages();
    copy.before = this.before;
    copy.isMoved = this.isMoved;
    return copy;
  }
}
