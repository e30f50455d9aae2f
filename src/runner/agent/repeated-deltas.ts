import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { Observable, type MonoTypeOperatorFunction } from "rxjs";

type IdField = "messageId" | "toolCallId";

/** Events that add text, and the field that names what they add it to. */
const ID_FIELDS: ReadonlyMap<string, IdField> = new Map([
  [EventType.TEXT_MESSAGE_CONTENT, "messageId"],
  [EventType.TEXT_MESSAGE_CHUNK, "messageId"],
  [EventType.REASONING_MESSAGE_CONTENT, "messageId"],
  [EventType.REASONING_MESSAGE_CHUNK, "messageId"],
  [EventType.TOOL_CALL_ARGS, "toolCallId"],
  [EventType.TOOL_CALL_CHUNK, "toolCallId"],
]);

interface Delta {
  readonly type: string;
  readonly field: IdField;
  readonly id: string;
  readonly delta: string;
}

/** The event as a delta, if it has no other fields. */
function deltaOf(event: BaseEvent): Delta | undefined {
  if (typeof event !== "object" || event === null) return undefined; // an agent may emit anything
  const field = ID_FIELDS.get(event.type);
  if (field === undefined || Object.getPrototypeOf(event) !== Object.prototype) return undefined;
  if (!Object.keys(event).every((name) => name === "type" || name === "delta" || name === field)) return undefined;
  const { type, delta, [field]: id } = event as BaseEvent & Readonly<Record<string, unknown>>;
  return typeof delta === "string" && typeof id === "string" ? { type, field, id, delta } : undefined;
}

/**
 * Most events of a stream are deltas that differ from the one before only in their text. The checks of the AG-UI client
 * (schema, chunk expansion, order) turn such an event into one other and keep no count, so their result for the first
 * one holds for its repeats: same type, same id, no other field.
 */
export class RepeatedDeltas {
  /** The last event that went into the checks, if it is a delta. */
  private given: Delta | undefined;
  /** The one event that came out of the checks for it. */
  private made: Delta | undefined;

  /** `event` came out of the checks, accepted. */
  leave(event: BaseEvent): void {
    const { given, made } = this;
    this.made = undefined;
    if (given === undefined) return;
    // A chunk that starts a message comes out as two events; its repeats do not.
    if (made !== undefined) return void (this.given = undefined);
    const left = deltaOf(event);
    if (left?.id === given.id && left.delta === given.delta) this.made = left;
    else this.given = undefined;
  }

  /**
   * Must be placed before the checks.
   *
   * @param pass is called with each event that need not be checked, and with what the checks would make of it
   */
  around(pass: (event: BaseEvent, made: BaseEvent) => void): MonoTypeOperatorFunction<BaseEvent> {
    return (events$) =>
      new Observable((subscriber) =>
        events$.subscribe({
          next: (event) => {
            const made = this.madeOf(event);
            if (made === undefined) {
              this.made = undefined;
              this.given = deltaOf(event);
              subscriber.next(event);
              // The checks emit this event later: a repeat must not overtake it.
              if (this.made === undefined) this.given = undefined;
              return;
            }
            try {
              pass(event, made);
            } catch (error) {
              subscriber.error(error);
            }
          },
          error: (error: unknown) => subscriber.error(error),
          complete: () => subscriber.complete(),
        }),
      );
  }

  private madeOf(event: BaseEvent): BaseEvent | undefined {
    const { given, made } = this;
    if (given === undefined || made === undefined) return undefined;
    const next = deltaOf(event);
    if (next?.type !== given.type || next.id !== given.id) return undefined;
    return { type: made.type, [made.field]: made.id, delta: next.delta } as BaseEvent; // of an accepted event's type
  }
}
