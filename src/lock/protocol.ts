import { filter, map, share, type Observable } from "rxjs";
import type { Channel } from "../platform/channel.js";

/** History of the protocol: 1, the first. Messages of other versions are ignored. */
const LOCK_PROTOCOL = 1;

/**
 * Messages between the hosts of a database about its threads.
 * - `claim`: a host wants a thread that is taken; the holder answers `refused`, or `wait` while it settles.
 * - `started`, `advanced`, `ended`: progress of a run. `advanced` has the last committed seq.
 * - `stop`, `stop-ack`: a stop request, and the holder's receipt.
 * - `changed`: the thread's entry in the list changed, or another branch was taken up.
 */
const TYPES = ["claim", "refused", "wait", "started", "advanced", "ended", "stop", "stop-ack", "changed"] as const;
export type LockMessageType = (typeof TYPES)[number];

export interface LockMessage {
  readonly type: LockMessageType;
  readonly from: string;
  readonly threadId: string;
  readonly runId?: string;
  readonly runIndex?: number;
  readonly seq?: number;
  /** Of a `stop`: another run replaces this one, which ends at once. */
  readonly supersede?: boolean;
  /** Of a `changed`: the thread was deleted. It may exist again when the message arrives. */
  readonly deleted?: boolean;
  /** Of a `changed`: its waiting runs changed. */
  readonly waiting?: boolean;
}

/** The lock's protocol over one channel. Drops other versions and malformed messages. */
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
    TYPES.some((type) => type === message["type"]) &&
    typeof message["from"] === "string" &&
    typeof message["threadId"] === "string" &&
    optional("runId", "string") &&
    optional("runIndex", "number") &&
    optional("seq", "number") &&
    optional("supersede", "boolean") &&
    optional("deleted", "boolean") &&
    optional("waiting", "boolean")
  );
}

export function hostChannel(channel: Channel, hostId: string): HostChannel {
  return {
    messages$: channel.messages$.pipe(
      filter(isLockMessage),
      map(({ v: _v, ...message }) => message),
      filter((message) => message.from !== hostId),
      // Each message is checked once, however many subscribers there are.
      share(),
    ),
    post: (message) => channel.post({ v: LOCK_PROTOCOL, from: hostId, ...message }),
    close: () => channel.close(),
  };
}
