/** The longest value that a message quotes, in characters. */
const MAX_VALUE = 80;

/** How much of what a run failed with is printed, in characters; the stack comes beside it. */
const MAX_REPORT = 2_000;

/** What a console, a page or a terminal would not show as it is: control, format and private characters, half surrogates. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Text of any origin as a message may carry it: at most `max` characters, all of them visible. */
export function printable(text: string, max: number): string {
  const cut = text.length > max ? `${text.slice(0, max)}…` : text;
  return cut.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** A value of any origin, as a message quotes it: text, a number, or else what kind of thing it is. */
export function quoted(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (typeof value !== "string") return typeof value;
  const whole = value.length <= MAX_VALUE;
  return printable(JSON.stringify(whole ? value : `${value.slice(0, MAX_VALUE)}…`), Infinity);
}

/** A run, for the log of the host. */
export function runName(run: {
  readonly threadId: string;
  readonly runId: string;
  readonly agentId?: string | undefined;
}): string {
  const agent = run.agentId === undefined ? "" : ` (agent ${quoted(run.agentId)})`;
  return `Run ${quoted(run.runId)} of thread ${quoted(run.threadId)}${agent}`;
}

export const failureLine = (name: string, why: string): string => `${name} failed: ${printable(why, MAX_REPORT)}`;
