import { share, type Observable } from "rxjs";
import type { ThreadChange } from "../wire/shapes.js";
import type { HostLink } from "./host-link.js";
import { hostStream } from "./host-stream.js";

/** Changes of the list of threads, from one host after the other. */
export class ThreadChanges {
  /** Begins with the next change. Errors with RunnerError `refused`; completes with the link. */
  readonly changes$: Observable<ThreadChange>;
  /** Resolves when the host reports changes, if somebody has subscribed. */
  private asked: Promise<unknown> = Promise.resolve();

  constructor(link: HostLink) {
    this.changes$ = hostStream<ThreadChange>(
      link,
      (port) => (this.asked = link.callOnce("watchThreads", port)),
      (next, isAnew) => isAnew && next({ type: "anew" }),
    ).pipe(share());
  }

  /** After this, every change of what is then listed is reported to subscribers. */
  async watched(): Promise<void> {
    await this.asked.catch(() => undefined);
  }
}
