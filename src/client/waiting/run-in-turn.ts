import type { AgentSubscriber, BaseEvent, Message, RunAgentResult, RunFinishedEvent } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { concatMap, filter, firstValueFrom, type Observable } from "rxjs";
import { RunnerError } from "../../run/errors.js";
import { messageIdsOf } from "../../run/message-ids.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { Enqueued } from "../../wire/waiting-shapes.js";
import type { HostLink } from "../host-link.js";
import type { ThreadRun } from "../thread-run.js";
import { waitingApi } from "./waiting-api.js";

/** The agent whose run is to wait where it cannot begin at once. */
export interface AgentInTurn {
  readonly link: HostLink;
  readonly run$: Observable<ThreadRun>;
  /** Of its thread: the page may set another one at any time. */
  readonly threadId: () => string;
  readonly messages: () => readonly Message[];
  readonly subscribe: (subscriber: AgentSubscriber) => { unsubscribe: () => void };
  /** Runs it now. */
  readonly run: () => Promise<RunAgentResult>;
  /** Reads the run, which was started by a host. */
  readonly attach: () => Promise<RunAgentResult>;
  /** Resolves at the end of the run, which is started where it is `free`. */
  readonly runUnseen: (queued: Enqueued) => Promise<unknown>;
  /** Resolves when everything is shown, where the agent follows its thread; undefined where it does not. */
  readonly caughtUp: () => Promise<void> | undefined;
  /** Reads what the agent has not read of its thread, to the end of the live run. */
  readonly read: () => Promise<unknown>;
  /** It waits: its messages are no part of the thread. */
  readonly waits: () => void;
  /** Its messages are part of what the agent shows again. */
  readonly putBack: () => void;
}

/**
 * Follows a run that the host has begun, or that waits in the log.
 *
 * Errors: as of a run; RunnerError `cancelled` where it was cancelled while it waited
 */
export async function runInTurn(
  agent: AgentInTurn,
  request: RunRequest,
  queued: Enqueued,
  subscriber?: AgentSubscriber,
): Promise<RunAgentResult> {
  const { link } = agent;
  const { threadId, input } = request;
  const { runId } = input;
  /** Where the page has set another thread: the run goes on in its own, and is not shown. */
  const unseen = async (): Promise<RunAgentResult> => {
    await agent.runUnseen(queued);
    const { result } = await resultOf(agent, threadId, runId, input.messages);
    return { result, newMessages: [] };
  };
  const isLeft = (): boolean => agent.threadId() !== threadId;
  const seen = async (run: () => Promise<RunAgentResult>): Promise<RunAgentResult> => {
    if (isLeft()) return unseen();
    agent.putBack();
    const result = await run();
    return isLeft() ? unseen() : result;
  };
  if (queued !== "waits") return seen(queued === "free" ? agent.run : agent.attach);
  agent.waits();
  const follows = (): boolean => agent.caughtUp() !== undefined;
  const followed = follows();
  const hooks = subscriber && toldOf(agent, request, subscriber);
  try {
    const waits = (run: { readonly runId: string }): boolean => run.runId === runId;
    await firstValueFrom(
      waitingApi(link)
        .watch(threadId)
        .pipe(filter((runs) => !runs.some(waits))),
    ).catch(ended);
    const started = await link.call("getRun", { threadId, runId });
    if (started === undefined) throw new RunnerError("cancelled", { threadId, runId });
    if (isLeft()) return await unseen();
    if (!follows() && !followed) {
      hooks?.unsubscribe();
      return await seen(agent.attach);
    }
    await shown(agent, threadId, runId);
    if (isLeft()) return await unseen();
    return await resultOf(agent, threadId, runId, input.messages);
  } finally {
    hooks?.unsubscribe();
  }
}

/** The link was closed. */
function ended(error: unknown): never {
  if (error instanceof Error && error.name === "EmptyError") throw new RunnerError("closed", {}, { cause: error });
  throw error;
}

/** Resolves when an agent that follows, or followed, its thread shows the run's end, or was set to another thread. */
async function shown(
  { link, run$, threadId: now, caughtUp, read }: AgentInTurn,
  threadId: string,
  runId: string,
): Promise<void> {
  /** Where the page has ended the following, the agent may have a part of the run: the rest is read. */
  const toTheEnd = async (): Promise<true> => {
    await (caughtUp() ?? read());
    return true;
  };
  const isOver = async (run: ThreadRun): Promise<boolean> => {
    // A run of another thread may have the same id.
    if (now() !== threadId) return true;
    if (run.is === "running" && run.runId === runId) return false;
    // Over at its terminal event, which may not be shown yet.
    if (run.is === "idle" && run.last?.runId === runId) return toTheEnd();
    // It may have been over before it was heard of, or come with a snapshot of what is behind it.
    const known = await link.call("getRun", { threadId, runId });
    if (now() !== threadId) return true;
    if (known?.status === "running" && caughtUp() !== undefined) return false;
    return toTheEnd();
  };
  const over$ = run$.pipe(
    concatMap((run) => isOver(run)),
    filter(Boolean),
  );
  await firstValueFrom(over$);
}

/** Types of events that begin messages, or have a result. */
const TELLING: readonly string[] = [
  EventType.TEXT_MESSAGE_START,
  EventType.TOOL_CALL_START,
  EventType.TOOL_CALL_RESULT,
  EventType.REASONING_MESSAGE_START,
  EventType.ACTIVITY_SNAPSHOT,
  EventType.MESSAGES_SNAPSHOT,
  EventType.RUN_FINISHED,
];

/** What `runAgent` resolves with. */
async function resultOf(
  { link, messages }: AgentInTurn,
  threadId: string,
  runId: string,
  sent: readonly Message[],
): Promise<RunAgentResult> {
  const placed = await link.call("getRunEvents", { threadId, runId, types: TELLING });
  const events = placed.map(({ event }): BaseEvent => event);
  const ids = new Set(events.flatMap((event) => [...messageIdsOf(event)]));
  for (const { id } of sent) ids.delete(id);
  const end = events.findLast(({ type }) => type === EventType.RUN_FINISHED) as RunFinishedEvent | undefined; // its type
  return { result: end?.result, newMessages: messages().filter(({ id }) => ids.has(id)) };
}

/** Tells a subscriber of one run of those that an agent follows. */
function toldOf({ run$, subscribe, threadId: now }: AgentInTurn, request: RunRequest, subscriber: AgentSubscriber) {
  const { threadId, input } = request;
  let isIts = false;
  const runs = run$.subscribe((run) => {
    isIts = now() === threadId && (run.is === "running" ? run : run.last)?.runId === input.runId;
  });
  const hooks = Object.entries(subscriber as Readonly<Record<string, unknown>>).map(([name, hook]) => [
    name,
    typeof hook === "function"
      ? (...given: unknown[]): unknown => (isIts ? (hook.apply(subscriber, given) as unknown) : undefined)
      : hook,
  ]);
  // With the hooks of the one that was given.
  const subscribed = subscribe(Object.fromEntries(hooks) as AgentSubscriber);
  return {
    unsubscribe: (): void => {
      runs.unsubscribe();
      subscribed.unsubscribe();
    },
  };
}
