import type { BaseEvent } from "@ag-ui/client";
import type { Observable, Subscription } from "rxjs";
import { messageOf } from "../run/errors.js";
import { fail, shown } from "./expect.js";
import type { Patience } from "./patience.js";

/** How an Observable ended. `refused`: the call itself threw. */
export type StreamEnd =
  | { readonly is: "completed" }
  | { readonly is: "errored"; readonly error: unknown }
  | { readonly is: "refused"; readonly error: unknown };

/** Everything that one subscriber receives, copied at that moment. */
export class Recording {
  readonly events: BaseEvent[] = [];
  /** Events that cannot be cloned: they would reach no other context and no store. */
  readonly notPlain: BaseEvent[] = [];
  private ended: StreamEnd | undefined;
  private readonly watchers = new Set<() => void>();
  private subscription: Subscription | undefined;

  /**
   * @param name of the stream in messages: `run "r"`
   * @param open the call that returns the stream; if it throws, the stream was refused
   */
  constructor(
    readonly name: string,
    private readonly patience: Patience,
    open: () => Observable<BaseEvent>,
  ) {
    try {
      this.subscription = open().subscribe({
        next: (event) => this.take(event),
        error: (error: unknown) => this.over({ is: "errored", error }),
        complete: () => this.over({ is: "completed" }),
      });
    } catch (error) {
      this.over({ is: "refused", error });
    }
  }

  get end(): StreamEnd | undefined {
    return this.ended;
  }

  unsubscribe(): void {
    this.subscription?.unsubscribe();
  }

  /** Resolves with the first event that matches; fails if the stream ends without one. */
  async saw(matches: (event: BaseEvent) => boolean, what: string): Promise<BaseEvent> {
    const find = (): BaseEvent | undefined => this.events.find(matches);
    await this.change(() => find() !== undefined || this.ended !== undefined, `${this.name} hands out ${what}`);
    return find() ?? fail(`${this.name} must hand out ${what}`, this.account());
  }

  /** How it ended. */
  async whenEnded(): Promise<StreamEnd> {
    await this.change(() => this.ended !== undefined, `${this.name} completes`);
    return this.ended!;
  }

  /** All events; fails unless the stream completes. */
  async all(): Promise<BaseEvent[]> {
    const end = await this.whenEnded();
    if (end.is === "completed") return this.events;
    const how = end.is === "refused" ? "threw" : "errored";
    return fail(`${this.name} must complete without an error`, `it ${how}: ${messageOf(end.error)}`);
  }

  /** A summary of the recording, for messages. */
  account(): string {
    return `it handed out ${shown(this.events.map((event) => event.type))}`;
  }

  private take(event: BaseEvent): void {
    let copy = event;
    try {
      copy = structuredClone(event);
    } catch {
      this.notPlain.push(event);
    }
    this.events.push(copy);
    this.changed();
  }

  private over(end: StreamEnd): void {
    this.ended ??= end;
    this.changed();
  }

  private changed(): void {
    for (const watcher of this.watchers) watcher();
  }

  private async change(holds: () => boolean, what: string): Promise<void> {
    if (holds()) return;
    let watcher = (): void => {};
    const held = new Promise<void>((resolve) => {
      watcher = () => {
        if (holds()) resolve();
      };
      this.watchers.add(watcher);
    });
    try {
      await this.patience.within(held, what).catch((error: unknown) => fail(messageOf(error), this.account()));
    } finally {
      this.watchers.delete(watcher);
    }
  }
}
