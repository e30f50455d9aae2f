import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { Observable, type MonoTypeOperatorFunction } from "rxjs";
import { closingEvents } from "../run/finalize.js";
import { cloneJson, equalJson } from "../run/json.js";
import type { OpenConstructs } from "../run/types.js";

const STEPS: ReadonlySet<string> = new Set([EventType.STEP_STARTED, EventType.STEP_FINISHED]);

/** Which of the constructs was last opened by a chunk event: chunk expansion ends those by itself. */
class ChunkOpened {
  private readonly ids = new Set<string>();

  note(event: BaseEvent): void {
    switch (event.type) {
      case EventType.TEXT_MESSAGE_CHUNK:
        return this.add("text", event["messageId"]);
      case EventType.REASONING_MESSAGE_CHUNK:
        return this.add("reasoning", event["messageId"]);
      case EventType.TOOL_CALL_CHUNK:
        return this.add("call", event["toolCallId"]);
      case EventType.TEXT_MESSAGE_START:
        return this.drop("text", event["messageId"]);
      case EventType.REASONING_MESSAGE_START:
        return this.drop("reasoning", event["messageId"]);
      case EventType.TOOL_CALL_START:
        return this.drop("call", event["toolCallId"]);
      default:
        return;
    }
  }

  without(open: OpenConstructs): OpenConstructs {
    if (this.ids.size === 0) return open;
    const opened = (kind: string, id: string): boolean => this.ids.has(`${kind}/${id}`);
    return {
      ...open,
      textMessages: open.textMessages.filter((id) => !opened("text", id)),
      reasoningMessages: open.reasoningMessages.filter((id) => !opened("reasoning", id)),
      toolCalls: open.toolCalls.filter(({ toolCallId }) => !opened("call", toolCallId)),
    };
  }

  private add(kind: string, id: unknown): void {
    if (typeof id === "string") this.ids.add(`${kind}/${id}`);
  }

  private drop(kind: string, id: unknown): void {
    this.ids.delete(`${kind}/${String(id)}`);
  }
}

/** What an agent emits is anything: what cannot be compared is no repeat. */
function copyOf(event: BaseEvent): BaseEvent | undefined {
  try {
    return cloneJson(event);
  } catch {
    return undefined;
  }
}

/**
 * Mends what agents commonly get wrong about the course of a run, before their events are verified: an exact repeat of
 * RUN_STARTED or of the step event directly before it is dropped, and what is still open when the agent itself finishes
 * the run is closed first.
 *
 * @param open what the events that were accepted so far have left open
 * @param ids gives the messageId of each tool result that is made up
 */
export function tidyLifecycle(
  open: () => OpenConstructs | undefined,
  ids: () => string,
): MonoTypeOperatorFunction<BaseEvent> {
  return (events$) =>
    new Observable((subscriber) => {
      const chunkOpened = new ChunkOpened();
      let started: BaseEvent | undefined;
      let step: BaseEvent | undefined;

      const isRepeat = (event: BaseEvent): boolean => {
        if (event.type === EventType.RUN_STARTED) {
          if (started !== undefined && equalJson(started, event)) return true;
          started ??= copyOf(event);
        }
        const repeats = step !== undefined && equalJson(step, event);
        step = STEPS.has(event.type) ? copyOf(event) : undefined;
        return repeats;
      };

      const tidy = (event: BaseEvent): readonly BaseEvent[] => {
        if (isRepeat(event)) return [];
        if (event.type !== EventType.RUN_FINISHED) {
          chunkOpened.note(event);
          return [event];
        }
        const left = open();
        const { threadId, runId } = event as BaseEvent & { threadId: string; runId: string };
        return closingEvents(left && chunkOpened.without(left), {
          status: "finished",
          threadId,
          runId,
          terminal: event,
          ids,
        });
      };

      return events$.subscribe({
        next: (event) => {
          try {
            for (const tidied of tidy(event)) subscriber.next(tidied);
          } catch (error) {
            subscriber.error(error);
          }
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
}
