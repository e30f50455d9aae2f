/**
 * The browser's own language model (https://webmachinelearning.github.io/prompt-api/), by what is used of it. Chrome and
 * Edge have it, in pages only.
 */
export interface PromptApi {
  availability(options?: PromptApiOptions): Promise<string>;
  /** Downloads the model where it is not there yet; that needs a click or a key press just before. */
  create(options?: PromptApiCreateOptions): Promise<PromptApiSession>;
}

/** What a session is for, and how it samples. `availability` and `create` must be given the same. */
export interface PromptApiOptions {
  readonly expectedInputs?: readonly PromptApiExpected[];
  readonly expectedOutputs?: readonly PromptApiExpected[];
  readonly samplingMode?: string;
  /** Only in extensions, as `topK`. */
  readonly temperature?: number;
  readonly topK?: number;
}

/** A kind of content, and the languages of its texts (BCP 47). */
export interface PromptApiExpected {
  readonly type: "text" | "image" | "audio";
  readonly languages?: readonly string[];
}

export interface PromptApiCreateOptions extends PromptApiOptions {
  readonly initialPrompts?: readonly PromptApiMessage[];
  readonly signal?: AbortSignal;
  readonly monitor?: (monitor: EventTarget) => void;
}

export interface PromptApiSession {
  promptStreaming(
    messages: readonly PromptApiMessage[],
    options?: { readonly signal?: AbortSignal; readonly responseConstraint?: object },
  ): ReadableStream<string>;
  clone(options?: { readonly signal?: AbortSignal }): Promise<PromptApiSession>;
  destroy(): void;
}

export interface PromptApiMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: readonly PromptApiContent[];
  /** The model goes on with this message, the last one. */
  readonly prefix?: boolean;
}

export interface PromptApiContent {
  readonly type: "text" | "image" | "audio";
  readonly value: string | Uint8Array;
}
