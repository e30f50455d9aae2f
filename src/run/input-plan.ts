import type { BaseEvent, Interrupt, Message, RunAgentInput, State } from "@ag-ui/client";
import { isAnswer } from "./interrupts.js";
import { equalJson } from "./json.js";
import type { MessageIndex } from "./message-list.js";
import type { ToolResult } from "./pending-tool-calls.js";

/** A thread at the end of a path: what the next run of that path starts from. */
export interface ThreadBase {
  /** The run at the end of the path; -1 for a new thread. */
  readonly runIndex: number;
  readonly messages: readonly Message[];
  /**
   * The run that added or last replaced each message. A run takes this map and `index` over when it ends, so that no run
   * walks the whole history.
   */
  readonly runOf: Map<string, number>;
  /** The run that added a message, where a later one replaced it. Taken over as `runOf` is. */
  readonly addedBy: Map<string, number>;
  readonly index?: MessageIndex;
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
}

/** What a run is to be recorded and started with. */
export type InputPlan =
  | {
      /** The run goes on where the path ends. */
      readonly is: "continue";
      readonly newMessages: readonly Message[];
      /** All messages of the thread; assembled on demand. */
      readonly messages: () => readonly Message[];
    }
  | {
      /** Somebody edited, cut or regenerated: the run starts a branch. */
      readonly is: "branch";
      /** The run that the branch continues; -1 for none. */
      readonly afterRunIndex: number;
      readonly newMessages: readonly Message[];
      readonly messages: () => readonly Message[];
    }
  | {
      /** The run goes on with a broken one, where the path ends. */
      readonly is: "attempt";
      readonly newMessages: readonly Message[];
      readonly messages: () => readonly Message[];
      /** Events that make these messages of the thread's; none where they are the same. */
      readonly snapshot: readonly BaseEvent[];
      /** See `HostedAttempt`. */
      readonly said?: string | undefined;
    };

/** What the entry point knows about a sender beside the request. */
export interface SenderKnowledge {
  /** It sends only what is new to the thread, so nothing that it lacks counts as cut. */
  readonly partial?: boolean;
  /**
   * Ids of messages that it was given and has removed. Absent: nobody knows what it was given, and it may never have had
   * what it lacks.
   */
  readonly cut?: readonly string[] | undefined;
  /** The branch point that it names: the first message that leaves the path. */
  readonly branchBefore?: string | undefined;
  /** Ids of messages that it sends in a stale form, from before an edit. */
  readonly outdated?: ReadonlySet<string> | undefined;
  /** Messages that it sends and that only another branch has: they are not added again. */
  readonly left?: ReadonlySet<Message> | undefined;
  /** Answers to pending tool calls, which a run that continues the path takes along. */
  readonly results?: readonly ToolResult[];
  /** Messages of this and later runs arrived while the sender waited; their absence is no edit. */
  readonly unseen?: number | undefined;
}

type Sent = Pick<RunAgentInput, "messages" | "resume" | "forwardedProps">;

/** Roles that are compared between histories: every AG-UI client sends them. */
const COMPARED: ReadonlySet<string> = new Set(["user", "assistant", "tool"]);

const isCompared = (message: Message): boolean => COMPARED.has(message.role);

/**
 * Where a run continues. No message leaves the path because a sender merely lacks it: a sender may be stale. It branches
 * where the sender names the place, replaces what a person wrote under its id, has cut what it was given or, where nobody
 * knows what it was given, regenerates: sends nothing that is new, up to an earlier message than the path's last.
 *
 * @returns undefined where the path does not have the message `branchBefore`
 */
export function planInput(base: ThreadBase, input: Sent, sender: SenderKnowledge = {}): InputPlan | undefined {
  const { branchBefore } = sender;
  if (branchBefore !== undefined) {
    const named = base.messages.findIndex(({ id }) => id === branchBefore);
    return named < 0 ? undefined : branchAt(base, input.messages, named);
  }
  const at = sender.partial === true ? -1 : firstToLeave(base, input, sender);
  if (at >= 0) return branchAt(base, input.messages, at);
  const sent = input.messages.filter((message) => !base.runOf.has(message.id) && sender.left?.has(message) !== true);
  // A sender that brings a result of its own has precedence.
  const answered = new Set(sent.map((message) => (message.role === "tool" ? message.toolCallId : undefined)));
  const results = (sender.results ?? []).filter(({ toolCallId }) => !answered.has(toolCallId));
  const newMessages = [...results, ...sent];
  return { is: "continue", newMessages, messages: () => [...base.messages, ...newMessages] };
}

/**
 * User messages that the sender has under the id of a message of the path, but with other content: edits, unless the
 * sender is stale. The last message that it sends is never stale.
 */
export function replacementsIn(
  { messages, runOf }: ThreadBase,
  sent: readonly Message[],
): { readonly message: Message; readonly isLast: boolean }[] {
  const last = sent.findLast(isCompared);
  const written = new Map(
    sent.filter(({ role, id }) => role === "user" && runOf.has(id)).map((message) => [message.id, message]),
  );
  if (written.size === 0) return [];
  // Several messages of the path may have one id.
  for (const { id, content } of messages) if (equalJson(written.get(id)?.content, content)) written.delete(id);
  return [...written.values()].map((message) => ({ message, isLast: message === last }));
}

/**
 * Sent messages that may come from a branch that the path has left: those that the path lacks, except a question at the
 * end, which is new, and results of calls that the path has.
 */
export function strangersIn({ messages, runOf, runIndex }: ThreadBase, sent: readonly Message[]): readonly Message[] {
  if (runIndex < 0) return [];
  const last = sent.findLast(isCompared);
  const asked = last?.role === "user" ? last.id : undefined;
  const strangers = sent.filter(({ id }) => !runOf.has(id) && id !== asked);
  if (strangers.length === 0) return [];
  const calls = new Set(
    messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : [])).map(({ id }) => id),
  );
  return strangers.filter((message) => message.role !== "tool" || !calls.has(message.toolCallId));
}

/** The place of the first message that the sender removes from the path; -1 for none. */
function firstToLeave(base: ThreadBase, input: Sent, { cut, outdated, unseen = Infinity }: SenderKnowledge): number {
  const { messages, runOf } = base;
  const sent = new Set(input.messages.filter(isCompared).map(({ id }) => id));
  const lastKnown = messages.findLastIndex(({ id }) => sent.has(id));
  if (lastKnown < 0 && (cut === undefined || cut.length === 0)) return -1;

  const edits = replacementsIn(base, input.messages).filter(({ message }) => outdated?.has(message.id) !== true);
  const edited = new Set(edits.map(({ message }) => message.id));
  const replaced = messages.findIndex(({ id }) => edited.has(id));
  // L20: what a sender merely lacks stays on the path.
  const left = cut === undefined ? regeneratedAt() : cutAt(new Set(cut));
  return replaced < 0 || left < 0 ? Math.max(replaced, left) : Math.min(replaced, left);

  /**
   * A cut removes the end of a history. What is missing before everything that the sender has stays: it may show and send
   * only the newest messages.
   */
  function cutAt(ids: ReadonlySet<string>): number {
    const isCut = (message: Message): boolean => isCompared(message) && ids.has(message.id);
    const firstKnown = messages.findIndex(({ id }) => sent.has(id));
    if (messages.findLastIndex(isCut) <= lastKnown) return -1;
    return messages.findIndex((message, at) => at > firstKnown && isCut(message));
  }

  function regeneratedAt(): number {
    // An answer to an interrupt brings no new message and regenerates nothing.
    if (isAnswer(input)) return -1;
    const lastSent = input.messages.findLastIndex((message) => isCompared(message) && runOf.has(message.id));
    const isNew = (message: Message, at: number): boolean =>
      !runOf.has(message.id) && (at > lastSent || isCompared(message));
    if (input.messages.some(isNew)) return -1;
    return messages.findIndex(
      (message, at) => at > lastKnown && isCompared(message) && (runOf.get(message.id) ?? 0) < unseen,
    );
  }
}

/** A branch: the messages of the path before the one at `at`, then the sender's other messages. */
function branchAt({ messages, runOf }: ThreadBase, sent: readonly Message[], at: number): InputPlan {
  const runIndexOf = ({ id }: Message): number => runOf.get(id) ?? -1;
  // The branch continues a run that keeps all of its messages; kept messages of later runs are new again.
  const firstCut = messages.slice(at).reduce((least, message) => Math.min(least, runIndexOf(message)), Infinity);
  const before = messages.slice(0, at);
  const afterRunIndex = before.reduce((newest, message) => {
    const runIndex = runIndexOf(message);
    return runIndex < firstCut ? Math.max(newest, runIndex) : newest;
  }, -1);
  // Reasoning and activities before a removed answer go with it.
  const end = before.findLastIndex(isCompared);
  const kept = before.filter((message, place) => place <= end || runIndexOf(message) <= afterRunIndex);
  const ids = new Set(kept.map(({ id }) => id));
  const fresh = sent.filter(({ id }) => !ids.has(id));
  return {
    is: "branch",
    afterRunIndex,
    newMessages: [...kept.filter((message) => runIndexOf(message) > afterRunIndex), ...fresh],
    messages: () => [...kept, ...fresh],
  };
}

/**
 * The messages of a sender that sees another form of them (an older version of the protocol has less). Those that equal
 * the form of the thread's own are replaced by it: what could not be shown is no edit.
 */
export function asKnown(
  { messages }: Pick<ThreadBase, "messages">,
  sent: readonly Message[],
  shownAs: (message: Message) => Message,
): readonly Message[] {
  // Only content parts have another form.
  const ids = new Set(sent.filter(({ content }) => Array.isArray(content)).map(({ id }) => id));
  if (ids.size === 0) return sent;
  const known = new Map(messages.filter(({ id }) => ids.has(id)).map((message) => [message.id, message]));
  return sent.map((message) => {
    const own = known.get(message.id);
    return own !== undefined && equalJson(shownAs(own), shownAs(message)) ? own : message;
  });
}

/** The beginning of the first user message, for the title of a thread: one line, at most 80 characters. */
export function titleOf(messages: readonly Message[]): string {
  const first = messages.find((message) => message.role === "user");
  if (first === undefined) return "";
  const { content } = first;
  const text = typeof content === "string" ? content : (content ?? []).map(titleOfPart).join(" ");
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= 80 ? line : `${line.slice(0, 79).trimEnd()}…`;
}

/** A text part's text; else the name that the part's metadata gives, as file parts do. */
function titleOfPart(part: object): string {
  if ("text" in part && typeof part.text === "string") return part.text;
  const name = "metadata" in part ? (part.metadata as { name?: unknown } | undefined)?.name : undefined;
  return typeof name === "string" ? name : "";
}
