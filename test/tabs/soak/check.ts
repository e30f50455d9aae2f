import { type BaseEvent, EventType, verifyEvents } from "@ag-ui/client";
import { from } from "rxjs";
import type { Note } from "../pages/scripted-notes.js";

/** What a tab was told of one thread, in order. Numbers are the text of an agent that says "0 1 2 …". */
export type Piece =
  /** More of a run's text. */
  | { readonly is: "text"; readonly runId: string; readonly text: string }
  /** All of it, by run: what was said before counts no more. */
  | { readonly is: "snapshot"; readonly texts: Readonly<Record<string, string>> }
  /** The run's terminal event, as {@link endOf} has it. */
  | { readonly is: "end"; readonly runId: string; readonly end: string };

/** What one load of a page was told of one thread. */
export interface Seen {
  readonly load: string;
  readonly threadId: string;
  readonly pieces: readonly Piece[];
}

/** A run as it stands in the log. */
export interface LoggedRun {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex: number;
  readonly status: string;
  /** Why it did not go on by itself, where the log says so. */
  readonly recovery?: string;
  /** How many numbers its agent was asked for. */
  readonly ordered: number;
  readonly events: readonly { readonly seq: number; readonly event: BaseEvent }[];
}

/** What a tab shows of a thread that is idle: each message as text. */
export interface Shown {
  readonly load: string;
  readonly threadId: string;
  readonly messages: readonly string[];
}

export interface Evidence {
  readonly seen: readonly Seen[];
  readonly log: readonly LoggedRun[];
  readonly notes: readonly Note[];
  /** Of each thread, the log's own messages among them. */
  readonly shown: readonly Shown[];
}

/** What is wrong, a sentence each. All of it must be empty. */
export interface Findings {
  /** Seen, or executed, and not in the log; or shown and then shown no more (L2, L8). */
  readonly missing: string[];
  /** Told or logged twice (L2, L7). */
  readonly repeats: string[];
  /** Left out (L2). */
  readonly gaps: string[];
  /** A log that is no AG-UI sequence, or does not end as its run did (L3, L7). */
  readonly invalid: string[];
  /** One run by two executions (L13). */
  readonly twice: string[];
  /** Two executions in one thread at a time (L5). */
  readonly overlaps: string[];
  /** Tabs that do not agree, or not with the log (L2). */
  readonly differing: string[];
}

export const noFindings = (): Findings => ({
  missing: [],
  repeats: [],
  gaps: [],
  invalid: [],
  twice: [],
  overlaps: [],
  differing: [],
});

/** A terminal event in a word; undefined for any other. */
export function endOf(event: BaseEvent): string | undefined {
  const { type, code, outcome } = event as BaseEvent & { code?: string; outcome?: { type: string } };
  if (type === EventType.RUN_ERROR) return code === "RUN_BROKEN" ? "broken" : `errored ${code ?? ""}`;
  if (type !== EventType.RUN_FINISHED) return undefined;
  return outcome?.type === "cancelled" ? "stopped" : "finished";
}

export const messageIdOf = (runId: string): string => `numbers-${runId}`;
const PREFIX = messageIdOf("");
/** The run whose numbers a message holds. */
export const runIdOf = (messageId: string): string | undefined =>
  messageId.startsWith(PREFIX) ? messageId.slice(PREFIX.length) : undefined;

/** Checks all laws that the evidence can speak of. */
export function check({ seen, log, notes, shown }: Evidence): Findings {
  const findings = noFindings();
  const runs = new Map(log.map((run) => [keyOf(run.threadId, run.runId), { run, ...readLogged(run, findings) }]));
  checkIndexes(log, findings);
  checkExecutions(notes, runs, findings);
  for (const one of seen) {
    for (const [runId, { text, end }] of readSeen(one, findings)) {
      const logged = runs.get(keyOf(one.threadId, runId));
      const who = `${one.load} saw of ${runId}`;
      if (logged === undefined) findings.missing.push(`${who} what is no run of the log`);
      else if (!logged.text.startsWith(text)) findings.missing.push(`${who} "${text}", the log has "${logged.text}"`);
      else if (end !== undefined && end !== logged.end) {
        findings.differing.push(`${who} the end ${end}, the log has ${String(logged.end)}`);
      }
    }
  }
  checkShown(shown, findings);
  return findings;
}

const keyOf = (threadId: string, runId: string): string => `${threadId} ${runId}`;

function byThread<T extends { readonly threadId: string }>(all: readonly T[]): Map<string, T[]> {
  const threads = new Map<string, T[]>();
  for (const one of all) {
    const before = threads.get(one.threadId);
    if (before) before.push(one);
    else threads.set(one.threadId, [one]);
  }
  return threads;
}

/** Adds numbers to numbers: what comes next must be the next one. */
function joined(text: string, more: string, what: string, findings: Findings): string {
  let next = text === "" ? 0 : Number(text.split(" ").at(-1)) + 1;
  for (const word of more.trim().split(" ")) {
    const number = Number(word);
    if (number < next) findings.repeats.push(`${what}: ${number} comes again, before ${next}`);
    else if (number > next) findings.gaps.push(`${what}: ${number} comes where ${next} should`);
    else if (word !== String(next)) findings.gaps.push(`${what}: "${more}" is no number`);
    next = number + 1;
  }
  return text + more;
}

/** What the load had seen of each run at its end. */
function readSeen({ load, threadId, pieces }: Seen, findings: Findings): Map<string, { text: string; end?: string }> {
  const runs = new Map<string, { text: string; end?: string }>();
  // A snapshot tells ends again.
  let ended = new Set<string>();
  for (const piece of pieces) {
    if (piece.is === "snapshot") {
      ended = new Set();
      for (const [runId, { text }] of runs) {
        if ((piece.texts[runId] ?? "").startsWith(text)) continue;
        findings.missing.push(`${load} was shown "${text}" of ${runId} in ${threadId}, and then no more`);
      }
      for (const [runId, whole] of Object.entries(piece.texts)) {
        const text = whole === "" ? "" : joined("", whole, `${load}, snapshot of ${runId}`, findings);
        runs.set(runId, { ...runs.get(runId), text });
      }
      continue;
    }
    const { runId } = piece;
    const run = runs.get(runId) ?? { text: "" };
    if (piece.is === "text") {
      if (ended.has(runId)) findings.repeats.push(`${load} was told more of ${runId} after its end`);
      runs.set(runId, { ...run, text: joined(run.text, piece.text, `${load}, ${runId}`, findings) });
      continue;
    }
    if (ended.has(runId)) findings.repeats.push(`${load} was told the end of ${runId} twice`);
    if (run.end !== undefined && run.end !== piece.end) {
      findings.differing.push(`${load} was told that ${runId} ${run.end}, then that it ${piece.end}`);
    }
    ended.add(runId);
    runs.set(runId, { ...run, end: piece.end });
  }
  return runs;
}

/** What the log says of a run. */
function readLogged(run: LoggedRun, findings: Findings): { text: string; end: string | undefined } {
  const { runId, events } = run;
  const what = `log of ${runId} (${run.threadId}, ${run.runIndex})`;
  events.forEach(({ seq }, index) => {
    if (seq > index) findings.gaps.push(`${what}: seq ${seq} stands where ${index} should`);
    if (seq < index) findings.repeats.push(`${what}: seq ${seq} stands again`);
  });
  let text = "";
  const ends: string[] = [];
  for (const { event } of events) {
    const end = endOf(event);
    if (end !== undefined) ends.push(end);
    const { messageId, delta } = event as BaseEvent & { messageId?: string; delta?: string };
    if (event.type !== EventType.TEXT_MESSAGE_CONTENT || messageId !== messageIdOf(runId)) continue;
    text = joined(text, delta ?? "", what, findings);
  }
  const [end] = ends;
  if (ends.length !== 1 || endOf(events.at(-1)!.event) !== end) {
    findings.invalid.push(`${what} has the ends [${ends.join(", ")}], which must be one, at the end`);
  }
  if (end?.split(" ")[0] !== run.status)
    findings.invalid.push(`${what}: the run is ${run.status}, its terminal event says ${end}`);
  const said = text === "" ? 0 : text.split(" ").length;
  if (run.status === "finished" && said !== run.ordered) {
    findings.missing.push(`${what} finished with ${said} numbers of ${run.ordered}`);
  }
  const refusal = refusalOf(events.map(({ event }) => event));
  if (refusal !== undefined) findings.invalid.push(`${what}: ${refusal}`);
  return { text, end };
}

/** Why the client's verifier refuses the events. */
function refusalOf(events: readonly BaseEvent[]): string | undefined {
  let refusal: string | undefined;
  from(events)
    .pipe(verifyEvents())
    .subscribe({ error: (error: unknown) => (refusal = String(error)) });
  return refusal;
}

/** A thread's runs are numbered without gap, and have an id each. */
function checkIndexes(log: readonly LoggedRun[], findings: Findings): void {
  for (const [threadId, runs] of byThread(log)) {
    const indexes = runs.map(({ runIndex }) => runIndex).sort((a, b) => a - b);
    indexes.forEach((runIndex, place) => {
      if (runIndex > place) findings.gaps.push(`${threadId}: run ${runIndex} stands where ${place} should`);
      if (runIndex < place) findings.repeats.push(`${threadId}: run ${runIndex} stands again`);
    });
    const ids = new Set(runs.map(({ runId }) => runId));
    if (ids.size < runs.length) findings.repeats.push(`${threadId}: ${runs.length} runs have ${ids.size} ids`);
  }
}

function checkExecutions(
  notes: readonly Note[],
  runs: ReadonlyMap<string, { text: string }>,
  findings: Findings,
): void {
  const executed = new Map<string, string>();
  for (const [threadId, ofThread] of byThread(notes)) {
    const last = new Map(ofThread.map(({ execution }, index) => [execution, index]));
    const open = new Map<string, string>();
    ofThread.forEach(({ is, runId, execution }, index) => {
      for (const [other] of open) if (last.get(other)! < index) open.delete(other);
      if (is !== "started") return;
      const key = keyOf(threadId, runId);
      if (executed.has(key)) findings.twice.push(`${runId} of ${threadId} was executed twice`);
      executed.set(key, execution);
      for (const otherRun of open.values()) {
        findings.overlaps.push(`${runId} of ${threadId} was started while ${otherRun} was going on`);
      }
      open.set(execution, runId);
    });
  }
  for (const key of executed.keys())
    if (!runs.has(key)) findings.missing.push(`${key} was executed and is not in the log`);
  for (const [key, { text }] of runs) {
    if (text !== "" && !executed.has(key)) findings.missing.push(`${key} is in the log and was never executed`);
  }
}

function checkShown(shown: readonly Shown[], findings: Findings): void {
  for (const [threadId, all] of byThread(shown)) {
    const [first, ...others] = all;
    for (const { load, messages } of others) {
      const index = messages.findIndex((message, at) => message !== first!.messages[at]);
      if (index < 0 && messages.length === first!.messages.length) continue;
      const at = index < 0 ? messages.length : index;
      findings.differing.push(
        `${threadId}, message ${at}: ${load} shows "${messages[at]}", ${first!.load} "${first!.messages[at]}" (${messages.length} and ${first!.messages.length} messages)`,
      );
    }
  }
}
