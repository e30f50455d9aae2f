import type { Observable } from "rxjs";

/**
 * A language model of the AI SDK (`LanguageModelV4`), by what is used of it. Models of an older interface are brought to it
 * by `wrapLanguageModel({ model, middleware: [] })` of `ai`.
 */
export interface PageModel {
  readonly specificationVersion: "v4";
  /** Given the call options of the AI SDK, with an `abortSignal` and without headers. */
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream<{ readonly type: string }> }>;
  /** It goes on with an assistant message that ends the prompt, without repeating it. Default false. */
  readonly continues?: boolean;
  /**
   * It takes several calls at the same time, each with a signal of its own. Default false: they are made one after the other,
   * as models that run in a page need it.
   */
  readonly concurrent?: boolean;
  /** Where it has one, it is offered only while `is` is `ready`; nothing is downloaded for the sake of a request. */
  readonly status$?: Observable<{ readonly is: string }>;
}

/** A language model that a page offers, and how. */
export interface OfferedModel {
  readonly model: PageModel;
  /** See {@link PageModel.continues}, which is the default. */
  readonly continues?: boolean;
  /** See {@link PageModel.concurrent}, which is the default. */
  readonly concurrent?: boolean;
  /** Called with why the offer failed. It is made again, except after `refused` and `invalid-input`. */
  readonly failed?: (error: Error) => void;
}
