import {
  defer,
  distinctUntilChanged,
  EMPTY,
  finalize,
  map,
  of,
  retry,
  switchMap,
  timer,
  type Observable,
  type Subscription,
} from "rxjs";
import { sharedController } from "../platform/abort.js";
import { inTurns } from "../platform/in-turns.js";
import { RunnerError } from "../run/errors.js";
import {
  modelErrorData,
  type ModelCall,
  type ModelFrame,
  type OfferNews,
  type OfferOrder,
} from "../wire/model-frames.js";
import { sendFrames } from "../wire/send-frames.js";
import type { PageModel } from "./page-model.js";

/** Retry backoff of an offer that the host did not take: first and longest wait, in ms. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** Codes after which the same offer fails again. */
const FINAL: ReadonlySet<string> = new Set(["refused", "invalid-input", "closed"]);

const isVisible = (): boolean => typeof document === "undefined" || document.visibilityState === "visible";

/**
 * Offers the model to one host after the other: what each of them orders.
 *
 * @param visible whether the page is visible
 * @param begun called for each host, before it is asked, with what posts to it
 */
export type OfferTo = (
  visible: () => boolean,
  begun: (post: (news: OfferNews) => void) => void,
) => Observable<OfferOrder>;

/**
 * Offers a model while it is ready, and answers requests.
 *
 * @param concurrent it takes several requests at the same time
 */
export function serveModel(
  model: PageModel,
  concurrent: boolean,
  offerTo: OfferTo,
  failed: (error: unknown) => void,
): Subscription {
  const asked: Asked = concurrent ? (call) => model.doStream(call) : inTurns(model);
  let post: (news: OfferNews) => void = () => undefined;
  /** Ends the requests of one host. */
  let requests = sharedController();
  const end = (): void => requests.abort();

  const ofHosts$ = defer(() =>
    offerTo(isVisible, (toHost) => {
      end();
      requests = sharedController();
      post = toHost;
    }),
  );
  const offered$ = ofHosts$.pipe(
    finalize(end),
    retry({
      delay: (error: unknown, times) => {
        failed(error);
        if (RunnerError.is(error) && FINAL.has(error.code)) return EMPTY;
        return timer(Math.min(RETRY_MS * 2 ** (times - 1), RETRY_MAX_MS));
      },
      resetOnSuccess: true,
    }),
  );
  const isReady$ = model.status$?.pipe(map(({ is }) => is === "ready")) ?? of(true);
  const orders = isReady$
    .pipe(
      distinctUntilChanged(),
      switchMap((isReady) => (isReady ? offered$ : EMPTY)),
    )
    .subscribe({
      next(order) {
        if (order.type === "ping") return post({ type: "pong" });
        const { call, port } = order;
        void sendFrames(port, (signal) => answer(asked, call, signal), requests.signal);
      },
      error: (error: unknown) => failed(error),
    });

  const look = (): void => post({ type: "visible", visible: isVisible() });
  if (typeof document !== "undefined") {
    document.addEventListener("visibilitychange", look);
    orders.add(() => document.removeEventListener("visibilitychange", look));
  }
  return orders;
}

type Asked = (...call: Parameters<PageModel["doStream"]>) => ReturnType<PageModel["doStream"]>;

/** What a model says to a call, and why it fails. */
async function* answer(asked: Asked, call: ModelCall, signal: AbortSignal): AsyncGenerator<ModelFrame, void> {
  try {
    yield* parts(asked, call, signal);
    yield { type: "end" };
  } catch (error) {
    yield { type: "error", error: modelErrorData(error) };
  }
}

/** Errors: also those that the model's stream has as parts. */
async function* parts(asked: Asked, call: ModelCall, signal: AbortSignal): AsyncGenerator<ModelFrame, void> {
  // The host's library has made it in the shape of the AI SDK.
  const { stream } = await asked({ ...call, abortSignal: signal } as never);
  const reader = stream.getReader();
  // Also a model that does not heed the signal ends.
  const cancel = (): void => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if (value.type === "error") throw (value as { readonly error?: unknown }).error;
      yield { type: "part", part: { ...value } };
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}
