import { EventType } from "@ag-ui/core";
import type { AssistantMessage, BaseEvent, Message } from "@ag-ui/client";
import { OpenConstructTracker } from "./open-constructs.js";
import { unansweredIn, type UnansweredCall } from "./pending-tool-calls.js";

/*
 * What the agent of an attempt is given: the messages of the thread at the end of the broken run, without what the end of
 * that run added to them.
 */

/** What a run left open when it broke, and what its closing events made up. */
export interface BreakPoint {
  /** Calls whose arguments were cut off, without a result. They were not started. */
  readonly cutCalls: ReadonlySet<string>;
  /** Ids of the reasoning messages that were cut off. */
  readonly cutReasoning: ReadonlySet<string>;
  /** Ids of the messages that hold results which nobody gave. */
  readonly madeUp: ReadonlySet<string>;
}

/** Finds the break point of a run from its events in order. */
export class BreakFinder {
  private readonly tracker = new OpenConstructTracker();
  private readonly madeUp = new Set<string>();

  /** @param isClosing it was written to end the run: nothing that the agent emitted comes after it */
  note(event: BaseEvent, isClosing: boolean): void {
    if (!isClosing) this.tracker.note(event);
    else if (event.type === EventType.TOOL_CALL_RESULT) this.madeUp.add(String(event["messageId"]));
  }

  /** After all events. */
  get point(): BreakPoint {
    const calls = this.tracker.snapshot()?.toolCalls ?? [];
    const open = [...this.tracker.started()];
    return {
      cutCalls: new Set(calls.flatMap(({ toolCallId, answered }) => (answered === true ? [] : toolCallId))),
      cutReasoning: new Set(open.flatMap(({ kind, start }) => (kind === "reasoning" ? start.messageId : []))),
      madeUp: this.madeUp,
    };
  }
}

/** What an attempt starts from. */
export interface AttemptStart {
  readonly messages: readonly Message[];
  /** Calls that were made and have no result, since somebody last wrote; calls of the front end's tools are not among them. */
  readonly started: readonly UnansweredCall[];
  /** Id of the last message, where it is an answer that the broken run has begun. */
  readonly said?: string;
}

export interface AttemptSource {
  /** Of the thread, at the end of the broken run. */
  readonly messages: readonly Message[];
  readonly broke: BreakPoint;
  /** Names of the front end's tools, whose calls the page answers. */
  readonly frontEndTools: ReadonlySet<string>;
  /** The agent goes on from what is there; else it is asked again. */
  readonly continues: boolean;
  /** Whether a message was added by the broken run, or by one that it went on with. */
  readonly isOwn: (messageId: string) => boolean;
}

/**
 * The messages that an attempt's agent is given. No settled result is lost, and none is there that nobody gave.
 *
 * - An agent that continues finds calls without result as they were made (it runs them again, or leaves them to the page), and
 *   the text that was cut off.
 * - Another one is asked again, with the calls that have results: what the broken run said after the last result goes, and
 *   so do its calls without result.
 */
export function attemptStart({ messages, broke, frontEndTools, continues, isOwn }: AttemptSource): AttemptStart {
  const { cutCalls, cutReasoning, madeUp } = broke;
  const real = messages.flatMap((message): Message[] => {
    if (message.role === "tool" && madeUp.has(message.id)) return [];
    if (message.role === "reasoning" && cutReasoning.has(message.id)) return [];
    if (message.role !== "assistant") return [message];
    // It broke before the first word: models refuse an empty message.
    return withoutCalls(message, cutCalls).filter((left) => !isOwn(left.id) || !isEmpty(left));
  });
  const unanswered = unansweredIn(real);
  const started = unanswered.filter(({ name }) => !frontEndTools.has(name));
  const last = real.at(-1);
  const said = last?.role === "assistant" && isOwn(last.id) ? { said: last.id } : {};
  if (continues) return { messages: real, started, ...said };
  const open = new Set(unanswered.map(({ toolCallId }) => toolCallId));
  const asked = real.flatMap((message) =>
    message.role === "assistant" && isOwn(message.id) ? withoutCalls(message, open) : [message],
  );
  return { messages: withoutTail(asked, isOwn), started };
}

const isEmpty = ({ content, toolCalls }: AssistantMessage): boolean =>
  (content === undefined || content === "") && (toolCalls ?? []).length === 0;

/** The message without these calls; nothing, if nothing else was in it. */
function withoutCalls(message: AssistantMessage, calls: ReadonlySet<string>): AssistantMessage[] {
  const { toolCalls, ...rest } = message;
  const left = toolCalls?.filter(({ id }) => !calls.has(id));
  if (toolCalls === undefined || left === undefined || left.length === toolCalls.length) return [message];
  if (left.length > 0) return [{ ...rest, toolCalls: left }];
  return isEmpty(rest) ? [] : [rest];
}

/** The messages without what the run has said since the last message that it did not write or that is a result. */
function withoutTail(messages: readonly Message[], isOwn: (messageId: string) => boolean): readonly Message[] {
  const isSaid = (message: Message): boolean => {
    const { role, id } = message;
    const says = role === "reasoning" || role === "activity" || (role === "assistant" && !message.toolCalls?.length);
    return says && isOwn(id);
  };
  return messages.slice(0, messages.findLastIndex((message) => !isSaid(message)) + 1);
}
