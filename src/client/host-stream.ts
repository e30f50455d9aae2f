import { transfer } from "comlink";
import { defer, distinctUntilChanged, Observable, retry, switchMap, throwError, timer } from "rxjs";
import { RunnerError } from "../run/errors.js";
import { fromErrorData } from "../wire/errors.js";
import type { RunnerErrorData, RuntimeStatus } from "../wire/shapes.js";
import type { HostLink } from "./host-link.js";
import { backoff } from "./read-until-done.js";

/** What a host posts on a watched port. */
type Posted<T> = T | { readonly error: RunnerErrorData };

/**
 * What one host after the other posts on a port of its own; one that does not answer in time is asked again. Errors: why a
 * host refused it; completes with the link.
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
  return defer(() => {
    let isAnew = false;
    const ofHost$ = new Observable<T>((subscriber) => {
      const { port1, port2 } = new MessageChannel();
      const failed = (error: unknown): void => {
        if (!asksNext(error)) subscriber.error(error);
      };
      port1.onmessage = ({ data }: MessageEvent<Posted<T>>) => {
        if ("error" in data && isErrorAlone(data)) failed(fromErrorData(data.error));
        else subscriber.next(data as T); // the host's own
      };
      ask(transfer(port2, [port2]), (message) => port1.postMessage(message)).then(
        () => begun((value) => subscriber.next(value), isAnew),
        failed,
      );
      return () => {
        port1.postMessage("end");
        port1.close();
      };
    });
    const delay = (error: unknown, failures: number): Observable<unknown> => {
      isAnew = true;
      return RunnerError.is(error, "timeout") ? timer(backoff(failures)) : throwError(() => error);
    };
    return link.status$.pipe(
      distinctUntilChanged((a, b) => a.is === b.is && bootId(a) === bootId(b)),
      switchMap((status) => {
        isAnew ||= status.is === "reconnecting" || status.is === "failed";
        return status.is === "connected" ? ofHost$.pipe(retry({ delay, resetOnSuccess: true })) : [];
      }),
    );
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
