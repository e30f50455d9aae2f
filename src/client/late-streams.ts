import { defer, Observable } from "rxjs";
import { Lazy } from "../platform/lazy.js";
import { loaded } from "../run/loaded.js";

/** What reads, runs and follows threads: a page that shows none does without. */
export type Streams = typeof import("./thread-streams.js");

export const streams = new Lazy<Streams>(() => loaded(import("./thread-streams.js")));

/** Loads it ahead of its use. If that fails, the first use tries again. */
export const preloadStreams = (): void => void streams.get().catch(() => undefined);

const late = <T>(loading: Promise<Observable<T>>): Observable<T> =>
  new Observable((subscriber) => {
    loading.then(
      (it$) => it$.subscribe(subscriber),
      (error: unknown) => subscriber.error(error),
    );
  });

/**
 * What `make` makes of it: at once, where it is there. Else it is subscribed to later, also where the subscriber has left by
 * then: a run is asked for, whoever listens (L11).
 */
export const withStreams = <T>(make: (code: Streams) => Observable<T>): Observable<T> =>
  defer(() => (streams.made === undefined ? late(streams.get().then(make)) : make(streams.made)));
