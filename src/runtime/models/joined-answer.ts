import type { ModelCall, ModelPart } from "../../wire/model-frames.js";

/** Parts that are no content: they come once, from the first tab. */
const HEADERS: ReadonlySet<string> = new Set(["stream-start", "response-metadata", "raw"]);
/** Parts that another tab's model can go on behind. */
const TEXT: ReadonlySet<string> = new Set(["text-start", "text-delta", "text-end"]);

/** One answer that several tabs give, one after the other: what each says is joined to what the ones before it said. */
export class JoinedAnswer {
  /** The text so far. */
  private text = "";
  /** The id of the text block that is open, as the reader knows it. */
  private open: string | undefined;
  private headed = false;
  private begun = false;
  private isTextOnly = true;
  private finished = false;
  /** How many tabs have been asked. */
  private tab = 0;
  /** This tab goes on with what another one has said. */
  private isFurther = false;
  /** The ids of this tab's text blocks, as the reader knows them. */
  private ids = new Map<string, string>();

  constructor(private readonly call: ModelCall) {}

  /** Whether the reader has something of the answer. */
  get hasBegun(): boolean {
    return this.begun;
  }

  /** Whether the reader has all of it: a tab that is lost then is asked nothing more. */
  get isFinished(): boolean {
    return this.finished;
  }

  /** Whether another tab can go on: by asking anew as long as there is no text, else behind the text. */
  get mayMove(): boolean {
    return this.isTextOnly;
  }

  /** Whether the next tab's model must go on behind a text. */
  get needsContinuing(): boolean {
    return this.text !== "";
  }

  /** What the next tab is asked. */
  next(): ModelCall {
    this.tab++;
    this.ids = new Map();
    this.isFurther = this.text !== "";
    if (!this.isFurther) return this.call;
    const said = { role: "assistant", content: [{ type: "text", text: this.text }] };
    return { ...this.call, prompt: [...this.call.prompt, said] };
  }

  /** @returns what the reader is given for a part that the current tab sent */
  take(part: ModelPart): readonly ModelPart[] {
    const { type } = part;
    if (HEADERS.has(type)) {
      if (this.tab > 1 && this.headed) return [];
      this.headed = true;
      return [part];
    }
    this.begun = true;
    if (!TEXT.has(type)) {
      // An open text that this tab did not go on with.
      const isLeft = this.open !== undefined && ![...this.ids.values()].includes(this.open);
      const closing: readonly ModelPart[] = isLeft ? [{ type: "text-end", id: this.open! }] : [];
      if (isLeft) this.open = undefined;
      if (type === "finish") this.finished = true;
      else if (type !== "error") this.isTextOnly = false;
      return [...closing, part];
    }
    const own = String(part["id"]); // checked when it came
    if (type === "text-start") {
      const goesOn = this.open !== undefined && this.ids.size === 0;
      const id = goesOn ? this.open! : this.isFurther ? `${own}-${this.tab}` : own;
      this.ids.set(own, id);
      this.open = id;
      return goesOn ? [] : [{ ...part, id }];
    }
    const id = this.ids.get(own) ?? own;
    if (type === "text-end") {
      if (this.open === id) this.open = undefined;
    } else this.text += String(part["delta"]);
    return [{ ...part, id }];
  }
}
