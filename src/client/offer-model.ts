import { Subscription, type Observable } from "rxjs";
import { loaded } from "../run/loaded.js";
import { checkKind, checkNames, FLAG, FUNCTION, ID, type Names } from "../run/options.js";
import type { HostLink } from "./host-link.js";
import { readUntilDone } from "./read-until-done.js";

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
  /** Where it has one, it is offered only while `is` is `ready`; nothing is downloaded for the sake of a request. */
  readonly status$?: Observable<{ readonly is: string }>;
}

/** A language model that a page offers, and how. */
export interface OfferedModel {
  readonly model: PageModel;
  /** See {@link PageModel.continues}, which is the default. */
  readonly continues?: boolean;
  /** Called with why the offer failed. It is made again, except after `refused` and `invalid-input`. */
  readonly failed?: (error: Error) => void;
}

const isModel = (given: unknown): boolean => {
  const { specificationVersion, doStream } = (given ?? {}) as { specificationVersion?: unknown; doStream?: unknown };
  return specificationVersion === "v4" && typeof doStream === "function";
};

const NAMES: Names<OfferedModel> = {
  model: [isModel, "a language model of the AI SDK, specificationVersion v4 (wrapLanguageModel makes one of an older)"],
  continues: FLAG,
  failed: FUNCTION,
};

/** See `RuntimeConnection.offerModel`. What answers requests is loaded when it is called. */
export function offerModel(link: HostLink, name: string, offer: OfferedModel): () => void {
  checkKind("name", name, ID);
  checkNames(offer, NAMES, { of: "offerModel", isRequired: true });
  checkKind("model", offer.model, NAMES.model);
  const life = new Subscription();
  const failed = (error: Error): void => offer.failed?.(error);
  const begin = async (): Promise<void> => {
    const { serveModel } = await loaded(import("./serve-model.js"));
    if (!life.closed) life.add(serveModel(link, name, { ...offer, failed }));
  };
  life.add(readUntilDone(begin, failed));
  return () => life.unsubscribe();
}
