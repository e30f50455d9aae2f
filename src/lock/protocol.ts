import { filter, map, share, type Observable } from "rxjs";
import type { Channel } from "../platform/channel.js";

/** History of the protocol: 1, the first. Messages of another version are not heard. */
const LOCK_PROTOCOL = 1;

/**
 * What hosts tell one another about the threads of a database.
 * - `claim`: somebody asks for a thread that is taken; its holder answers `refused`, or `wait` while it settles.
 * - `started`, `advanced`, `ended`: a run's course in the log. `advanced` names the last committed seq.
 * - `stop`, `stop-ack`: a stop request and its receipt by the holder.
 * - `changed`: the thread's entry in the list changed.
 */
export type LockMessageType =
  "claim" | "refused" | "wait" | "started" | "advanced" | "ended" | "stop" | "stop-ack" | "changed";

const TYPES: ReadonlySet<string> = new Set<LockMessageType>([
  "claim",
  "refused",
  "wait",
  "started",
  "advanced",
  "ended",
  "stop",
  "stop-ack",
  "changed",
]);

export interface LockMessage {
  readonly type: LockMessageType;
  readonly from: string;
  readonly threadId: string;
  readonly runId?: string;
  readonly runIndex?: number;
  readonly seq?: number;
  /** Of a `stop`: another run takes the place of this one, which ends at once. */
  readonly supersede?: boolean;
}

/** The lock's protocol over one channel. Foreign and malformed messages are dropped here. */
export interface HostChannel {
  readonly messages$: Observable<LockMessage>;
  post(message: Omit<LockMessage, "from">): void;
  close(): void;
}

function isLockMessage(value: unknown): value is LockMessage & { readonly v: number } {
  if (typeof value !== "object" || value === null) return false;
  const message = value as Record<string, unknown>;
  const optional = (key: string, type: string): boolean => message[key] === undefined || typeof message[key] === type;
  return (
    message["v"] === LOCK_PROTOCOL &&
    typeof message["type"] === "string" &&
    TYPES.has(message["type"]) &&
    typeof message["from"] === "string" &&
    typeof message["threadId"] === "string" &&
    optional("runId", "string") &&
    optional("runIndex", "number") &&
    optional("seq", "number") &&
    optional("supersede", "boolean")
  );
}

export function hostChannel(channel: Channel, hostId: string): HostChannel {
  return {
    messages$: channel.messages$.pipe(
      filter(isLockMessage),
      map(({ v: _v, ...message }) => message),
      filter((message) => message.from !== hostId),
      // However many follow threads here, each message is looked at once.
      share(),
    ),
    post: (message) => channel.post({ v: LOCK_PROTOCOL, from: hostId, ...message }),
    close: () => channel.close(),
  };
}
