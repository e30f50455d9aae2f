import type { Clock } from "../platform/clock.js";
import type { MakeId } from "../platform/ids.js";
import type { Locks } from "../platform/locks.js";
import type { Logger } from "../platform/log.js";
import type { HostChannel } from "../lock/protocol.js";
import type { AtFailurePoint } from "../run/failure-points.js";
import type { InputField } from "./agent/accept.js";
import type { RunStore } from "../storage/run-store.js";
import type { EventLimits } from "./agent/event-limits.js";

/**
 * What happens to a run that is asked for while another run of its thread is live.
 * - `throw`: it is refused as `thread-busy`.
 * - `supersede`: the live run ends at once as `superseded`, and this one takes its place.
 * - `queue`: it waits for its turn, in the order of asking; `stop` with its runId takes it out again.
 */
export type ConcurrentRunPolicy = "throw" | "supersede" | "queue";

/** What the one algorithm is given. Presets choose the parts. */
export interface RunnerParts {
  readonly dbName: string;
  /** This host, as it stands in heads and on the channel. */
  readonly hostId: string;
  readonly store: RunStore;
  readonly locks: Locks;
  /** No host dies alone: none is watched. */
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
  /** See FailurePoint. */
  readonly reached?: AtFailurePoint;
}
