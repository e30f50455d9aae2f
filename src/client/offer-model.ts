import { Subscription } from "rxjs";
import { loaded } from "../run/loaded.js";
import { checkKind, checkNames, FLAG, FUNCTION, ID, type Names } from "../run/options.js";
import type { HostLink } from "./host-link.js";
import { hostStream } from "./host-stream.js";
import type { OfferedModel } from "./page-model.js";
import { asError, readUntilDone } from "./read-until-done.js";
import type { OfferTo } from "./serve-model.js";

const isModel = (given: unknown): boolean => {
  const { specificationVersion, doStream } = (given ?? {}) as { specificationVersion?: unknown; doStream?: unknown };
  return specificationVersion === "v4" && typeof doStream === "function";
};

const NAMES: Names<OfferedModel> = {
  model: [isModel, "a language model of the AI SDK, specificationVersion v4 (wrapLanguageModel makes one of an older)"],
  continues: FLAG,
  concurrent: FLAG,
  failed: FUNCTION,
};

/** See `RuntimeConnection.offerModel`. What answers requests is loaded when it is called. */
export function offerModel(link: HostLink, name: string, offer: OfferedModel): () => void {
  checkKind("name", name, ID);
  checkNames(offer, NAMES, { of: "offerModel", isRequired: true });
  checkKind("model", offer.model, NAMES.model);
  const { model, continues = model.continues ?? false, concurrent = model.concurrent ?? false } = offer;
  const life = new Subscription();
  const failed = (error: unknown): void => offer.failed?.(asError(error));
  const begin = async (): Promise<void> => {
    const { serveModel } = await loaded(import("./serve-model.js"));
    if (life.closed) return;
    // Handed over, not imported there: a bundler would keep it in pages that offer nothing.
    const offerTo: OfferTo = (visible, begun) =>
      hostStream(link, (port, post) => {
        begun(post);
        return link.callOnce("offerModel", { model: name, continues, visible: visible() }, port);
      });
    life.add(serveModel(model, concurrent, offerTo, failed));
  };
  life.add(readUntilDone(begin, failed));
  return () => life.unsubscribe();
}
