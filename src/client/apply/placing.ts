import type { Message } from "@ag-ui/client";

/**
 * Where messages that the pipeline does not know are placed while it applies runs. It works on the messages that it
 * began with, so those that a person adds meanwhile come behind. Unsent ones go with a later run than the one that is
 * read, so they come behind that.
 *
 * As long as none is unsent, only messages that are not those of the last call are looked at.
 */
export class Placing {
  readonly #begunWith: ReadonlySet<string>;
  /** The result of the last call. */
  #placed: readonly Message[];
  /** Unsent ones among them. */
  #waiting: readonly Message[];
  /** What a person added meanwhile. */
  #added: readonly Message[] = [];

  /**
   * @param begunWith the messages that the pipeline began with
   * @param isUnsent the thread has never had a message with this id
   * @param isOwn whether the pipeline applies a run that took these messages along
   */
  constructor(
    begunWith: readonly Message[],
    private readonly isUnsent: (id: string) => boolean,
    private readonly isOwn: boolean,
  ) {
    this.#begunWith = new Set(begunWith.map(({ id }) => id));
    this.#placed = [...begunWith];
    this.#waiting = this.#unsentIn(begunWith);
  }

  /**
   * @param messages the pipeline's
   * @param held the agent's
   * @returns an array for the agent; may be the pipeline's
   */
  place(messages: Message[], held: readonly Message[]): Message[] {
    const before = this.#placed;
    const isSame = held.length === before.length && held.every((message, n) => message === before[n]);
    if (!isSame) this.#added = this.#unsentIn(held.filter(({ id }) => !this.#begunWith.has(id)));
    if (!this.isOwn) {
      const mayWait =
        this.#waiting.length > 0 || messages.some((message, n) => message !== before[n] && this.isUnsent(message.id));
      this.#waiting = mayWait ? this.#unsentIn(messages) : [];
    }
    const placed = this.#behind(messages);
    this.#placed = [...placed];
    return placed;
  }

  #behind(messages: Message[]): Message[] {
    const waiting = this.isOwn ? [] : this.#waiting;
    if (waiting.length + this.#added.length === 0) return messages;
    const has = new Set(messages.map(({ id }) => id));
    this.#added = this.#unsentIn(this.#added).filter(({ id }) => !has.has(id));
    const late = new Set(waiting);
    return [...messages.filter((message) => !late.has(message)), ...waiting, ...this.#added];
  }

  #unsentIn(messages: readonly Message[]): readonly Message[] {
    return messages.filter(({ id }) => this.isUnsent(id));
  }
}
