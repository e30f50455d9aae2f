import type { Message } from "@ag-ui/core";
import { isRetryable } from "../../../src/run/run-error-codes.js";
import type { LoggedRun } from "../soak/check.js";
import { answerOf, placeOf, planIn, resultOf, type Plan } from "./plan.js";
import type { Typed, Witness } from "./witness.js";

export interface ChaosEvidence {
  readonly witness: Pick<Witness, "typed" | "executions">;
  /** Plans of all messages, by their ids. */
  readonly plans: ReadonlyMap<string, Plan>;
  /** How often a person had a message answered again. */
  readonly retries: ReadonlyMap<string, number>;
  /** The messages of each thread's path, as the log has them. */
  readonly threads: ReadonlyMap<string, readonly Message[]>;
  readonly runs: readonly LoggedRun[];
}

/** What became of an answer. */
export interface Answer {
  readonly messageId: string;
  readonly isWhole: boolean;
  /** How the last run that worked on it ended; undefined: none did. */
  readonly status: string | undefined;
  /** Why it is not whole, where it is not. */
  readonly left: string | undefined;
}

/** What must not be, a sentence each; and what became of the answers. */
export function checkChaos(evidence: ChaosEvidence): { readonly found: string[]; readonly answers: Answer[] } {
  const found = [...executionFaults(evidence)];
  const answers: Answer[] = [];
  for (const [threadId, messages] of evidence.threads) {
    found.push(...typingFaults(threadId, messages, evidence.witness.typed));
    answersIn(messages).forEach(({ plan, answer }, index, all) => {
      const { faults, ...what } = readAnswer(plan, answer, evidence.runs);
      answers.push(what);
      found.push(...faults.map((fault) => `${threadId}, answer of ${plan.id}: ${fault}`));
      if (index === all.length - 1 && !what.isWhole)
        found.push(`${threadId}: the last answer (${plan.id}) is not whole`);
    });
  }
  return { found, answers };
}

/** No call that must not be repeated was; and none was made again by the same answer after it had been executed. */
function* executionFaults({ witness, retries }: ChaosEvidence): Generator<string> {
  const places = new Map<string, Set<string>>();
  for (const [toolCallId, executions] of witness.executions) {
    const { place, name } = placeOf(toolCallId);
    places.set(place, (places.get(place) ?? new Set()).add(toolCallId));
    if (name === "pay" && executions.size > 1) yield `${toolCallId} was executed ${executions.size} times`;
  }
  for (const [place, ids] of places) {
    const allowed = 1 + (retries.get(placeOf(place).message) ?? 0);
    if (ids.size > allowed) yield `${place} was executed as ${[...ids].join(" and as ")}`;
  }
}

/** Each message that was taken is there once, no other one twice, and they stand in the order in which they were typed. */
function* typingFaults(
  threadId: string,
  messages: readonly Message[],
  typed: ReadonlyMap<string, Typed>,
): Generator<string> {
  const users = messages.filter(({ role }) => role === "user").map(({ id }) => id);
  const ofThread = [...typed.values()].filter((one) => one.threadId === threadId);
  for (const { messageId, takenAt, refused } of ofThread) {
    const times = users.filter((id) => id === messageId).length;
    if (times > 1) yield `${threadId}: ${messageId} is there ${times} times`;
    if (times === 0 && takenAt !== undefined) yield `${threadId}: ${messageId} was taken, and is lost`;
    if (times > 0 && refused !== undefined) yield `${threadId}: ${messageId} was refused (${refused}), and is there`;
  }
  for (const first of ofThread) {
    for (const second of ofThread) {
      const [a, b] = [users.indexOf(first.messageId), users.indexOf(second.messageId)];
      if (a < 0 || b < 0 || first.takenAt === undefined || first.takenAt > second.at) continue;
      if (a > b) yield `${threadId}: ${second.messageId} was typed after ${first.messageId}, and stands before it`;
    }
  }
}

interface Turn {
  readonly plan: Plan;
  readonly answer: readonly Message[];
}

function answersIn(messages: readonly Message[]): Turn[] {
  const turns: (Turn & { readonly answer: Message[] })[] = [];
  for (const message of messages) {
    const plan = message.role === "user" ? planIn(message.content) : undefined;
    if (plan !== undefined) turns.push({ plan, answer: [] });
    else turns.at(-1)?.answer.push(message);
  }
  return turns;
}

/** The run that a message came with, and the attempts that went on with it, in order. */
function runsOf(messageId: string, runs: readonly LoggedRun[]): LoggedRun[] {
  const brought = ({ events }: LoggedRun): boolean => {
    const { input } = (events[0]?.event ?? {}) as { input?: { messages?: readonly Message[] } };
    return input?.messages?.some(({ id }) => id === messageId) === true;
  };
  const ids = runs.filter(brought).map(({ runId }) => runId);
  return runs
    .filter(({ runId }) => ids.includes(runId.split("~")[0]!))
    .toSorted((one, other) => one.runIndex - other.runIndex);
}

/** What must not be: all messages wait for their turn, and a recovery goes before them. */
const WENT_ON = "gave-up went-on";

/** Why an answer was left to a person: a failure that will not pass, or what its policy does not do by itself. */
function leftBecause(last: LoggedRun | undefined): string {
  const { code } = (last?.events.at(-1)?.event ?? {}) as { code?: string };
  if (last?.recovery !== undefined) return last.recovery;
  const passes = last?.status === "broken" || code === undefined || code === "INCOMPLETE_STREAM" || isRetryable(code);
  if (last?.status === "running") return "it runs";
  return passes ? WENT_ON : code;
}

/** A run in a line. */
const told = ({ runIndex, runId, status, events }: LoggedRun): string =>
  `${runIndex} ${runId} ${status} (${events
    .map(({ event }) => event)
    .map(({ type, messageId, toolCallId, messages, message }) =>
      [type, messageId ?? toolCallId ?? message, Array.isArray(messages) ? messages.length : undefined]
        .filter((part) => part !== undefined)
        .join(" "),
    )
    .filter((line, at, all) => line !== all[at - 1])
    .join(", ")})`;

function readAnswer(
  plan: Plan,
  answer: readonly Message[],
  runs: readonly LoggedRun[],
): Answer & { readonly faults: string[] } {
  const faults: string[] = [];
  const expected = answerOf(plan);
  const said = answer.flatMap((message) => (message.role === "assistant" ? [message.content ?? ""] : [])).join("");
  if (!expected.startsWith(said)) faults.push(`it says "${said}", and was to say "${expected}"`);
  const calls = answer.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
  const results = new Map(answer.flatMap((it) => (it.role === "tool" ? [[it.toolCallId, it.content] as const] : [])));
  const places = calls.map(({ id }) => placeOf(id).place);
  const planned = plan.steps.flatMap((step, at) =>
    step.calls.map((name, index) => [plan.id, at, name, index].join(".")),
  );
  if (places.join() !== planned.slice(0, places.length).join()) {
    faults.push(`it calls ${places.join(", ")}, and was to call ${planned.join(", ")}`);
  }
  const isWhole = said === expected && places.length === planned.length;
  const own = runsOf(plan.id, runs);
  const status = own.at(-1)?.status;
  if (isWhole) {
    for (const { id } of calls) {
      if (results.get(id) !== resultOf(id)) faults.push(`${id} has the result "${String(results.get(id))}"`);
    }
  } else if (status === "finished") faults.push(`it finished with "${said}" of "${expected}"`);
  const left = isWhole ? undefined : leftBecause(own.at(-1));
  if (left === WENT_ON) faults.push("the thread went on before it was answered");
  if (status === "running") faults.push("its run never ended");
  if (faults.length > 0) faults.push(`its runs are ${own.map(told).join("; ")}`);
  return { messageId: plan.id, isWhole, status, left, faults };
}
