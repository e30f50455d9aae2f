import type { Interrupt, RunAgentInput } from "@ag-ui/client";

type Resume = RunAgentInput["resume"];
type Entry = NonNullable<Resume>[number];

/** What is wrong with a resume list; each names interrupts that are open. */
export interface ResumeFaults {
  /** They have no entry. */
  readonly missing: readonly string[];
  /** They have more than one entry. */
  readonly doubled: readonly string[];
  /** They have expired: an entry can only cancel them. */
  readonly expired: readonly string[];
}

/**
 * AG-UI: a resume list covers every interrupt of the run that it continues, each answered or cancelled; one that has
 * expired can only be cancelled. `expiresAt` is read as the reference client does: as a date, now counts as expired.
 * Entries that name no open interrupt are no fault: they are the agent's to judge.
 *
 * @param now ms since the Unix epoch
 * @returns undefined where the list is complete
 */
export function resumeFaults(open: readonly Interrupt[], resume: Resume, now: number): ResumeFaults | undefined {
  const entries = new Map<string, readonly Entry[]>();
  for (const entry of resume ?? []) {
    const before = entries.get(entry.interruptId);
    // Two are as wrong as many.
    if (before === undefined || before.length < 2) entries.set(entry.interruptId, [...(before ?? []), entry]);
  }
  const entriesOf = ({ id }: Interrupt): readonly Entry[] => entries.get(id) ?? [];
  const idsWhere = (holds: (interrupt: Interrupt) => boolean): string[] => open.filter(holds).map(({ id }) => id);
  const faults: ResumeFaults = {
    missing: idsWhere((interrupt) => entriesOf(interrupt).length === 0),
    doubled: idsWhere((interrupt) => entriesOf(interrupt).length > 1),
    expired: idsWhere(
      (interrupt) => isExpired(interrupt, now) && entriesOf(interrupt).some(({ status }) => status !== "cancelled"),
    ),
  };
  const { missing, doubled, expired } = faults;
  return missing.length + doubled.length + expired.length === 0 ? undefined : faults;
}

function isExpired({ expiresAt }: Interrupt, now: number): boolean {
  return expiresAt !== undefined && new Date(expiresAt).getTime() <= now;
}

/** The ids of entries that name no open interrupt. */
export function unknownAnswers(open: readonly string[], resume: Resume): readonly string[] {
  const known = new Set(open);
  return (resume ?? []).flatMap(({ interruptId }) => (known.has(interruptId) ? [] : [interruptId]));
}

/**
 * The request answers an earlier run: by AG-UI's `resume`, or as CopilotKit answers what LangGraph asks,
 * `forwardedProps.command.resume`. Clients send both under the id of the run that asked.
 */
export const isAnswer = (input: Pick<RunAgentInput, "resume" | "forwardedProps">): boolean =>
  (input.resume ?? []).length > 0 || commandOf(input) !== undefined;

/** Whether a run of the log is the one asked for. An answer that reuses the id of the run that asked is another run. */
export const isThatRun = (
  run: { readonly fingerprint: string },
  asked: { readonly fingerprint: string; readonly answers?: boolean },
): boolean => run.fingerprint === asked.fingerprint || asked.answers !== true;

/** CopilotKit's answer to what LangGraph asks. */
export function commandOf({ forwardedProps }: Pick<RunAgentInput, "forwardedProps">): object | undefined {
  const command = fieldOf(forwardedProps, "command");
  return typeof command === "object" && fieldOf(command, "resume") !== undefined ? (command ?? undefined) : undefined;
}

function fieldOf(value: unknown, field: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, field)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[field];
}

/** How many ids a sentence names. */
const NAMED = 10;

function named(ids: readonly string[]): string {
  const more = ids.length - NAMED;
  return `${ids.slice(0, NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** The faults in words. */
export function describeFaults({ missing, doubled, expired }: ResumeFaults): string {
  const parts = [
    missing.length > 0 ? `not answered: ${named(missing)}` : [],
    doubled.length > 0 ? `answered more than once: ${named(doubled)}` : [],
    expired.length > 0 ? `expired, so that it can only be cancelled: ${named(expired)}` : [],
  ].flat();
  return `The thread has open interrupts; input.resume must answer or cancel each of them once (${parts.join("; ")})`;
}
