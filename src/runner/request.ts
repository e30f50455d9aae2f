import type { AbstractAgent, Message, RunAgentInput } from "@ag-ui/client";
import type { HeldLock } from "../platform/locks.js";
import type { Attempt } from "../run/hosted.js";
import type { ToolResult } from "../run/pending-tool-calls.js";
import type { Asker } from "../storage/rows.js";
import type { RunRequest } from "../wire/shapes.js";

/** `server`: on a server of the space, and nowhere else. `any`: on a server while one is online, else here. */
export type Placement = "server" | "any";

/** Why a run is refused that no server can execute now. */
export const noServer = (agentId: string): string =>
  `No server of the space that has the agent "${agentId}" is online: start one, or ask with whenOffline: "wait"`;

/** What a device that asks a server for a run says of it. */
export interface Asked {
  readonly asker: Asker;
  /** Of the request as that device has it. */
  readonly fingerprint: string;
  readonly answerId?: string;
  /** Results of front-end tools, which only that device has. */
  readonly results: readonly ToolResult[];
}

/** A request for a run. With `partial`, `input.messages` and `input.state` hold only what is new. */
export interface LiveRunRequest {
  readonly threadId: string;
  readonly agentId: string | undefined;
  readonly agent: AbstractAgent;
  readonly input: RunAgentInput;
  readonly partial?: RunRequest["partial"] | undefined;
  /** What the entry point knows about the sender: see `SenderKnowledge`. */
  readonly cut?: readonly string[] | undefined;
  readonly branchBefore?: string | undefined;
  readonly persistedInputMessages?: readonly Message[] | undefined;
  /** It goes on with the answers to pending tool calls, and is nothing without them. */
  readonly afterToolCalls?: boolean | undefined;
  /** It goes on with a broken run, and is nothing unless that is the thread's last one. */
  readonly attempt?: Attempt | undefined;
  /** What becomes of a live run of the thread, in place of the runner's `onConcurrentRun`. */
  readonly onBusy?: "throw" | "supersede" | undefined;
  /** The thread's waiting runs go first: it is refused as `thread-busy` while any wait. */
  readonly afterWaiting?: boolean | undefined;
  /** It is one of the thread's waiting runs: it starts only if it is the first of them, and then waits no more. */
  readonly waiting?: boolean | undefined;
  /** Where it is executed, if not in this host: see {@link Placement}. */
  readonly placement?: Placement | undefined;
  /** A device asked this one for it. */
  readonly asked?: Asked | undefined;
  /** Maps the thread's messages to what the sender sees, if it cannot hold them in full. */
  readonly shownAs?: ((message: Message) => Message) | undefined;
}

/** A checked request with its place among the thread's runs. */
export interface PlacedRequest extends LiveRunRequest {
  /** Equal for equal inputs. */
  readonly fingerprint: string;
  /** See RunRow. */
  readonly answerId?: string | undefined;
  /** Resolves when this run may claim the thread, with the thread's lock if that is handed over. Called once. */
  readonly turn?: () => Promise<HeldLock | undefined>;
  /** It waits for live runs. */
  readonly queued?: boolean;
  /** Index of the first run that was not over when this one was requested and that it waited for. */
  readonly unseen?: () => number | undefined;
  /** Ids of the interrupts that the runs it waited for have answered. */
  readonly answered?: () => readonly string[];
}
