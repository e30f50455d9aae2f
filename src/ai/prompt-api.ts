/**
 * The browser's own language model (https://webmachinelearning.github.io/prompt-api/), by what is used of it. Chrome and
 * Edge have it, in pages only.
 */
export interface PromptApi {
  /** `available`, `downloadable`, `downloading` or `unavailable`. */
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

/** What a session begins with, and how its making is watched. */
export interface PromptApiCreateOptions extends PromptApiOptions {
  readonly initialPrompts?: readonly PromptApiMessage[];
  readonly signal?: AbortSignal;
  /** Given a target of `downloadprogress` events, whose `loaded` goes from 0 to 1. */
  readonly monitor?: (monitor: EventTarget) => void;
}

/** A conversation with the model. */
export interface PromptApiSession {
  /** The answer, piece by piece. It becomes part of the session. */
  promptStreaming(
    messages: readonly PromptApiMessage[],
    options?: { readonly signal?: AbortSignal; readonly responseConstraint?: object },
  ): ReadableStream<string>;
  /** A session that has read the same. */
  clone(options?: { readonly signal?: AbortSignal }): Promise<PromptApiSession>;
  /** Lets go of what the session holds. */
  destroy(): void;
}

/** A message of a conversation. */
export interface PromptApiMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: readonly PromptApiContent[];
  /** The model goes on with this message, the last one. */
  readonly prefix?: boolean;
}

/** A part of a message; media as bytes. */
export interface PromptApiContent {
  readonly type: "text" | "image" | "audio";
  readonly value: string | Uint8Array;
}
