import { Observable, type Subscriber } from "rxjs";
import type { BaseEvent } from "@ag-ui/client";

/** Events for one subscriber, buffered until it subscribes. */
export class Unicast {
  private waiting: BaseEvent[] = [];
  private subscriber: Subscriber<BaseEvent> | undefined;
  private completed = false;
  /** The subscriber left before the end: it has missed events, and no more are buffered. */
  isLeft = false;

  readonly events$ = new Observable<BaseEvent>((subscriber) => {
    this.subscriber = subscriber;
    for (const event of this.waiting.splice(0)) subscriber.next(event);
    if (this.completed) subscriber.complete();
    return () => {
      this.subscriber = undefined;
      this.isLeft = !this.completed;
    };
  });

  next(event: BaseEvent): void {
    if (this.isLeft) return;
    if (this.subscriber === undefined) this.waiting.push(event);
    else this.subscriber.next(event);
  }

  complete(): void {
    this.completed = true;
    this.subscriber?.complete();
  }
}
