/** A browser's language model as the Prompt API has it, driven by a test. */
interface Message {
  readonly role: string;
  readonly content: readonly { readonly value: unknown }[];
  readonly prefix?: boolean;
}

/**
 * Counts as it is asked: "count 20" says "1 2 3 … 20 ". "count 20 hold 5" waits after 5 until {@link goOn}; "hold 0" before
 * it says anything. A prefix is gone on with, and nothing holds it.
 */
export class ScriptedLanguageModel {
  creates = 0;
  /** Prompts that it has begun to answer, and those that were stopped. */
  prompts = 0;
  stopped = 0;
  private goingOn: (() => void)[] = [];
  private monitor: EventTarget | undefined;
  private downloaded: (() => void) | undefined;

  constructor(public is: string) {}

  goOn(): void {
    for (const go of this.goingOn.splice(0)) go();
  }

  progress(loaded: number): void {
    this.monitor?.dispatchEvent(Object.assign(new Event("downloadprogress"), { loaded }));
  }

  done(): void {
    this.is = "available";
    this.downloaded?.();
  }

  readonly api = {
    availability: async () => this.is,
    create: async (options: { readonly monitor?: (monitor: EventTarget) => void } = {}) => {
      this.creates++;
      if (this.is !== "available") {
        // As Chrome asks for it.
        if (!navigator.userActivation.isActive) throw new DOMException("A user gesture is needed", "NotAllowedError");
        this.is = "downloading";
        this.monitor = new EventTarget();
        options.monitor?.(this.monitor);
        await new Promise<void>((resolve) => (this.downloaded = resolve));
      }
      return this.session();
    },
  };

  private session() {
    return {
      promptStreaming: (messages: readonly Message[], options: { readonly signal?: AbortSignal } = {}) =>
        this.answer(messages, options.signal),
      clone: async () => this.session(),
      destroy: () => undefined,
    };
  }

  private answer(messages: readonly Message[], signal?: AbortSignal): ReadableStream<string> {
    this.prompts++;
    const said = (role: string): string =>
      String(messages.findLast((message) => message.role === role)?.content[0]?.value ?? "");
    const [, count = "0", held] = /count (\d+)(?: hold (\d+))?/.exec(said("user")) ?? [];
    const isContinued = messages.at(-1)?.prefix === true;
    let at = isContinued ? said("assistant").trim().split(" ").length : 0;
    const holdAt = held === undefined || isContinued ? undefined : Number(held);
    return new ReadableStream<string>(
      {
        start: (controller) =>
          signal?.addEventListener(
            "abort",
            () => {
              this.stopped++;
              controller.error(signal.reason);
            },
            { once: true },
          ),
        pull: async (controller) => {
          if (at === holdAt) await new Promise<void>((resolve) => this.goingOn.push(resolve));
          if (signal?.aborted === true) return;
          if (at >= Number(count)) controller.close();
          else controller.enqueue(`${++at} `);
        },
      },
      { highWaterMark: 0 },
    );
  }
}
