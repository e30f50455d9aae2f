import type { Bell } from "../platform/bell.js";
import type { ElsewhereParts, RunnerParts } from "../runner/parts.js";
import type { Asked } from "../runner/request.js";
import type { DeviceName } from "../storage/devices.js";
import type { RunnerErrorData, RunRequest } from "../wire/shapes.js";
import type { StopCall } from "./devices.js";
import type { SyncRecords } from "./memory-sync-database.js";
import type { Space, SpaceState } from "./space.js";
import type { ThreadSync, ThreadSyncContext } from "./thread-sync.js";

/** `started`: it is in the log. `later`: it cannot start now, or another server has it. */
export type Executed =
  | { readonly is: "started" }
  /** `refusal`: of the middleware, which wants to be left alone for `afterMs`. */
  | { readonly is: "later"; readonly refusal?: { readonly error: RunnerErrorData; readonly afterMs: number } };

/** What a server does for the devices of the space. */
export interface ServerParts {
  /** Ids of its agents. */
  readonly agents: readonly string[];
  /** Starts a run as its caller's host would. Errors: why it can never start */
  readonly execute: (request: RunRequest, asked: Asked) => Promise<Executed>;
}

/** What a device is kept in step with, and by. */
export interface SyncParts {
  readonly space: Space;
  /** The key of a thread's entries. It may wait until the keys of the space are known. */
  readonly keyOf: (threadId: string) => Promise<string>;
  /** What this device remembers of the space. */
  readonly database: SyncRecords;
  /** A host of its own, which runs no agents. */
  readonly parts: RunnerParts;
  /** What the runs of this device ask. */
  readonly elsewhere: ElsewhereParts;
  /** What people call this device. */
  readonly deviceName: string;
  /** Ends a run of this device. */
  readonly stop: (call: StopCall) => void;
  /** Which threads come to this device: all, or those that somebody opens. Default: all. */
  readonly keep?: "all" | "opened" | undefined;
  /** How many threads stay on this device. Default: all that came. */
  readonly maxThreads?: number | undefined;
  /** How many entries of a thread become one. Default: see CompactingThreads. */
  readonly compactFrom?: number | undefined;
  /** Readers of the list are to read all of it again. */
  readonly listChanged: () => void;
  /** This host executes what the devices of the space ask for. */
  readonly server?: ServerParts;
  /** The device has another id: everything is to begin anew. */
  readonly renewed?: () => void;
}

/** What those that keep one thing of the device in step know of it. */
export interface SyncHost extends SyncParts {
  /** The thread, as the space has it now: it is another one after the space has begun anew. Undefined: this host leaves the space. */
  readonly threadOf: (threadId: string) => Promise<ThreadSync | undefined>;
  /** A thread that is read, or was. */
  readonly openOf: (threadId: string) => ThreadSync | undefined;
  /** Undefined as long as this host does not keep the database in step. */
  readonly context: () => ThreadSyncContext | undefined;
  readonly self: () => DeviceName;
  readonly state: () => SpaceState;
  /** Everything that others have added is known, and the connection is there. */
  readonly isCurrent: () => boolean;
  /** All threads that the space has are listed. */
  readonly isListed: () => boolean;
  /** The space has begun anew, and lost what it had: all that is here is sent. */
  readonly revives: () => boolean;
  /** The count of threads that are still to come has changed. */
  readonly counted: () => void;
  /** What the space says is not understood here: see ThreadSyncContext. */
  readonly refuse: (message: string) => void;
  /** Rings when an entry was read or written down, and when the connection or the devices that are online have changed. */
  readonly moved: Bell;
  /** Aborts when this host leaves the space. */
  readonly closed: AbortSignal;
}
