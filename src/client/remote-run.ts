import type { BaseEvent } from "@ag-ui/client";
import { from, mergeMap, Observable, type Subscriber, type Subscription } from "rxjs";
import { unpackChunk } from "../run/pack.js";
import { withBase } from "../wire/frames.js";
import type { Frame, LiveRun, RunRequest } from "../wire/shapes.js";
import { attachFrames, runFrames } from "./frames.js";
import type { HostLink } from "./host-link.js";

/** Each event as it was recorded, and what comes with them. */
function eventsOf(frame: Frame): readonly BaseEvent[] {
  if (frame.type !== "chunk") return [];
  const events = unpackChunk(frame.chunk).map(({ event }) => event);
  return withBase(frame.base, events);
}

/**
 * Starts a run in the host, at the call. Who subscribes before the host has answered is sent the run as it streams; who
 * comes later reads it from the log. So this tab keeps no event for a subscriber that may never come: before the answer
 * there is none, and after it the host sends nothing that nobody has asked for.
 */
export function remoteRun(link: HostLink, request: RunRequest): Observable<BaseEvent> {
  const { threadId, agentId } = request;
  let first: Subscriber<BaseEvent> | undefined;
  let answered = false;
  let starting: Subscription | undefined;
  const started = new Promise<LiveRun>((resolve, reject) => {
    const frames$ = runFrames(link, request, (run) => {
      answered = true;
      resolve(run);
      if (first === undefined) starting?.unsubscribe();
    });
    starting = frames$.pipe(mergeMap(eventsOf)).subscribe({
      next: (event) => first?.next(event),
      error: (error: unknown) => {
        answered = true;
        reject(error);
        first?.error(error);
      },
      complete: () => first?.complete(),
    });
  });
  // Who never subscribes is not told of a refusal.
  started.catch(() => undefined);

  return new Observable<BaseEvent>((subscriber) => {
    if (!answered && first === undefined) {
      first = subscriber;
      return () => {
        first = undefined;
        // Before the answer it goes on: the run is asked for, whoever listens.
        if (answered) starting?.unsubscribe();
      };
    }
    return from(started)
      .pipe(
        mergeMap(({ runId, runIndex, epoch }) =>
          attachFrames(link, { threadId, agentId, runId, after: { runIndex, seq: -1, epoch }, follow: false }),
        ),
        mergeMap(eventsOf),
      )
      .subscribe(subscriber);
  });
}
