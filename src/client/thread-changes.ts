import { transfer } from "comlink";
import { distinctUntilChanged, Observable, share, switchMap, type Subscriber } from "rxjs";
import { RunnerError } from "../run/errors.js";
import type { RuntimeStatus, ThreadChange } from "../wire/shapes.js";
import type { HostLink } from "./host-link.js";

/** Changes of the list of threads, from one host after the other. */
export class ThreadChanges {
  /** Begins with the next change. Errors with RunnerError `refused`; completes with the link. */
  readonly changes$: Observable<ThreadChange>;
  /** Resolves when the host reports changes, if somebody has subscribed. */
  private asked: Promise<unknown> = Promise.resolve();

  constructor(private readonly link: HostLink) {
    const isSame = (a: RuntimeStatus, b: RuntimeStatus): boolean => a.is === b.is && bootId(a) === bootId(b);
    this.changes$ = new Observable<ThreadChange>((subscriber) => {
      let interrupted = false;
      return link.status$
        .pipe(
          distinctUntilChanged(isSame),
          switchMap((status) => {
            interrupted ||= status.is === "reconnecting" || status.is === "failed";
            return status.is === "connected" ? this.ofHost(interrupted) : [];
          }),
        )
        .subscribe(subscriber);
    }).pipe(share());
  }

  /** After this, every change of what is then listed is reported to subscribers. */
  async watched(): Promise<void> {
    await this.asked;
  }

  private ofHost(isAnew: boolean): Observable<ThreadChange> {
    return new Observable((subscriber) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }: MessageEvent<ThreadChange>) => subscriber.next(data);
      const asking = this.link.callOnce("watchThreads", transfer(port2, [port2])).then(
        () => isAnew && subscriber.next({ type: "anew" }),
        (error: unknown) => failed(subscriber, error),
      );
      this.asked = asking;
      return () => {
        port1.postMessage("end");
        port1.close();
      };
    });
  }
}

/** If the host is gone, the next one is asked. */
function failed(subscriber: Subscriber<ThreadChange>, error: unknown): void {
  if (!RunnerError.is(error, "host-lost") && !RunnerError.is(error, "closed")) subscriber.error(error);
}

const bootId = (status: RuntimeStatus): string | undefined => (status.is === "connected" ? status.bootId : undefined);
