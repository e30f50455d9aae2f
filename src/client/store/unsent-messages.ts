import type { ContentPart, UserMessage } from "@ag-ui/core";
import { partOfFile } from "./attachments.js";

type Content = UserMessage["content"];

/** How long a message waits for the history: while its run is live, none comes. In ms. */
const HISTORY_MS = 4_000;

/** Messages that wait for what they need before their run, in the order of the calls: their files, and the history. */
export class UnsentMessages {
  /** Those without files: they are shown behind what has been read. */
  messages: readonly UserMessage[] = [];
  /** Reject what messages wait for. */
  private readonly cancels = new Set<(reason: Error) => void>();
  /** Resolves when the last one waits no more, nor one before it. */
  private last: Promise<unknown> = Promise.resolve();

  /**
   * @param isReading whether the history is being read
   * @param subscribe calls `listener` after changes of that. Returns what ends it
   */
  constructor(
    private readonly isReading: () => boolean,
    private readonly subscribe: (listener: () => void) => () => void,
  ) {}

  /** How many wait. */
  get count(): number {
    return this.cancels.size;
  }

  /** Resolves when the run of the message may begin. Errors: of reading the files; the reason of {@link cancel}. */
  async prepare(message: UserMessage, files: readonly Blob[]): Promise<void> {
    const { last: before } = this;
    let cancel!: (reason: Error) => void;
    const prepared = new Promise<void>((resolve, reject) => {
      cancel = reject;
      const work = async (): Promise<void> => {
        message.content = withParts(message.content, await Promise.all(files.map(partOfFile)));
        await before;
        if (!this.isReading()) return resolve();
        const end = this.subscribe(() => this.isReading() || resolve());
        setTimeout(() => resolve(end()), HISTORY_MS);
      };
      work().catch(reject);
    });
    this.last = prepared.catch(() => before);
    this.cancels.add(cancel);
    if (files.length === 0) this.messages = [...this.messages, message];
    try {
      await prepared;
    } finally {
      this.cancels.delete(cancel);
      this.messages = this.messages.filter((it) => it !== message);
    }
  }

  /** None of them is sent. */
  cancel(reason: Error): void {
    for (const cancel of this.cancels) cancel(reason);
  }
}

function withParts(content: Content, parts: readonly ContentPart[]): Content {
  if (parts.length === 0) return content;
  if (typeof content !== "string") return [...content, ...parts];
  return content === "" ? [...parts] : [{ type: "text", text: content }, ...parts];
}
