import type { BaseEvent } from "@ag-ui/client";
import { Observable } from "rxjs";
import { abortWith } from "../../platform/abort.js";
import type { RunFeed } from "../../run/run-feed.js";
import type { ConnectedEvents } from "../../run/contract.js";
import { isSameDatabase } from "../../run/epochs.js";
import { RunnerError } from "../../run/errors.js";
import { unpackChunk } from "../../run/pack.js";
import type { Cursor } from "../../run/types.js";
import type { Frame } from "../../wire/shapes.js";
import { withBase } from "../../wire/frames.js";
import { threadEvents } from "../../wire/thread-events.js";
import { ownEvent } from "../agent/accept.js";
import { feedOf, refuseLocked, toLiveRunInfo, type AttachContext } from "./attach.js";
import { baselineFor, wholeBaseline, type Asked } from "../history/baseline.js";
import { refOf, type LiveRun, type RunRef } from "../live/live-run.js";
import { tailRun } from "./tail.js";

/** A run that was found in the log may be another device's, which is written down here. */
const feedOfRun = (context: AttachContext, run: LiveRun, ref: RunRef): RunFeed | undefined =>
  run.isHere ? run.feed : feedOf(context, ref);

/** A run's events from the first one, for each subscriber; unsubscribing does not stop the run. */
export const eventsOfRun = (context: AttachContext, run: LiveRun, asked: Asked): Observable<BaseEvent> =>
  new Observable<BaseEvent>((subscriber) =>
    // Without a subscriber, a refusal is not reported and is no unhandled rejection.
    pump(subscriber, async (signal) => {
      for await (const frame of framesOfRun(context, run, asked, signal)) {
        if (frame.type !== "chunk") continue;
        const events = unpackChunk(frame.chunk).map(({ event }) => event);
        for (const event of withBase(frame.base, events)) subscriber.next(ownEvent(event));
      }
    }),
  );

/** Frames of one run, from its first event to its settled end. */
export async function* framesOfRun(
  context: AttachContext,
  run: LiveRun,
  asked: Asked,
  signal: AbortSignal,
): AsyncGenerator<Frame, void> {
  const ref = await run.started;
  const base = await baselineFor(context, run, asked);
  yield { type: "run", run: toLiveRunInfo(ref) };
  yield* framesBehind(context, ref, { feed: feedOfRun(context, run, ref), base }, signal, () => failureOf(run));
}

/**
 * Frames of one logged run, on any branch, from its first event or from `after` to its settled end. Throws RunnerError
 * `deleted` where there is no such run, or its events are gone.
 */
export async function* framesOfRecorded(
  context: AttachContext,
  { threadId, runId, after }: { readonly threadId: string; readonly runId: string; readonly after?: Cursor },
  until: AbortSignal,
): AsyncGenerator<Frame, void> {
  const reading = abortWith(until, context.closed);
  const { signal } = reading;
  try {
    const { store } = context.parts;
    await refuseLocked(context, threadId);
    // Several runs may have the id: the cursor says which.
    const row = after === undefined ? await store.runById(threadId, runId) : await store.run(threadId, after.runIndex);
    const isThis =
      after === undefined ||
      (row?.runId === runId && after.epoch <= row.epoch && isSameDatabase(after.epoch, row.epoch));
    if (row === undefined || !isThis) throw new RunnerError("deleted", { threadId, runId });
    const ref = refOf(row);
    context.recovery.watch((await store.head(threadId))?.holder);
    const feed = feedOf(context, ref);
    const afterSeq = after?.seq ?? -1;
    const base = afterSeq < 0 ? await wholeBaseline(context, ref) : [];
    if (afterSeq < 0) yield { type: "run", run: toLiveRunInfo(ref) };
    yield* framesBehind(context, ref, { feed, afterSeq, base }, signal);
  } catch (error) {
    // A read in flight fails when its host closes: the next host goes on.
    if (!signal.aborted) throw error;
  } finally {
    reading.abort();
  }
}

/** @param failure why the run failed for its reader, whatever its end in the log */
async function* framesBehind(
  context: AttachContext,
  ref: RunRef,
  { feed, afterSeq = -1, base }: { feed: RunFeed | undefined; afterSeq?: number; base: readonly BaseEvent[] },
  signal: AbortSignal,
  failure?: () => { readonly error: unknown } | undefined,
): AsyncGenerator<Frame, void> {
  const end = yield* tailRun(context, ref, feed, afterSeq, signal, base);
  const { runIndex, runId } = ref;
  const failed = end === undefined || end.is === "settled" ? failure?.() : end;
  if (failed !== undefined) throw failed.error;
  if (end?.is === "settled") yield { type: "settled", runIndex, runId, status: end.status };
  else if (!signal.aborted) throw deleted(ref);
  if (!signal.aborted) yield { type: "end" };
}

/** The events of an attachment that is opened for each subscriber. */
export const eventsOfFrames = (
  threadId: string,
  open: (signal: AbortSignal) => AsyncGenerator<Frame, void>,
): Observable<ConnectedEvents> =>
  new Observable<ConnectedEvents>((subscriber) =>
    pump(subscriber, async (signal) => {
      const eventsOf = threadEvents(threadId);
      for await (const frame of open(signal)) {
        const part = eventsOf(frame);
        if (part !== undefined) subscriber.next({ ...part, events: part.events.map(ownEvent) });
      }
    }),
  );

const deleted = ({ threadId, runId }: RunRef): RunnerError => new RunnerError("deleted", { threadId, runId });

/** Why a run failed for its caller: its host could not write any further, even if the log has an end of it by now. */
function failureOf(run: LiveRun): { readonly error: unknown } | undefined {
  const { state } = run.feed;
  return state.is === "lost" && state.error !== undefined ? state : undefined;
}

/** Runs `work` for one subscriber; its unsubscribing aborts the work. */
function pump(
  subscriber: { readonly complete: () => void; readonly error: (error: unknown) => void },
  work: (signal: AbortSignal) => Promise<void>,
): () => void {
  const reading = new AbortController();
  work(reading.signal).then(
    () => subscriber.complete(),
    (error: unknown) => subscriber.error(error),
  );
  return () => reading.abort();
}
