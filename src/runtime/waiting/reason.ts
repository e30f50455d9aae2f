import type { Interrupt } from "@ag-ui/client";
import { resumeFaults } from "../../run/interrupts.js";
import type { ThreadHead } from "../../storage/run-store.js";
import type { WaitingError } from "../../run/types.js";
import type { WaitingRow } from "../../storage/waiting.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { WaitingReason } from "../../wire/waiting-shapes.js";

/** What decides whether the first waiting run of a thread may start. */
export interface Situation {
  readonly head: Pick<ThreadHead, "live" | "activeRunIndex"> | undefined;
  readonly online: boolean;
  /** Ms since the Unix epoch. */
  readonly now: number;
  readonly needsNetwork: boolean;
  /** Names of headers that its agent needs, where neither its call nor a connected tab has them. */
  readonly lacksHeaders: readonly string[];
  readonly openInterrupts: readonly Interrupt[];
  /** Ids of calls of front-end tools whose results are awaited, or go on first. */
  readonly awaitedCalls: readonly string[];
  /** What this host alone knows: that it cannot start the run, and when it tries again. */
  readonly here?: { readonly error?: WaitingError; readonly retryAt?: number } | undefined;
}

/** What matters of a waiting run, or of one that is to wait. */
export type Candidate = Pick<WaitingRow, "kind" | "notBefore" | "error"> & {
  /** What its caller gave it. */
  readonly input?: Pick<RunRequest["input"], "resume" | "messages"> | undefined;
  /** Of a recovery: the run that broke. */
  readonly ofIndex?: number;
};

/** Why the first waiting run of a thread waits; `starting`: nothing keeps it. Those behind it wait for it. */
export function reasonFor(first: Candidate, situation: Situation): WaitingReason {
  const { head, online, now, needsNetwork, lacksHeaders, openInterrupts, awaitedCalls, here } = situation;
  const error = first.error ?? here?.error;
  if (error !== undefined) return { is: "failed", error };
  if (head?.live !== undefined) return { is: "busy", runId: head.live.runId };
  // The thread went on without it: whoever starts it finds that out, and it holds up nothing.
  if (first.kind === "recovery" && head !== undefined && head.activeRunIndex !== first.ofIndex)
    return { is: "starting" };
  // A run that goes on with a broken one answers what that one did; the runner refuses it where it does not.
  if (first.kind === "run" && resumeFaults(openInterrupts, first.input?.resume, now) !== undefined) {
    return { is: "interrupts", interruptIds: openInterrupts.map(({ id }) => id) };
  }
  const brings = new Set(first.input?.messages.flatMap((one) => (one.role === "tool" ? one.toolCallId : [])));
  if (first.kind === "run" && awaitedCalls.some((id) => !brings.has(id))) return { is: "tool-calls" };
  if (needsNetwork && !online) return { is: "offline" };
  const at = Math.max(first.notBefore ?? 0, here?.retryAt ?? 0);
  if (at > now) return { is: "retry", at };
  // A broken run is decided first: it may not go on.
  const isDecided = first.kind === "run" || first.notBefore !== undefined;
  return isDecided && lacksHeaders.length > 0 ? { is: "headers", names: lacksHeaders } : { is: "starting" };
}
