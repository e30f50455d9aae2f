import type { OpenChannel } from "../platform/channel.js";
import type { Clock } from "../platform/clock.js";
import type { MakeId } from "../platform/ids.js";
import type { Locks } from "../platform/locks.js";
import type { Logger } from "../platform/log.js";
import { CLOCK, COUNT, FUNCTION, oneOf, TIMEOUT, USER, whole, type Elsewhere, type Names } from "../run/options.js";
import type { AtFailurePoint } from "../run/failure-points.js";
import type { OnOpened } from "../storage/encryption/key-ring.js";
import type { RunStore } from "../storage/run-store.js";
import { INPUT_FIELDS, type InputField } from "./agent/accept.js";
import type { ConcurrentRunPolicy } from "./parts.js";
import type { Durability } from "../wire/shapes.js";
import type { EventLimits } from "./agent/event-limits.js";
import type { RunnerLimits } from "./keep/limits.js";

/** Options of every runner. */
export interface LocalAgentRunnerOptions {
  /**
   * The user whose runner this is, 1 to 200 characters; in a worker mostly `self.name`. The database is then called
   * `<dbName>@<user>`, the user written as in a URL, and only tabs that connect for this user are served. Default: none.
   */
  readonly user?: string;
  /** How long an agent has to end after it was asked to stop, in ms. Default 2,000. */
  readonly stopGraceMs?: number;
  /**
   * How long a run may last, in ms. Then the agent is asked to end, and within `stopGraceMs` the run is errored with
   * `code: "RUN_TIMEOUT"`. Default: as long as it takes.
   */
  readonly maxRunMs?: number;
  /** What happens to a run that is requested while another run of its thread is live. Default `throw`. */
  readonly onConcurrentRun?: ConcurrentRunPolicy;
  /** How many runs of one thread may wait in this runner with `onConcurrentRun: "queue"`. Default 16. */
  readonly maxQueuedRuns?: number;
  /** How much history is kept. Default: all of it; in memory see `MemoryLimits`. */
  readonly limits?: RunnerLimits;
  /** What agents may emit; exceeding a limit ends the run. */
  readonly eventLimits?: EventLimits;
  /** Where the errors of agents are printed, with their stack. Default: the console of the host. */
  readonly logger?: Logger;
  /**
   * Further fields of a run's input that its RUN_STARTED stores, beside ids, the new messages and `resume`: `tools`,
   * `context`, `forwardedProps`, `state`. They may hold secrets. Default: none of them.
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

/** Events of a store as a whole. */
export interface StoreEvents {
  /** The database is about to be upgraded by a newer build, or (`deleted`) to be deleted. */
  readonly onOutdated: (deleted: boolean) => Promise<void>;
  /** Keys of the store were unlocked: there may be something for `encryptRest`. */
  readonly onKeys: OnOpened;
  /** The connection was closed for a deletion (`deleted`), or dropped, perhaps because of one. */
  readonly onGone: (deleted: boolean) => void;
}

/** What a runner keeps its threads in. */
export interface RunnerPreset {
  readonly dbName: string;
  readonly durability: Durability;
  readonly locks: Locks;
  /** All hosts are in this process: none dies alone, and one that closes says so. Default false. */
  readonly isOneProcess?: boolean;
  readonly openChannel: OpenChannel;
  readonly openStore: (events: StoreEvents) => RunStore;
  /** Deletes everything; called after the store was closed. */
  readonly deleteStore: () => Promise<void>;
}

const INPUT_FIELD = oneOf(...INPUT_FIELDS);

/** The names of {@link LocalAgentRunnerOptions}; `limits` and `eventLimits` are checked where they are read. */
export const RUNNER_NAMES: Names<LocalAgentRunnerOptions> = {
  user: USER,
  stopGraceMs: whole(0, { endless: false }),
  maxRunMs: TIMEOUT,
  onConcurrentRun: oneOf<ConcurrentRunPolicy>("throw", "supersede", "queue"),
  maxQueuedRuns: COUNT,
  recordInput: [(given) => Array.isArray(given) && given.every(INPUT_FIELD[0]), `a list: ${INPUT_FIELD[1]}`],
  limits: true,
  eventLimits: true,
  logger: ["error", "warn"],
  clock: CLOCK,
  makeId: FUNCTION,
  atFailurePoint: FUNCTION,
};

/** CopilotKit's runners take these at the top level. */
export const LIMITS_ELSEWHERE: Elsewhere = {
  maxThreads: "write limits.maxThreads",
  maxRunsPerThread: "write limits.maxRunsPerThread",
  maxBytes: "write limits.maxBytes",
};
