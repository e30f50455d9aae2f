import { printable, quoted } from "./printable.js";

/**
 * Every way in which the runtime says no. One code per reaction of the caller; the docs of a code say what was kept
 * and what to do.
 */
export type RunnerErrorCode =
  /**
   * The thread has a live run (or, where runs wait, as many as may: `details.waiting`). Nothing was started. Follow or stop the run
   * that `details.runId` names, then try again.
   */
  | "thread-busy"
  /**
   * The run was stopped before it started: while it waited, or while the code that runs agents did not load. Nothing of
   * it was recorded: its messages are still the caller's.
   */
  | "cancelled"
  /** The run was deleted, or a limit cut its events off. The thread, where it is there, shows what it led to. */
  | "deleted"
  /** The run id was used in this thread for another input. Nothing was started. Choose a fresh run id. */
  | "run-exists"
  /**
   * The thread waits for answers (AG-UI's interrupts) that the request does not give, or gives otherwise than it must.
   * Nothing was started or sent. `details.interruptIds` names all that are open; `missing`, `doubled` and `expired` say
   * what is wrong, `settled` what somebody else has answered. Send `input.resume` with one entry for each.
   */
  | "interrupts-open"
  /**
   * The tool call waits for no result (any more): it was answered, another tab runs it, or the thread went on without it.
   * Nothing was recorded. Look at the thread's pending calls.
   */
  | "call-over"
  /**
   * The agent needs the network, as its policy says, and its host is offline. Nothing was started: the messages are still
   * the caller's. Run again when there is a network, or with `whenOffline: "wait"`. Where devices are in step also: the
   * thread is not on this device yet, or no server of the space has the agent. Try again when the device is connected.
   */
  | "offline"
  /** No agent is registered under this id. Nothing was started. `details.agentIds` lists those that are. */
  | "unknown-agent"
  /** No thread has this id, or it was deleted. Nothing was changed. List the threads again. */
  | "unknown-thread"
  /** No checkpoint has this id, or it was deleted. Nothing was written. List the graph's checkpoints again. */
  | "unknown-checkpoint"
  /** An id, message or option does not have the shape that it must have. Nothing was started. */
  | "invalid-input"
  /** The agent could not be cloned, or its clone cannot run. Give it a `clone()`, or use `defineAgent`. */
  | "agent-not-cloneable"
  /**
   * What is registered under this id is no agent, or the function that loads it returned none (often an export that is
   * not there). Nothing was started. The message says what was given instead, and what to register.
   */
  | "invalid-agent"
  /**
   * No tab offers the language model, or the tab that ran it is gone. `details.delivered` says whether a part of the answer
   * had come; it is kept. Open a tab that offers the model (`offerModel`), and run again.
   */
  | "provider-unavailable"
  /**
   * A middleware of the runtime refused the request. Nothing was done. `details.status` is the HTTP status that it answered
   * with (401: sign in; 403: not allowed; 429: later), `details.body` the text of the answer.
   */
  | "refused"
  /** Another host took the thread over; this run can write nothing more. What it had committed is kept. */
  | "fenced"
  /** The runtime or runner was closed by its owner. */
  | "closed"
  /** A call got no answer in time. It may still take effect: look the `runId` up before repeating it. */
  | "timeout"
  /** The host ended before it answered. Committed events are kept; the next host answers for them. */
  | "host-lost"
  /** Something failed in the host that has no code of its own; the message is that error's. */
  | "host-failed"
  /** None of the given hosts could be started. `details.causes` says why, host by host. */
  | "no-host"
  /** The host speaks another version of the wire protocol. Reload the page. */
  | "protocol-mismatch"
  /**
   * The host was started for another user than the tab's; or only one of them has a user. Nothing was read or started. Give
   * each user a worker of their own: `new SharedWorker(url, { name: user })` with `serveRuntime({ user: self.name })`, and
   * connect with `connectRuntime({ user })`.
   */
  | "wrong-user"
  /** The database cannot be opened here (private mode, storage switched off, blocked). Nothing can be kept. */
  | "storage-unavailable"
  /** Opening the database waits for another tab that holds an older version. Close or reload the other tabs. */
  | "storage-blocked"
  /** The database's connection fell and could not be opened again. What was acknowledged is kept. */
  | "storage-lost"
  /**
   * The database was deleted: the user cleared the site's data, or a page deleted it. What it held is gone; the next run
   * begins a new one. Drop what you show of its threads, and list them again.
   */
  | "storage-deleted"
  /**
   * The database is encrypted, and this host does not have the key. Nothing was read or written. Ask for the key, and give
   * it to the runtime (`runtime.encryption.unlock`).
   */
  | "locked"
  /** The key or passphrase is not that of the database. Nothing was changed. Ask for it again. */
  | "wrong-key"
  /** The origin's quota is used up. What was acknowledged is kept; free space and go on. */
  | "quota-exceeded"
  /**
   * A stored record does not have the shape that this version writes, or holds what cannot be copied. It was left as it is;
   * what can be read beside it is shown.
   */
  | "corrupt-record"
  /**
   * The database was written by a newer version, or a newer build took it over; or code of this page cannot be loaded any
   * more. Reload the page.
   */
  | "outdated";

/** Data about an error. Plain: it crosses contexts unchanged. */
export interface RunnerErrorDetails {
  readonly threadId?: string;
  readonly runId?: string;
  readonly agentId?: string;
  readonly agentIds?: readonly string[];
  readonly holderId?: string;
  /** Name of the other device that executes the live run. */
  readonly device?: string;
  readonly causes?: readonly string[];
  readonly [key: string]: unknown;
}

const MESSAGES: Record<RunnerErrorCode, string> = {
  "thread-busy": "Thread already running",
  cancelled: "The run was cancelled before it started",
  deleted: "The run was deleted, or its events were cut off",
  "run-exists": "This run id was already used in the thread with another input: use a fresh run id",
  "interrupts-open": "The thread has open interrupts: input.resume must answer each of them",
  "call-over": "The tool call waits for no result any more",
  offline: "The agent needs the network, and its host is offline: try again when there is a network",
  "unknown-agent": "No agent is registered under this id",
  "unknown-thread": "No thread has this id: list the threads again",
  "unknown-checkpoint": "No checkpoint has this id",
  "invalid-input": "The input is not valid",
  "agent-not-cloneable":
    "The agent cannot be cloned: give it a clone() that returns a working copy, or use defineAgent()",
  "invalid-agent": "What is registered under this id is no agent",
  "provider-unavailable": "No tab offers the language model: open one that does, and run again",
  refused: "The runtime refused the request",
  fenced: "Another host took the thread over",
  closed: "The runtime was closed: connect again",
  timeout: "The host did not answer in time: it may still take effect, look before you repeat it",
  "host-lost": "The host ended before it answered: what was shown is kept; try again",
  "host-failed": "The host failed",
  "no-host": "No host could be started",
  "protocol-mismatch": "The host speaks another version of the wire protocol: reload the page",
  "wrong-user": "The host is of another user",
  "storage-unavailable": "The database cannot be opened: allow site data, or leave the private mode",
  "storage-blocked": "Another tab holds an older version of the database: close or reload it",
  "storage-lost": "The connection to the database was lost: what was shown is kept; try again",
  "storage-deleted": "The database was deleted, and its threads with it",
  locked: "The database is encrypted, and its key is not here: unlock it first",
  "wrong-key": "This is not the key of the database: enter it again",
  "quota-exceeded": "The storage quota is used up: free some space, then go on",
  "corrupt-record": "A stored record is not valid",
  outdated: "The database belongs to a newer version: reload the page",
};

/** The detail that a code is about. */
const SUBJECT: Partial<Record<RunnerErrorCode, string>> = {
  "unknown-agent": "agentId",
  "unknown-checkpoint": "checkpointId",
  "invalid-agent": "agentId",
  "provider-unavailable": "model",
};

/** The details that a message names, in this order. Others may be secrets, or mean nothing to people. */
const NAMED: Readonly<Record<string, string>> = {
  agentIds: "there are %",
  agentId: "agent %",
  runId: "run %",
  runIndex: "run number %",
  threadId: "thread %",
  checkpointId: "checkpoint %",
  store: "store %",
  dbName: "database %",
  field: "field %",
  status: "status %",
  host: "host %",
  tab: "tab %",
  callTimeoutMs: "after % ms",
  openTimeoutMs: "after % ms",
};

/** How many known ids or causes a message lists. */
const MAX_LISTED = 20;
/** The longest cause that a message carries, and the longest message, in characters. */
const MAX_CAUSE = 300;
const MAX_MESSAGE = 2_000;

function listed(all: readonly unknown[], text: (item: unknown) => string, separator: string): string {
  const more = all.length > MAX_LISTED ? [`${all.length - MAX_LISTED} more`] : [];
  return [...all.slice(0, MAX_LISTED).map(text), ...more].join(separator);
}

/** The default message of an error: what happened, to what, and why. */
function sentence(code: RunnerErrorCode, details: RunnerErrorDetails, cause: unknown): string {
  // Other runners and front ends know it by these words.
  if (code === "thread-busy") return MESSAGES[code];
  const about = SUBJECT[code];
  const subject = about === undefined || details[about] === undefined ? "" : `: ${quoted(details[about])}`;
  const named = Object.entries(NAMED).flatMap(([key, words]) => {
    const value = details[key];
    if (value === undefined || key === about) return [];
    if (!Array.isArray(value)) return [words.replace("%", () => quoted(value))];
    return [value.length === 0 ? "there are none" : words.replace("%", () => listed(value, quoted, ", "))];
  });
  const causes = details.causes ?? [details["cause"] ?? details["body"] ?? cause].filter((it) => it !== undefined);
  const why = listed(causes, (it) => printable(messageOf(it), MAX_CAUSE), "; ");
  const more = [named.join(", "), why].filter((part) => part !== "").join(": ");
  return `${MESSAGES[code]}${subject}${more === "" ? "" : ` (${more})`}`;
}

/** The one error class of the runtime. Compare `code`, never `message`. */
export class RunnerError extends Error {
  override readonly name = "RunnerError";
  readonly code: RunnerErrorCode;
  readonly details: RunnerErrorDetails;

  /**
   * @param code what happened, one code per reaction
   * @param details plain data about the case
   * @param options `message` is a whole sentence in place of the one that the code and the details make (never for
   *   `thread-busy`); `cause` is the error behind it
   */
  constructor(
    code: RunnerErrorCode,
    details: RunnerErrorDetails = {},
    options: { message?: string; cause?: unknown } = {},
  ) {
    const { message = sentence(code, details, options.cause), cause } = options;
    super(printable(message, MAX_MESSAGE), cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  /** True for a RunnerError of this or another copy of the library, with this code where one is given. */
  static is(error: unknown, code?: RunnerErrorCode): error is RunnerError {
    try {
      return (
        error instanceof Error &&
        error.name === "RunnerError" &&
        "code" in error &&
        (code === undefined || error.code === code)
      );
    } catch {
      // A proxy that cannot be inspected, such as a revoked one.
      return false;
    }
  }
}

/** @param message a whole sentence that names the field */
export const invalidInput = (field: string, message: string): RunnerError =>
  new RunnerError("invalid-input", { field }, { message });

export const notEncrypted = (): RunnerError =>
  invalidInput("encryption", "Nothing is encrypted here: give encryption to serveRuntime, {} where tabs bring the key");

/** All codes, for checks of what crosses contexts. */
export const RUNNER_ERROR_CODES = Object.keys(MESSAGES) as readonly RunnerErrorCode[];

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return "Something was thrown that has no text";
  }
}
