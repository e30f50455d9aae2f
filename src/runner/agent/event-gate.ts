import type { BaseEvent } from "@ag-ui/client";
import { messageOf } from "../../run/errors.js";
import { isTextDelta } from "../../run/event-kinds.js";
import type { Fold } from "../../run/fold.js";
import type { PatchResult } from "../../run/json-patch.js";
import type { PatchBounds } from "../../run/patch-bounds.js";
import { mayHoldBytes } from "../../run/readable.js";
import { jsonOf, weigh, type Weight } from "../../run/size.js";
import { acceptEvent } from "./accept.js";
import type { EventLimits } from "./event-limits.js";
import { withItsOwner } from "./owners.js";

/** Why an event ends its run. */
export interface Refusal {
  readonly message: string;
  readonly code: "EVENT_LIMIT" | "INVALID_STREAM";
}

/** Events with longer ids are weighed in full. */
const SHORT_ID = 256;

const isShort = (id: unknown): boolean => typeof id === "string" && id.length <= SHORT_ID;

/** The text of a plain delta: its length is the event's size, so no field need be weighed. */
function plainDelta(event: BaseEvent): string | undefined {
  if (!isTextDelta(event.type) || event.metadata !== undefined || event.rawEvent !== undefined) return undefined;
  const { delta, messageId, toolCallId, subagentRunId } = event as Readonly<Record<string, unknown>>;
  const hasShortIds = isShort(messageId ?? toolCallId) && (subagentRunId === undefined || isShort(subagentRunId));
  return typeof delta === "string" && hasShortIds ? delta : undefined;
}

const LIMIT_OF: Record<keyof PatchBounds, keyof EventLimits> = {
  operations: "maxPatchOperations",
  copied: "maxCopiedBytes",
  moved: "maxPatchOperations",
  depth: "maxDepth",
};

const limit = (name: keyof EventLimits, message: string): Refusal => ({
  message: `${message} (eventLimits.${name})`,
  code: "EVENT_LIMIT",
});

/**
 * Decides which events of one run may be recorded: every reader rebuilds those alike, at a cost in proportion to what
 * was sent.
 */
export class EventGate {
  private bytes = 0;
  private events = 0;

  /**
   * @param fold what the run starts from; receives every logged event except deltas of text
   * @param threadBytes size of the thread's earlier runs
   */
  constructor(
    private readonly limits: Required<EventLimits>,
    private readonly fold: Fold,
    private readonly threadBytes: number,
  ) {}

  /** Size of the run so far, including what its patches have copied. */
  get size(): number {
    return this.bytes;
  }

  /**
   * Weighs an event as the agent emitted it, before anything else walks it.
   *
   * @returns the event, or its JSON form where it holds non-JSON values, so that all readers get the same; undefined
   *   where it is refused
   */
  weigh(given: BaseEvent, refuse: (refusal: Refusal) => void): BaseEvent | undefined {
    try {
      const text = plainDelta(given);
      const weight: Weight = text === undefined ? this.weight(given) : { size: text.length, depth: 1 };
      const { odd } = weight;
      let event: BaseEvent | undefined = given;
      let refusal = this.excess(given, weight);
      if (refusal === undefined && odd !== undefined) {
        if (odd === "BigInt" || (odd === "bytes" && !mayHoldBytes(given))) {
          const message = `${given.type} holds ${odd}, which JSON has not: send it as text`;
          return void refuse({ message, code: "INVALID_STREAM" });
        }
        event = jsonOf(given, this.limits.maxEventBytes);
        const made = event === undefined ? { size: Infinity, depth: 1 } : this.weight(event);
        refusal = this.excess(given, made) ?? this.count(made.size);
      } else refusal ??= this.count(weight.size);
      if (refusal === undefined) return event;
      refuse(refusal);
    } catch (error) {
      refuse({ message: `An event cannot be read: ${messageOf(error)}`, code: "INVALID_STREAM" });
    }
    return undefined;
  }

  /** A valid event as it is recorded: see {@link withItsOwner}. Undefined where it is refused. */
  admit(given: BaseEvent, refuse: (refusal: Refusal) => void): BaseEvent | undefined {
    let event: BaseEvent;
    try {
      event = acceptEvent(given);
    } catch (error) {
      const message = `${given.type} holds what cannot be stored: ${String(error)}`;
      return void refuse({ message, code: "INVALID_STREAM" });
    }
    event = withItsOwner(event, this.fold.list);
    const refusal = this.unfit(event);
    return refusal === undefined ? event : void refuse(refusal);
  }

  /** There is a message of this id. */
  has(messageId: string): boolean {
    return this.fold.list.get(messageId) !== undefined;
  }

  /** An event that the runner adds. */
  note(event: BaseEvent): void {
    this.fold.apply(event);
  }

  private unfit(event: BaseEvent): Refusal | undefined {
    const { maxRunEvents } = this.limits;
    if (++this.events > maxRunEvents) return limit("maxRunEvents", `The run has more than ${maxRunEvents} events`);
    if (isTextDelta(event.type)) return undefined;
    const result = this.fold.apply(event);
    return result && this.judge(event, result);
  }

  private weight(event: BaseEvent): Weight {
    return weigh(event, { size: this.limits.maxEventBytes, depth: this.limits.maxDepth, sparse: true });
  }

  private excess({ type }: BaseEvent, { size, depth }: Weight): Refusal | undefined {
    const { maxDepth, maxEventBytes } = this.limits;
    // L19: bounded before anything works on it.
    if (depth > maxDepth) return limit("maxDepth", `${type} is deeper than ${maxDepth} levels`);
    return size > maxEventBytes ? limit("maxEventBytes", `${type} has more than ${maxEventBytes} bytes`) : undefined;
  }

  private judge({ type }: BaseEvent, result: PatchResult): Refusal | undefined {
    switch (result.is) {
      case "refused":
        return undefined;
      case "applied":
        return this.count(result.copied);
      case "unsafe":
        return { message: `${type} has a patch that no reader may be handed: ${result.why}`, code: "INVALID_STREAM" };
      case "exceeds":
        return limit(LIMIT_OF[result.bound], `${type}: ${result.bound} of more than ${result.most}`);
    }
  }

  private count(bytes: number): Refusal | undefined {
    const { maxRunBytes, maxThreadBytes } = this.limits;
    this.bytes += bytes;
    if (this.bytes > maxRunBytes) return limit("maxRunBytes", `The run has more than ${maxRunBytes} bytes`);
    const isFull = this.threadBytes + this.bytes > maxThreadBytes;
    return isFull ? limit("maxThreadBytes", `The thread has more than ${maxThreadBytes} bytes`) : undefined;
  }
}
