import { transfer } from "comlink";
import { distinctUntilChanged, Observable, switchMap } from "rxjs";
import { RunnerError } from "../run/errors.js";
import { fromErrorData } from "../wire/errors.js";
import type { RunnerErrorData, RuntimeStatus } from "../wire/shapes.js";
import type { HostLink } from "./host-link.js";

/** What a host posts on a watched port. */
type Posted<T> = T | { readonly error: RunnerErrorData };

/**
 * What one host after the other posts on a port of its own. Errors: why a host refused it; completes with the link.
 *
 * @param ask hands the port over to the host; what it posts to it goes by `post`
 * @param begun called when a host has taken it; `isAnew`: something may have been missed before
 * @param asksNext whether the next host is asked after this error
 */
export function hostStream<T extends object>(
  link: HostLink,
  ask: (port: MessagePort, post: (message: unknown) => void) => Promise<unknown>,
  begun: (next: (value: T) => void, isAnew: boolean) => void = () => undefined,
  asksNext: (error: unknown) => boolean = isPassing,
): Observable<T> {
  const ofHost = (isAnew: boolean): Observable<T> =>
    new Observable((subscriber) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }: MessageEvent<Posted<T>>) => {
        if (!("error" in data && isErrorAlone(data))) return subscriber.next(data as T); // the host's own
        const error = fromErrorData(data.error);
        if (!asksNext(error)) subscriber.error(error);
      };
      ask(transfer(port2, [port2]), (message) => port1.postMessage(message)).then(
        () => begun((value) => subscriber.next(value), isAnew),
        (error: unknown) => {
          if (!asksNext(error)) subscriber.error(error);
        },
      );
      return () => {
        port1.postMessage("end");
        port1.close();
      };
    });
  return new Observable<T>((subscriber) => {
    let interrupted = false;
    return link.status$
      .pipe(
        distinctUntilChanged((a, b) => a.is === b.is && bootId(a) === bootId(b)),
        switchMap((status) => {
          interrupted ||= status.is === "reconnecting" || status.is === "failed";
          return status.is === "connected" ? ofHost(interrupted) : [];
        }),
      )
      .subscribe(subscriber);
  });
}

/** The host is gone. */
export const isHostGone = (error: unknown): boolean =>
  RunnerError.is(error, "host-lost") || RunnerError.is(error, "closed");

/** Also until somebody has unlocked its database, which it says by a new link. */
const isPassing = (error: unknown): boolean => isHostGone(error) || RunnerError.is(error, "locked");

/** A change of the list of threads may have an error beside its type. */
const isErrorAlone = (data: object): data is { readonly error: RunnerErrorData } => Object.keys(data).length === 1;

const bootId = (status: RuntimeStatus): string | undefined => (status.is === "connected" ? status.bootId : undefined);
