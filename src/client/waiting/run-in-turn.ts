import type {
  AbstractAgent,
  AgentSubscriber,
  BaseEvent,
  Message,
  RunAgentResult,
  RunFinishedEvent,
} from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { concatMap, filter, firstValueFrom, lastValueFrom, type Observable } from "rxjs";
import { RunnerError } from "../../run/errors.js";
import { messageIdsOf } from "../../run/message-ids.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { Enqueued } from "../../wire/waiting-shapes.js";
import { attachFrames, runFrames } from "../frames.js";
import type { HostLink } from "../host-link.js";
import type { ThreadRun } from "../thread-run.js";
import { waitingApi } from "./waiting-api.js";

/** What a run needs that is to wait where it cannot begin at once. */
export interface InTurnParts {
  readonly link: HostLink;
  /** Whose run it is. The page may set another thread at any time. */
  readonly agent: Pick<AbstractAgent, "threadId" | "messages" | "subscribe" | "connectAgent"> & {
    readonly run$: Observable<ThreadRun>;
    show(messages: Message[]): void;
  };
  /** The host has said whether the run begins or waits: the next one may be asked for. */
  readonly decide: () => void;
  /** It waits: its messages are no part of the thread. */
  readonly waits: () => void;
  /** Runs it now. */
  readonly run: () => Promise<RunAgentResult>;
  /** Reads the run, which was started by a host. */
  readonly attach: () => Promise<RunAgentResult>;
  /** Whether the agent follows its thread. */
  readonly follows: () => boolean;
  /** Resolves when a following agent shows everything. */
  readonly caughtUp: () => Promise<void>;
}

/**
 * Has a run begin or wait, as the host says, and follows it.
 *
 * @param asked the host's answer, and the messages of the run that the agent held when it was asked
 * Errors: as of a run; RunnerError `cancelled` where it was cancelled while it waited
 */
export async function runInTurn(
  parts: InTurnParts,
  request: RunRequest,
  { asked, held }: { readonly asked: Promise<Enqueued>; readonly held: readonly Message[] },
  subscriber?: AgentSubscriber,
): Promise<RunAgentResult> {
  const { link, agent } = parts;
  const { threadId, input } = request;
  const { runId } = input;
  const isLeft = (): boolean => agent.threadId !== threadId;
  const putBack = (): void => {
    if (isLeft()) return;
    const there = new Set(agent.messages.map(({ id }) => id));
    const missing = held.filter(({ id }) => !there.has(id));
    if (missing.length > 0) agent.show([...agent.messages, ...missing]);
  };
  const queued = await asked.catch((error: unknown) => {
    putBack();
    throw error;
  });
  if (queued !== "free") parts.decide();
  /** Where the page has set another thread: the run goes on in its own, and is not shown. */
  const unseen = async (): Promise<RunAgentResult> => {
    const { agentId } = request;
    const frames$ =
      queued === "free" ? runFrames(link, request, () => undefined) : attachFrames(link, { threadId, agentId, runId });
    await lastValueFrom(frames$, { defaultValue: undefined });
    const { result } = await resultOf(parts, threadId, runId, input.messages);
    return { result, newMessages: [] };
  };
  const seen = async (run: () => Promise<RunAgentResult>): Promise<RunAgentResult> => {
    if (isLeft()) return unseen();
    putBack();
    const result = await run();
    return isLeft() ? unseen() : result;
  };
  if (queued !== "waits") return seen(queued === "free" ? parts.run : parts.attach);
  parts.waits();
  const followed = parts.follows();
  const hooks = subscriber && toldOf(parts, request, subscriber);
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
    if (!parts.follows() && !followed) {
      hooks?.unsubscribe();
      return await seen(parts.attach);
    }
    await shown(parts, threadId, runId);
    if (isLeft()) return await unseen();
    return await resultOf(parts, threadId, runId, input.messages);
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
async function shown({ link, agent, follows, caughtUp }: InTurnParts, threadId: string, runId: string): Promise<void> {
  /** Where the page has ended the following, the agent may have a part of the run: the rest is read. */
  const toTheEnd = async (): Promise<true> => {
    await (follows() ? caughtUp() : agent.connectAgent());
    return true;
  };
  const isOver = async (run: ThreadRun): Promise<boolean> => {
    // A run of another thread may have the same id.
    if (agent.threadId !== threadId) return true;
    if (run.is === "running" && run.runId === runId) return false;
    // Over at its terminal event, which may not be shown yet.
    if (run.is === "idle" && run.last?.runId === runId) return toTheEnd();
    // It may have been over before it was heard of, or come with a snapshot of what is behind it.
    const known = await link.call("getRun", { threadId, runId });
    if (agent.threadId !== threadId) return true;
    if (known?.status === "running" && follows()) return false;
    return toTheEnd();
  };
  const over$ = agent.run$.pipe(
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
  { link, agent }: InTurnParts,
  threadId: string,
  runId: string,
  sent: readonly Message[],
): Promise<RunAgentResult> {
  const placed = await link.call("getRunEvents", { threadId, runId, types: TELLING });
  const events = placed.map(({ event }): BaseEvent => event);
  const ids = new Set(events.flatMap((event) => [...messageIdsOf(event)]));
  for (const { id } of sent) ids.delete(id);
  const end = events.findLast(({ type }) => type === EventType.RUN_FINISHED) as RunFinishedEvent | undefined; // its type
  return { result: end?.result, newMessages: agent.messages.filter(({ id }) => ids.has(id)) };
}

/** Tells a subscriber of one run of those that an agent follows. */
function toldOf({ agent }: InTurnParts, request: RunRequest, subscriber: AgentSubscriber) {
  const { threadId, input } = request;
  let isIts = false;
  const runs = agent.run$.subscribe((run) => {
    isIts = agent.threadId === threadId && (run.is === "running" ? run : run.last)?.runId === input.runId;
  });
  const hooks = Object.entries(subscriber as Readonly<Record<string, unknown>>).map(([name, hook]) => [
    name,
    typeof hook === "function"
      ? (...given: unknown[]): unknown => (isIts ? (hook.apply(subscriber, given) as unknown) : undefined)
      : hook,
  ]);
  // With the hooks of the one that was given.
  const subscribed = agent.subscribe(Object.fromEntries(hooks) as AgentSubscriber);
  return {
    unsubscribe: (): void => {
      runs.unsubscribe();
      subscribed.unsubscribe();
    },
  };
}
