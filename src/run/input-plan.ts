import type { Interrupt, Message, RunAgentInput, State } from "@ag-ui/client";
import { commandOf } from "./interrupts.js";
import { equalJson } from "./json.js";
import type { MessageIndex } from "./message-list.js";

/** A thread at the end of a path: what the next run of that path starts from. */
export interface ThreadBase {
  /** The run at the end of the path; -1 for a new thread. */
  readonly runIndex: number;
  readonly messages: readonly Message[];
  /**
   * The run that added or last replaced each message, and where the messages are. Both are handed on: once a later run
   * has ended they are that one's, so that no run has to look at the whole history.
   */
  readonly runOf: Map<string, number>;
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
      /** All that the thread has, put together where somebody looks at it. */
      readonly messages: () => readonly Message[];
    }
  | {
      /** The sender edited or cut the history: the run starts a branch, and its messages are all that the sender has. */
      readonly is: "branch";
      /** The run that the branch continues; -1 for none. */
      readonly afterRunIndex: number;
      readonly newMessages: readonly Message[];
      readonly messages: () => readonly Message[];
    };

/** Messages that take part in the comparison of histories: every AG-UI client sends them. */
const COMPARED: ReadonlySet<string> = new Set(["user", "assistant", "tool"]);

const isCompared = (message: Message): boolean => COMPARED.has(message.role);

/** Same message: same id, and for what people wrote the same content. */
function same(sent: Message, known: Message): boolean {
  if (sent.id !== known.id) return false;
  return sent.role !== "user" || JSON.stringify(sent.content) === JSON.stringify(known.content);
}

/**
 * Where a run continues, from the messages that its sender has.
 *
 * @param partial the sender names only what is new to it and never branches
 * @param unseen messages of this run and later ones came while the sender waited: that it lacks them is no cut of its own
 */
export function planInput(
  base: ThreadBase,
  input: Pick<RunAgentInput, "messages">,
  partial: boolean,
  unseen = Infinity,
): InputPlan {
  const known = base.runOf;
  const fresh = input.messages.filter((message) => !known.has(message.id));
  const goesOn: InputPlan = {
    is: "continue",
    newMessages: fresh,
    messages: () => [...base.messages, ...fresh],
  };
  if (partial) return goesOn;

  const sent = input.messages.filter(isCompared);
  if (sent.every((message) => !known.has(message.id))) return goesOn;
  const path = base.messages.filter((message) => isCompared(message) && (known.get(message.id) ?? 0) < unseen);
  let common = 0;
  while (common < sent.length && common < path.length && same(sent[common]!, path[common]!)) common++;
  // Agents may own messages that a sender never had; only a known message that stands elsewhere makes a branch.
  if (common === path.length) return goesOn;
  const lastKnown = sent.findLast((message) => known.has(message.id));
  const subsequence = isSubsequence(
    sent.filter((message) => known.has(message.id)),
    path,
  );
  if (subsequence && lastKnown?.id === path.at(-1)?.id) return goesOn;

  const afterRunIndex = lastWholeRun(base, path, common);
  // What the run before the branch left behind is all that is there: a message of a later run is new again.
  const kept = path.slice(0, common).filter(({ id }) => (known.get(id) ?? 0) <= afterRunIndex);
  const keptIds = new Set(kept.map(({ id }) => id));
  return {
    is: "branch",
    afterRunIndex,
    newMessages: input.messages.filter((message) => !keptIds.has(message.id)),
    messages: () => input.messages,
  };
}

/**
 * The messages of a sender that has loaded only those from `before` on, with the path's in front of it before them. Where
 * the thread has been rewritten without that one, it has loaded those from the first that the path still has on.
 */
export function withEarlier(
  { messages }: Pick<ThreadBase, "messages">,
  sent: readonly Message[],
  before: string,
): readonly Message[] {
  const ids = new Set(sent.map(({ id }) => id));
  const place = messages.findIndex(({ id }) => id === before);
  const end = place >= 0 ? place : messages.findIndex(({ id }) => ids.has(id));
  if (end <= 0) return sent;
  return [...messages.slice(0, end).filter(({ id }) => !ids.has(id)), ...sent];
}

/**
 * The messages of a sender that was shown them in another form (an older version of the protocol has less), with the
 * thread's own in the place of those that say the same: what could not be shown is no edit.
 */
export function asKnown(
  { messages }: Pick<ThreadBase, "messages">,
  sent: readonly Message[],
  shownAs: (message: Message) => Message,
): readonly Message[] {
  // Only parts are shown otherwise.
  const ids = new Set(sent.filter(({ content }) => Array.isArray(content)).map(({ id }) => id));
  if (ids.size === 0) return sent;
  const known = new Map(messages.filter(({ id }) => ids.has(id)).map((message) => [message.id, message]));
  return sent.map((message) => {
    const own = known.get(message.id);
    return own !== undefined && equalJson(shownAs(own), shownAs(message)) ? own : message;
  });
}

function isSubsequence(sent: readonly Message[], path: readonly Message[]): boolean {
  let at = 0;
  for (const message of sent) {
    while (at < path.length && !same(message, path[at]!)) at++;
    if (at++ >= path.length) return false;
  }
  return true;
}

/** The newest run all of whose messages are among the first `common` of the path. */
function lastWholeRun(base: ThreadBase, path: readonly Message[], common: number): number {
  const cut = path.slice(common).reduce((least, { id }) => Math.min(least, base.runOf.get(id) ?? 0), Infinity);
  return path
    .slice(0, common)
    .map((message) => base.runOf.get(message.id) ?? -1)
    .filter((runIndex) => runIndex < cut)
    .reduce((newest, runIndex) => Math.max(newest, runIndex), -1);
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

/** Equal for equal requests: what is compared when a run id is sent again. FNV-1a over the request's JSON, 64 bits. */
export function fingerprintOf(input: Pick<RunAgentInput, "messages" | "resume" | "forwardedProps">): string {
  const command = commandOf(input);
  const text = JSON.stringify([input.messages, input.resume ?? null, ...(command === undefined ? [] : [command])]);
  let a = 0x811c9dc5;
  let b = 0xcbf29ce4;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ (code + at), 0x01000193);
  }
  return `${(a >>> 0).toString(16)}${(b >>> 0).toString(16)}:${text.length}`;
}
