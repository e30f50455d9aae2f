import type { Clock } from "../platform/clock.js";
import type { MakeId } from "../platform/ids.js";
import type { Locks } from "../platform/locks.js";
import type { HostChannel } from "../lock/protocol.js";
import type { RunStore } from "../storage/run-store.js";

/** What the one algorithm is given. Presets choose the parts. */
export interface RunnerParts {
  readonly dbName: string;
  /** This host, as it stands in heads and on the channel. */
  readonly hostId: string;
  readonly store: RunStore;
  readonly locks: Locks;
  readonly channel: HostChannel;
  readonly clock: Clock;
  readonly makeId: MakeId;
  /** How long an agent has to end after it was asked to stop, in ms. */
  readonly stopGraceMs: number;
}
