import { Subscription } from "rxjs";
import { loaded } from "../run/loaded.js";
import { checkKind, checkNames, FLAG, FUNCTION, ID, type Names } from "../run/options.js";
import type { HostLink } from "./host-link.js";
import type { OfferedModel } from "./page-model.js";
import { readUntilDone } from "./read-until-done.js";

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
