import type { OpenChannel } from "../platform/channel.js";
import type { Clock } from "../platform/clock.js";
import type { MakeId } from "../platform/ids.js";
import type { Locks } from "../platform/locks.js";
import type { Logger } from "../platform/log.js";
import { RunnerError } from "../run/errors.js";
import { checkList, type Elsewhere, type Names } from "../run/options.js";
import type { AtFailurePoint } from "../run/failure-points.js";
import type { RunStore } from "../storage/run-store.js";
import { INPUT_FIELDS, type InputField } from "./agent/accept.js";
import { checkOneOf, checkOption } from "./checks.js";
import type { ConcurrentRunPolicy } from "./parts.js";
import type { Durability } from "../wire/shapes.js";
import type { EventLimits } from "./agent/event-limits.js";
import { checkLimits, type RunnerLimits } from "./keep/retention.js";

/** What every runner of the project can be told. */
export interface LocalAgentRunnerOptions {
  /** How long an agent has to end after it was asked to stop, in ms. Default 2,000. */
  readonly stopGraceMs?: number;
  /**
   * How long a run may last, in ms. After it the agent is asked to end, and within `stopGraceMs` the run is errored with
   * `code: "RUN_TIMEOUT"`. Default: as long as it takes.
   */
  readonly maxRunMs?: number;
  /** What happens to a run that is asked for while another run of its thread is live. Default `throw`. */
  readonly onConcurrentRun?: ConcurrentRunPolicy;
  /** How many runs of one thread may wait in this runner with `onConcurrentRun: "queue"`. Default 16. */
  readonly maxQueuedRuns?: number;
  /** How much history is kept. Default: all of it. */
  readonly limits?: RunnerLimits;
  /** What agents may emit; what goes beyond it ends its run. */
  readonly eventLimits?: EventLimits;
  /** Where the errors of agents are printed, with their stack. Default: the console of the host. */
  readonly logger?: Logger;
  /**
   * What is stored of a run's input in its RUN_STARTED, beside ids, the new messages and `resume`: `tools`, `context`,
   * `forwardedProps`, `state`. They may hold secrets. Default: none of them.
   */
  readonly recordInput?: readonly InputField[];
  readonly clock?: Clock;
  readonly makeId?: MakeId;
  /**
   * Called between the steps of runs, for tests that end the host there.
   *
   * @internal
   */
  readonly atFailurePoint?: AtFailurePoint;
}

/** What happens to a store as a whole. */
export interface StoreEvents {
  /** It is about to be lost: to a newer build, or (`deleted`) for good. */
  readonly onOutdated: (deleted: boolean) => Promise<void>;
  /** It was let go of because it is `deleted`, or fell and may be deleted. */
  readonly onGone: (deleted: boolean) => void;
}

/** What a runner keeps its threads in. */
export interface RunnerPreset {
  readonly dbName: string;
  readonly durability: Durability;
  readonly locks: Locks;
  /** All hosts are in this process: none of them ends unless all do, or it says so. Default false. */
  readonly isOneProcess?: boolean;
  readonly openChannel: OpenChannel;
  readonly openStore: (events: StoreEvents) => RunStore;
  /** Deletes everything; called after the store was closed. */
  readonly deleteStore: () => Promise<void>;
}

/** Of {@link LocalAgentRunnerOptions}. */
export const RUNNER_NAMES: Names<LocalAgentRunnerOptions> = {
  stopGraceMs: true,
  maxRunMs: true,
  onConcurrentRun: true,
  maxQueuedRuns: true,
  recordInput: true,
  limits: true,
  eventLimits: true,
  logger: true,
  clock: true,
  makeId: true,
  atFailurePoint: true,
};

/** CopilotKit's runners have them beside the others. */
export const LIMITS_ELSEWHERE: Elsewhere = {
  maxThreads: "write limits.maxThreads",
  maxRunsPerThread: "write limits.maxRunsPerThread",
  maxBytes: "write limits.maxBytes",
};

const POLICIES: readonly ConcurrentRunPolicy[] = ["throw", "supersede", "queue"];

/** @throws RunnerError `invalid-input` */
export function checkOptions({
  stopGraceMs,
  maxRunMs,
  onConcurrentRun,
  maxQueuedRuns,
  limits,
  logger,
  recordInput,
}: LocalAgentRunnerOptions): void {
  checkOneOf("onConcurrentRun", onConcurrentRun ?? "throw", POLICIES);
  checkLimits(limits ?? {});
  checkOption("stopGraceMs", stopGraceMs, { least: 0, endless: false });
  checkOption("maxRunMs", maxRunMs, { least: 1, endless: true });
  checkOption("maxQueuedRuns", maxQueuedRuns, { least: 0, endless: true });
  checkLogger(logger);
  checkList("recordInput", recordInput);
  for (const field of recordInput ?? []) checkOneOf("recordInput", field, INPUT_FIELDS);
}

/** @throws RunnerError `invalid-input` */
export function checkLogger(logger: Logger | undefined): void {
  if (
    logger === undefined ||
    (typeof (logger as Logger | null)?.error === "function" && typeof logger.warn === "function")
  )
    return;
  const field = "logger";
  throw new RunnerError("invalid-input", { field }, { message: "logger must have the methods error and warn" });
}
