import type { BaseEvent } from "@ag-ui/client";
import { from, mergeMap, Observable, type Subscriber, type Subscription } from "rxjs";
import { unpackEntry } from "../run/pack.js";
import { withBase } from "../wire/frames.js";
import type { Frame, LiveRun, RunRequest } from "../wire/shapes.js";
import { attachFrames, runFrames } from "./frames.js";
import type { HostLink } from "./host-link.js";

/** A chunk's events as they were recorded, with the `base` of its frame. */
function eventsOf(frame: Frame): readonly BaseEvent[] {
  if (frame.type !== "chunk") return [];
  const events = frame.chunk.entries.flatMap(unpackEntry);
  return withBase(frame.base, events);
}

/**
 * Starts a run in the host, at the call. The first subscriber before the host has answered gets the run as it streams;
 * later ones read it from the log. So the tab buffers no events for subscribers that may never come: there are none
 * before the answer, and after it the host sends only what somebody asked for.
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
  // Without a subscriber nobody is told of a refusal.
  started.catch(() => undefined);

  return new Observable<BaseEvent>((subscriber) => {
    if (!answered && first === undefined) {
      first = subscriber;
      return () => {
        first = undefined;
        // Before the answer it goes on: the run starts whoever listens.
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
