import type { Clock } from "../platform/clock.js";
import type { MakeId } from "../platform/ids.js";
import type { Locks } from "../platform/locks.js";
import type { Logger } from "../platform/log.js";
import type { HostChannel } from "../lock/protocol.js";
import type { RecoveryPolicy } from "../run/recovery.js";
import type { AtFailurePoint } from "../run/failure-points.js";
import type { InputField } from "./agent/accept.js";
import type { PlacedRequest } from "./request.js";
import type { RunRow, RunStore } from "../storage/run-store.js";
import type { EventLimits } from "./agent/event-limits.js";
import type { ToolResult } from "../run/pending-tool-calls.js";
import type { FedRun } from "../run/run-feed.js";

/**
 * What happens to a run that is requested while another run of its thread is live.
 * - `throw`: it is refused as `thread-busy`.
 * - `supersede`: the live run ends at once as `superseded`, and this one takes its place.
 * - `queue`: it waits, in request order; `stop` with its runId removes it from the queue.
 */
export type ConcurrentRunPolicy = "throw" | "supersede" | "queue";

/** Recovery of broken runs. A runner alone recovers none: `policyOf` is set by whoever can start runs by itself. */
export interface RecoveryParts {
  /** The policy of an agent; undefined: its broken runs are left to people. Absent: so are all. */
  policyOf?: (agentId: string | undefined) => RecoveryPolicy | undefined;
  /** Whether this host goes on with a broken run of another device. Absent: with none. */
  takesOver?: (run: Pick<RunRow, "device" | "asker">) => boolean;
  /** A run waits from now on that goes on with a broken one. */
  readonly added: (threadId: string) => void;
}

/** Whether a run may start, as other devices see it. */
export type Admission =
  /** `release` is called where it does not start after all, or once it stands in the log. */
  | { readonly is: "admitted"; readonly release: () => void }
  /** What others added must be written down first, which needs the thread's lock. `wait` without it, then ask again. */
  | { readonly is: "behind"; readonly wait: () => Promise<void> }
  /** Another device is about to start a run, or has one. */
  | { readonly is: "busy"; readonly runId: string; readonly deviceName: string }
  /**
   * A server executes it. `wait`, without the lock, resolves once the run stands in this log (`elsewhere`), or where no server
   * has taken it and this host is to execute it (`here`). Errors: why it does not start; `cancelled` if `signal` aborts first,
   * `closed` where that is its reason: then the run goes on there.
   */
  | { readonly is: "elsewhere"; readonly wait: (signal: AbortSignal) => Promise<"elsewhere" | "here"> };

/** A tool call and its result. */
export interface AnsweredCall {
  readonly threadId: string;
  readonly result: ToolResult;
  readonly followUp: boolean;
}

/** Other devices that have the same threads. Without `admit` there are none. */
export interface ElsewhereParts {
  /** Threads that somebody has opened in this host: they stay on this device. */
  readonly used: Set<string>;
  /** Resolves when `fetch` is there, if it comes. */
  known?: Promise<unknown>;
  /** Resolves when the thread is here, if others have it. Errors: RunnerError `offline` where it cannot come now */
  fetch?: (threadId: string) => Promise<void>;
  /** The run that this host executes in the thread now. */
  live?: (threadId: string) => FedRun | undefined;
  /** Something of that run was committed. */
  advanced?: (threadId: string) => void;
  /** The run of another device that is written down in the thread now, in this context. */
  written?: (threadId: string) => FedRun | undefined;
  /** Errors: RunnerError `offline` or `call-over`, for a run that is to be executed elsewhere. */
  admit?: (request: PlacedRequest) => Promise<Admission>;
  /** Resolves when others know of the result of a tool call, or soon. Errors: RunnerError `call-over` where another one was first */
  answer?: (answered: AnsweredCall) => Promise<void>;
  /** Resolves when others have what this host has ended, or soon. */
  leave?: () => Promise<void>;
}

/** The parts of the runner's algorithm. Presets choose them. */
export interface RunnerParts {
  readonly dbName: string;
  /** This host's id, in heads and on the channel. */
  readonly hostId: string;
  readonly store: RunStore;
  readonly locks: Locks;
  /** All hosts share one process: none dies alone, so none is watched. */
  readonly isOneProcess: boolean;
  readonly channel: HostChannel;
  readonly clock: Clock;
  readonly makeId: MakeId;
  /** Never throws. */
  readonly logger: Required<Logger>;
  /** How long an agent has to end after it was asked to stop, in ms. */
  readonly stopGraceMs: number;
  /** How long a run may last before its agent is asked to end, in ms; absent: as long as it takes. */
  readonly maxRunMs?: number;
  readonly eventLimits: Required<EventLimits>;
  /** What a run's recorded input holds beside ids, new messages and `resume`. */
  readonly recordInput: readonly InputField[];
  /** Which broken runs go on by themselves. */
  readonly recovery: RecoveryParts;
  readonly elsewhere: ElsewhereParts;
  /** See FailurePoint. */
  readonly reached?: AtFailurePoint;
}
