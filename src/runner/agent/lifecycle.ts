import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message, RunStartedEvent } from "@ag-ui/client";
import { Observable, type MonoTypeOperatorFunction } from "rxjs";
import { isStep } from "../../run/event-kinds.js";
import { endsOf } from "../../run/finalize.js";
import { messageOf } from "../../run/errors.js";
import { issuesOf, known, MESSAGE } from "../../run/input-shape.js";
import { cloneJson, equalJson } from "../../run/json.js";
import { printable } from "../../run/printable.js";
import type { OpenConstructs } from "../../run/types.js";
import { eventsAdding } from "./adding.js";
import { InvalidStream, mustBeEvent, returns } from "./valid-stream.js";

const TYPES: ReadonlySet<unknown> = new Set(Object.values(EventType));

/** The events that open constructs: which kind, the field with its id, and whether the event is a chunk. */
const OPENS: ReadonlyMap<string, readonly [kind: string, field: string, byChunk: boolean]> = new Map([
  [EventType.TEXT_MESSAGE_CHUNK, ["text", "messageId", true]],
  [EventType.TEXT_MESSAGE_START, ["text", "messageId", false]],
  [EventType.REASONING_MESSAGE_CHUNK, ["reasoning", "messageId", true]],
  [EventType.REASONING_MESSAGE_START, ["reasoning", "messageId", false]],
  [EventType.TOOL_CALL_CHUNK, ["call", "toolCallId", true]],
  [EventType.TOOL_CALL_START, ["call", "toolCallId", false]],
]);

/** Constructs that were last opened by a chunk event: chunk expansion closes those itself. */
class ChunkOpened {
  private readonly ids = new Set<string>();

  note(event: BaseEvent): void {
    const opens = OPENS.get(event.type);
    if (opens === undefined) return;
    const [kind, field, byChunk] = opens;
    const id: unknown = event[field];
    if (!byChunk) this.ids.delete(`${kind}/${String(id)}`);
    else if (typeof id === "string") this.ids.add(`${kind}/${id}`);
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
}

/** Undefined where the event cannot be copied: then nothing counts as its repeat. */
function copyOf(event: BaseEvent): BaseEvent | undefined {
  try {
    return cloneJson(event);
  } catch {
    return undefined;
  }
}

const isSame = (a: BaseEvent, b: BaseEvent): boolean => {
  try {
    return equalJson(a, b);
  } catch {
    return false;
  }
};

/** Tool calls whose results come later, according to a RUN_FINISHED that is not checked yet. */
function awaitedAfter({ outcome }: BaseEvent): ReadonlySet<unknown> {
  const { interrupts, pendingToolCallIds } = (outcome ?? {}) as Readonly<Record<string, unknown>>;
  const ids = (list: unknown): readonly unknown[] => (Array.isArray(list) ? list : []);
  const asked = ids(interrupts).map((interrupt) => (interrupt as { readonly toolCallId?: unknown } | null)?.toolCallId);
  return new Set([...asked, ...ids(pendingToolCallIds)]);
}

/**
 * The terminal event that an agent has emitted. A failure or another run may still follow, so it is taken when the
 * stream ends or, earlier, when `take` is called.
 */
export interface SaidEnd {
  readonly take: () => void;
  /** It ends the requested run, not an earlier one that the stream restates. */
  readonly isAskedFor: boolean;
  /** The agent returned without emitting it: a stop request that it had not heard takes precedence. */
  readonly isReturn: boolean;
  /** The run has failed: later events do not change the reason. */
  readonly isFailure: boolean;
}

/** The run as the host knows it, for {@link StreamCourse}. */
export interface CourseHost {
  /** Id of the requested run. */
  readonly runId: string;
  /** Constructs that the accepted events have left open. */
  readonly open: () => OpenConstructs | undefined;
  /** The thread, the run so far or the request has a message of this id. */
  readonly knows: (id: string) => boolean;
  /** Makes the messageId of each tool result that the runner adds. */
  readonly makeId: () => string;
  /** The agent has emitted its terminal event; undefined: its stream continues with another run. */
  readonly said: (end: SaidEnd | undefined) => void;
  /** The message, of which events have added only the text, has other parts too. */
  readonly hasParts?: (message: Message) => void;
  /** The agent emitted something that AG-UI does not know; it is left out. */
  readonly dropped: (message: string) => void;
}

/**
 * Normalizes the course of a run in one agent's stream:
 * - An exact repeat of RUN_STARTED, of the terminal event or of the step event directly before it is dropped.
 * - What is still open when the agent itself finishes the run is closed first.
 * - A stream may hold several runs. They are recorded as one, the requested run: only the first RUN_STARTED and the
 *   last terminal event count. Messages that only the input of a later one has are added by events, other parts than text
 *   by the host at the end.
 * - RUN_ERROR after RUN_FINISHED replaces it. Any other event after the terminal one is an error; after RUN_ERROR the
 *   run ends with that one, and the rest is ignored.
 */
export class StreamCourse {
  private readonly chunkOpened = new ChunkOpened();
  private count = 0;
  private current: BaseEvent | undefined;
  private hasBegun = false;
  private started: BaseEvent | undefined;
  private step: BaseEvent | undefined;
  private held: BaseEvent | undefined;
  private told: BaseEvent | undefined;
  private isReturn = false;

  constructor(private readonly host: CourseHost) {}

  /** The position in the stream, for messages: the first event is 0. */
  get place(): string {
    return this.current === undefined ? "the stream" : `event ${this.count - 1} (${printable(this.current.type, 60)})`;
  }

  /** The agent has emitted RUN_ERROR, which is not taken yet. */
  get hasFailed(): boolean {
    return this.held?.type === EventType.RUN_ERROR;
  }

  /** Field names of the current event, so that a misspelt one shows. */
  get fields(): string {
    const names = Object.keys(this.current ?? {});
    return (
      names
        .slice(0, 12)
        .map((name) => printable(name, 40))
        .join(", ") + (names.length > 12 ? ", …" : "")
    );
  }

  /**
   * @returns the events that replace `event`
   * @throws InvalidStream
   */
  next(event: BaseEvent): readonly BaseEvent[] {
    this.current = undefined;
    mustBeEvent(event, this.count++);
    this.current = event;
    if (!TYPES.has(event.type)) {
      this.host.dropped(`${this.place} has a type that AG-UI does not know; it was left out`);
      return [];
    }
    if (this.held !== undefined) return this.afterEnd(this.held, event);
    if (this.isRepeat(event)) return [];
    if (event.type === EventType.RUN_STARTED) this.hasBegun = true;
    else if (event.type === EventType.RUN_FINISHED) {
      this.hold(event);
      const left = this.host.open();
      const how = { status: "finished", ids: this.host.makeId, awaited: awaitedAfter(event) } as const;
      return endsOf(left && this.chunkOpened.without(left), how);
    } else if (event.type === EventType.RUN_ERROR) {
      this.hold(event);
      return [];
    } else this.chunkOpened.note(event);
    return [event];
  }

  /** Notes an event that bypasses the checks: it repeats the one before except for its text. */
  pass(event: BaseEvent): void {
    this.count++;
    this.current = event;
  }

  /** Tells the host of a terminal event that came, or was withdrawn, since the last call. */
  tell(take: () => void): void {
    const { held } = this;
    if (held === this.told) return;
    this.told = held;
    if (held === undefined) return this.host.said(undefined);
    // RUN_ERROR does not name its run.
    const runId = held["runId"] ?? this.started?.["runId"];
    const isAskedFor = runId === undefined || runId === this.host.runId;
    this.host.said({ take, isAskedFor, isReturn: this.isReturn, isFailure: this.hasFailed });
  }

  /** @returns the terminal event, once */
  take(): BaseEvent | undefined {
    const { held } = this;
    this.held = this.told = undefined;
    return held;
  }

  private afterEnd(held: BaseEvent, event: BaseEvent): readonly BaseEvent[] {
    if (event.type === EventType.RUN_STARTED) return this.anotherRun(held, event);
    if (isSame(held, event)) return [];
    if (held.type === EventType.RUN_FINISHED && event.type === EventType.RUN_ERROR) {
      this.hold(event);
      return [];
    }
    throw new InvalidStream(`${this.place} comes after ${held.type}, which ended the run`);
  }

  /** Closes what the run before left open; the log has one RUN_STARTED for all runs of the stream. */
  private anotherRun(held: BaseEvent, started: BaseEvent): readonly BaseEvent[] {
    this.held = undefined;
    this.started = copyOf(started);
    if (!this.hasBegun) {
      this.hasBegun = true;
      return [started];
    }
    const left = held.type === EventType.RUN_FINISHED ? undefined : this.host.open();
    const ends = endsOf(left && this.chunkOpened.without(left), { status: "errored", ids: this.host.makeId });
    return [...ends, ...this.newIn(started as Partial<RunStartedEvent>)];
  }

  /** The messages of the input that nobody has named before. */
  private newIn({ input }: Partial<RunStartedEvent>): readonly BaseEvent[] {
    // Not checked yet.
    const named = Array.isArray(input?.messages) ? input.messages : [];
    const added = new Map<string, Message>();
    for (const message of named) {
      const isNew = issuesOf(message, MESSAGE, 1).length === 0 && !this.host.knows(message.id);
      if (isNew && !added.has(message.id)) added.set(message.id, message);
    }
    return [...added.values()].flatMap((message) => {
      const events = eventsAdding(message);
      if (events === undefined) this.host.dropped(`${this.place} has a message that no event adds; it was left out`);
      if (message.role === "user" && Array.isArray(message.content)) {
        this.host.hasParts?.(known(cloneJson(message), MESSAGE) as Message); // it was checked
      }
      return events ?? [];
    });
  }

  /** Keeps a copy: the agent may still change the object. */
  private hold(event: BaseEvent): void {
    this.held = copyOf(event) ?? event;
    this.isReturn = returns.has(event);
  }

  private isRepeat(event: BaseEvent): boolean {
    if (event.type === EventType.RUN_STARTED) {
      if (this.started !== undefined && equalJson(this.started, event)) return true;
      this.started ??= copyOf(event);
    }
    const repeats = this.step !== undefined && equalJson(this.step, event);
    this.step = isStep(event.type) ? copyOf(event) : undefined;
    return repeats;
  }
}

/**
 * Applies a {@link StreamCourse} to a stream, before its events are checked.
 *
 * @param stream.failed called when the stream itself throws
 * @param stream.wentOn called with the error of an event after the run's failure
 * @param stream.isCutOff its connection broke: an error then says nothing about a run that has ended
 */
export function tidyLifecycle(
  course: StreamCourse,
  stream: {
    readonly failed: () => void;
    readonly wentOn: (what: string) => void;
    readonly isCutOff: () => boolean;
  },
): MonoTypeOperatorFunction<BaseEvent> {
  return (events$) =>
    new Observable((subscriber) => {
      const take = (): void => {
        const end = course.take();
        if (end !== undefined) subscriber.next(end);
      };
      return events$.subscribe({
        next: (event) => {
          try {
            for (const tidied of course.next(event)) subscriber.next(tidied);
            course.tell(take);
          } catch (error) {
            if (course.hasFailed) {
              stream.wentOn(messageOf(error));
              take();
            }
            subscriber.error(error);
          }
        },
        error: (error: unknown) => {
          // An agent that emits RUN_ERROR and then throws has given the reason.
          if (course.hasFailed || stream.isCutOff()) take();
          stream.failed();
          subscriber.error(error);
        },
        complete: () => {
          take();
          subscriber.complete();
        },
      });
    });
}
