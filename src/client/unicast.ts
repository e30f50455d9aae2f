import { Observable, type Subscriber } from "rxjs";
import type { BaseEvent } from "@ag-ui/client";

/** Events for one subscriber, kept until it comes. */
export class Unicast {
  private waiting: BaseEvent[] = [];
  private subscriber: Subscriber<BaseEvent> | undefined;
  private completed = false;
  private left = false;

  readonly events$ = new Observable<BaseEvent>((subscriber) => {
    this.subscriber = subscriber;
    for (const event of this.waiting.splice(0)) subscriber.next(event);
    if (this.completed) subscriber.complete();
    return () => {
      this.subscriber = undefined;
      this.left = !this.completed;
    };
  });

  /** The subscriber went before the end: it has not had everything, and nothing is kept for it. */
  get isLeft(): boolean {
    return this.left;
  }

  next(event: BaseEvent): void {
    if (this.left) return;
    if (this.subscriber === undefined) this.waiting.push(event);
    else this.subscriber.next(event);
  }

  complete(): void {
    this.completed = true;
    this.subscriber?.complete();
  }
}
