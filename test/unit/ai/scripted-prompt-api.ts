import type {
  PromptApi,
  PromptApiCreateOptions,
  PromptApiMessage,
  PromptApiSession,
} from "../../../src/ai/prompt-api.js";

/** What a prompt says, as text. */
const said = (messages: readonly PromptApiMessage[]): string =>
  messages
    .map(({ role, content, prefix }) => {
      const parts = content.map(({ type, value }) => (type === "text" ? String(value) : `<${type} ${value.length}>`));
      return `${role}${prefix === true ? "…" : ""}: ${parts.join(" ")}`;
    })
    .join(" | ");

/** A browser's language model whose download the test drives, and that says what it was told. */
export class ScriptedPromptApi implements PromptApi {
  creates = 0;
  clones = 0;
  /** Sessions that are there. */
  alive = 0;
  readonly prompts: string[] = [];
  readonly constraints: unknown[] = [];
  /** The kinds of content that sessions take. */
  private expected: ReadonlySet<string> = new Set();
  private monitor: EventTarget | undefined;
  private finish: ((error?: Error) => void) | undefined;
  /** Replaces what it says. */
  says: (prompt: string, signal?: AbortSignal) => AsyncIterable<string> | Iterable<string> = (prompt) => [
    `(${prompt})`,
  ];

  constructor(public is: string) {}

  async availability(): Promise<string> {
    return this.is;
  }

  async create({
    initialPrompts = [],
    monitor,
    signal,
    expectedInputs = [],
  }: PromptApiCreateOptions = {}): Promise<PromptApiSession> {
    this.creates++;
    if (this.is !== "available") {
      this.is = "downloading";
      this.monitor = new EventTarget();
      monitor?.(this.monitor);
      await new Promise<void>((resolve, reject) => (this.finish = (error) => (error ? reject(error) : resolve())));
      this.is = "available";
    }
    signal?.throwIfAborted();
    this.expected = new Set(["text", ...expectedInputs.map(({ type }) => type)]);
    return this.session(initialPrompts);
  }

  progress(loaded: number): void {
    this.monitor?.dispatchEvent(Object.assign(new Event("downloadprogress"), { loaded, total: 1 }));
  }

  /** Ends the download. */
  done(error?: Error): void {
    if (error) this.is = "downloadable";
    this.finish?.(error);
  }

  private session(before: readonly PromptApiMessage[]): PromptApiSession {
    this.check(before);
    this.alive++;
    let messages = before;
    return {
      promptStreaming: (asked, { signal, responseConstraint } = {}) => {
        this.check(asked);
        messages = [...messages, ...asked];
        this.prompts.push(`${said(before)} >> ${said(asked)}`);
        this.constraints.push(responseConstraint);
        const words = this.says(said(asked), signal);
        const texts = Symbol.asyncIterator in words ? words[Symbol.asyncIterator]() : words[Symbol.iterator]();
        return new ReadableStream<string>({
          start: (controller) =>
            signal?.addEventListener("abort", () => controller.error(signal.reason), { once: true }),
          async pull(controller) {
            const next = await texts.next();
            if (next.done === true) controller.close();
            else controller.enqueue(next.value);
          },
        });
      },
      clone: async () => {
        this.clones++;
        return this.session(messages);
      },
      destroy: () => void this.alive--,
    };
  }

  private check(messages: readonly PromptApiMessage[]): void {
    const wrong = messages.flatMap(({ content }) => content).find(({ type }) => !this.expected.has(type));
    if (wrong !== undefined) throw new DOMException(`${wrong.type} is not supported`, "NotSupportedError");
  }
}
