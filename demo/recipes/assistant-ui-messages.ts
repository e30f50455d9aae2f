// What assistant-ui shows of a thread, and what a thread is given of what assistant-ui sends. Nothing here needs a page.
import type { Interrupt, Message } from "@ag-ui/core";
import type { ThreadRun, ThreadSnapshot } from "ag-ui-local-runtime/client";

const isQuestion = ({ role }: Message): boolean => role === "user";

/** The messages up to the last question, and those that answer it. */
export function lastTurn(messages: readonly Message[]): { asked: readonly Message[]; answer: readonly Message[] } {
  const end = messages.findLastIndex(isQuestion) + 1;
  return { asked: messages.slice(0, end), answer: messages.slice(end) };
}

/**
 * A thread's messages for `fromAgUiMessages`: the last answer says which interrupts are open. Where nothing was answered
 * yet and there is an end to be shown, or an interrupt, an empty answer shows it.
 */
export function shownMessages({ messages, interrupts, run }: Pick<ThreadSnapshot, "messages" | "interrupts" | "run">) {
  const isAnswered = lastTurn(messages).answer.some(({ role }) => role === "assistant");
  const needsAnswer = interrupts.length > 0 || endOf(run) !== undefined;
  const shown: readonly Message[] =
    isAnswered || !needsAnswer || messages.length === 0
      ? messages
      : [...messages, { id: `${messages.at(-1)!.id}-end`, role: "assistant", content: "" }];
  const last = shown.findLastIndex(({ role }) => role === "assistant");
  return shown.map((message, index) => (index === last ? withInterrupts(message, interrupts) : message));
}

const withInterrupts = (message: Message, interrupts: readonly Interrupt[]): Message =>
  interrupts.length === 0 ? message : ({ ...message, metadata: { custom: { agui: { interrupts } } } } as Message);

/** How assistant-ui shows the end of a run that is no plain end. */
export type ShownEnd =
  | { readonly type: "incomplete"; readonly reason: "cancelled" }
  | { readonly type: "incomplete"; readonly reason: "error"; readonly error: string };

/** Of a thread's last run; undefined while one is live, and after one that has finished. */
export function endOf(run: ThreadRun): ShownEnd | undefined {
  if (run.is === "running" || run.last === undefined || run.last.status === "finished") return undefined;
  const { status, error } = run.last;
  return error === undefined && status !== "errored" && status !== "broken"
    ? { type: "incomplete", reason: "cancelled" }
    : { type: "incomplete", reason: "error", error: error?.message ?? status };
}

/**
 * The messages that a run is to begin with. assistant-ui has ids of its own for answers, so only the questions and the
 * results of tools are taken from it.
 *
 * @param known the thread's messages
 * @param seen ids of the questions that the page has shown: others came meanwhile, and stay
 * @param wanted all that assistant-ui sends
 */
export function messagesToRun(
  known: readonly Message[],
  seen: ReadonlySet<string>,
  wanted: readonly Message[],
): Message[] {
  const isKnown = ({ id }: Message): boolean => known.some((message) => message.id === id);
  const questions = wanted.filter(isQuestion);
  const firstNew = questions.findIndex((question) => !isKnown(question));
  const news = firstNew < 0 ? [] : questions.slice(firstNew);
  const before = (firstNew < 0 ? questions : questions.slice(0, firstNew)).at(-1);
  const at = before === undefined ? -1 : known.findIndex(({ id }) => id === before.id);
  // Ends with a question that the thread has: it is answered anew. Else what the page has shown behind it was cut.
  const isAnew = before !== undefined && wanted.at(-1) === before;
  const cut = known.findIndex((message, index) => index > at && isQuestion(message) && seen.has(message.id));
  const kept = isAnew ? known.slice(0, at + 1) : cut < 0 ? known : known.slice(0, cut);
  return [...kept, ...wanted.filter((message) => isResultFor(kept, message)), ...news];
}

/** Whether {@link messagesToRun} only puts questions behind what the thread has. */
export const onlyAsks = (known: readonly Message[], toRun: readonly Message[]): boolean =>
  toRun.length > known.length &&
  known.every((message, index) => toRun[index] === message) &&
  toRun.slice(known.length).every(isQuestion);

/** Whether it answers a call of a tool that has no result yet. */
const isResultFor = (kept: readonly Message[], message: Message): boolean =>
  message.role === "tool" &&
  kept.some((one) => one.role === "assistant" && one.toolCalls?.some(({ id }) => id === message.toolCallId)) &&
  !kept.some((one) => one.role === "tool" && one.toolCallId === message.toolCallId);
