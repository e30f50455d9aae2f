import { randomUUID } from "node:crypto";
import {
  enforceEvents,
  EventType,
  transformChunks,
  verifyEvents,
  type BaseEvent,
  type RunAgentInput,
} from "@ag-ui/client";
import type {
  AgentRunner,
  AgentRunnerConnectRequest,
  AgentRunnerIsRunningRequest,
  AgentRunnerRunRequest,
  AgentRunnerStopRequest,
} from "ag-ui-local-runtime";
import { defer, Observable } from "rxjs";
import type { FakeRedis } from "./fake-redis.js";

const STOP_GRACE_MS = 50;
/** Keys by what they hold. */
const lockOf = (threadId: string): string => `lock:${threadId}`;
const runsOf = (threadId: string): string => `runs:${threadId}`;
const eventsOf = (threadId: string, runId: string): string => `events:${threadId}:${runId}`;
const stopsOf = (threadId: string): string => `stops:${threadId}`;

const isTerminal = ({ type }: BaseEvent): boolean => type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;
const read = (value: string): BaseEvent => JSON.parse(value) as BaseEvent;

/** What starts and ends each kind of construct, and the fields that say which one. */
const PAIRS = [
  [EventType.TEXT_MESSAGE_START, EventType.TEXT_MESSAGE_END, ["messageId"]],
  [EventType.REASONING_START, EventType.REASONING_END, ["messageId"]],
  [EventType.REASONING_MESSAGE_START, EventType.REASONING_MESSAGE_END, ["messageId"]],
  [EventType.TOOL_CALL_START, EventType.TOOL_CALL_END, ["toolCallId"]],
  [EventType.STEP_STARTED, EventType.STEP_FINISHED, ["stepName", "subagentRunId"]],
  [EventType.SUBAGENT_STARTED, EventType.SUBAGENT_FINISHED, ["subagentRunId"]],
  [EventType.SUBAGENT_STARTED, EventType.SUBAGENT_ERROR, ["subagentRunId"]],
] as const;

/** Ends what these events left open, the last to start first. */
function closers(events: readonly BaseEvent[]): BaseEvent[] {
  const open = new Map<string, BaseEvent>();
  for (const event of events) {
    for (const [start, end, fields] of PAIRS) {
      const named = fields.filter((field) => event[field] !== undefined).map((field) => [field, event[field]]);
      const key = JSON.stringify([start, named]);
      if (event.type === end) open.delete(key);
      else if (event.type === start && !open.has(key)) open.set(key, { type: end, ...Object.fromEntries(named) });
    }
  }
  return [...open.values()].toReversed();
}

/**
 * Keeps threads in Redis: a lock that expires, a list of run ids and a stream of events per run. Several processes may
 * share one Redis. It records what agents emit and folds nothing.
 */
export class RedisAgentRunner implements AgentRunner {
  private readonly live = new Set<string>();
  private readonly closed = new AbortController();

  constructor(
    readonly redis: FakeRedis,
    private readonly lockMs = 300,
  ) {}

  run(request: AgentRunnerRunRequest): Observable<BaseEvent> {
    const { threadId, input } = request;
    if (this.live.has(threadId)) throw new Error("Thread already running");
    this.live.add(threadId);
    const started = this.claim(request);
    started.catch(() => this.live.delete(threadId));
    return this.reading(async (next, signal) => {
      await started;
      await this.tail(threadId, input.runId, next, signal);
    });
  }

  connect({ threadId }: AgentRunnerConnectRequest): Observable<BaseEvent> {
    return this.reading(async (next, signal) => {
      const runIds = await this.redis.lrange(runsOf(threadId));
      for (const runId of runIds.toReversed()) await this.tail(threadId, runId, next, signal);
    });
  }

  async isRunning({ threadId }: AgentRunnerIsRunningRequest): Promise<boolean> {
    return (await this.redis.get(lockOf(threadId))) !== undefined;
  }

  async stop({ threadId, runId }: AgentRunnerStopRequest): Promise<boolean> {
    const holder = await this.redis.get(lockOf(threadId));
    const liveId = holder?.split(" ")[0];
    if (liveId === undefined || (runId !== undefined && runId !== liveId)) return false;
    const first = await this.redis.set(`stop:${threadId}:${liveId}`, "asked", { nx: true, px: 60_000 });
    if (first) await this.redis.publish(stopsOf(threadId), liveId);
    return first;
  }

  /** Lets go of its runs as they are: their locks expire, and whoever reads them next ends them. */
  close(): void {
    this.closed.abort();
  }

  private async claim(request: AgentRunnerRunRequest): Promise<void> {
    const { threadId, input } = request;
    const holder = `${input.runId} ${randomUUID()}`;
    if (!(await this.redis.set(lockOf(threadId), holder, { nx: true, px: this.lockMs }))) {
      throw new Error("Thread already running");
    }
    // The run before may have lost its process.
    const [before] = await this.redis.lrange(runsOf(threadId));
    if (before !== undefined) await this.endOrphan(threadId, before, holder);
    await this.redis.lpush(runsOf(threadId), input.runId);
    this.execute(request, holder);
  }

  private execute({ threadId, agent, input }: AgentRunnerRunRequest, holder: string): void {
    const { runId } = input;
    const recorded: BaseEvent[] = [];
    let over = false;
    let pending: string[] = [];
    let writing: Promise<unknown> = Promise.resolve();
    const write = (events: readonly BaseEvent[]): void => {
      recorded.push(...events);
      // Strings at once: the agent may change its events when it has them back.
      pending.push(...events.map((event) => JSON.stringify(event)));
      writing = writing.then(() => {
        const values = pending;
        pending = [];
        if (this.closed.signal.aborted || values.length === 0) return;
        const xadd = { key: eventsOf(threadId, runId), values };
        // The lock goes with the terminal event, in one step.
        return this.redis.whileHeld(lockOf(threadId), holder, { xadd, ...(!over && { px: this.lockMs }) });
      });
    };
    const accept = (event: BaseEvent): void => {
      if (over) return;
      if (isTerminal(event)) return end(event);
      if (recorded.length === 0) write([started(event)]);
      if (event.type !== EventType.RUN_STARTED) write([event]);
    };
    const started = (own?: BaseEvent): BaseEvent => ({
      ...(own?.type === EventType.RUN_STARTED && own),
      type: EventType.RUN_STARTED,
      threadId,
      runId,
      input: { ...input, tools: [], context: [], forwardedProps: {} } satisfies RunAgentInput,
    });
    const end = (terminal: BaseEvent): void => {
      if (over) return;
      over = true;
      if (recorded.length === 0) write([started()]);
      const own = terminal.type === EventType.RUN_FINISHED ? { ...terminal, threadId, runId } : terminal;
      letGo();
      this.closed.signal.removeEventListener("abort", letGo);
      this.live.delete(threadId);
      write([...closers(recorded), own]);
    };
    const finished = (): BaseEvent => ({ type: EventType.RUN_FINISHED, threadId, runId });

    const renew = (): void => void this.redis.whileHeld(lockOf(threadId), holder, { px: this.lockMs });
    const renewing = setInterval(renew, this.lockMs / 3);
    const leave = this.redis.subscribe(stopsOf(threadId), (stopped) => {
      if (stopped !== runId) return;
      setTimeout(() => end(finished()), STOP_GRACE_MS);
      try {
        agent.abortRun();
      } catch {
        // Its grace runs all the same.
      }
    });
    const letGo = (): void => (clearInterval(renewing), leave());
    this.closed.signal.addEventListener("abort", letGo, { once: true });
    // As runAgent() does it, but step by step: its own subscribers hear of events when an error may have overtaken them.
    // The price: middlewares that an agent has by use() do not run.
    defer(() => agent.run(input))
      .pipe(enforceEvents(), transformChunks(false), verifyEvents(false))
      .subscribe({
        next: accept,
        error: (error: unknown) => end({ type: EventType.RUN_ERROR, message: String(error) }),
        complete: () => end(finished()),
      });
  }

  /** Ends a run whose process is gone. The caller holds the thread's lock. */
  private async endOrphan(threadId: string, runId: string, holder: string): Promise<void> {
    const events = (await this.redis.xrange(eventsOf(threadId, runId))).map(({ value }) => read(value));
    if (events.some(isTerminal)) return;
    const started = { type: EventType.RUN_STARTED, threadId, runId };
    const lost = { type: EventType.RUN_ERROR, message: "The process of the run ended" };
    const ending = [...(events.length === 0 ? [started] : []), ...closers(events), lost];
    const xadd = { key: eventsOf(threadId, runId), values: ending.map((event) => JSON.stringify(event)) };
    await this.redis.whileHeld(lockOf(threadId), holder, { xadd, px: this.lockMs });
  }

  /** A run from its first event to its terminal one. */
  private async tail(
    threadId: string,
    runId: string,
    next: (event: BaseEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    let at = 0;
    while (!signal.aborted) {
      for (const { id, value } of await this.redis.xread(eventsOf(threadId, runId), at, this.lockMs)) {
        const event = read(value);
        at = id;
        next(event);
        if (isTerminal(event)) return;
      }
      const healer = `${runId} ${randomUUID()}`;
      if (await this.redis.set(lockOf(threadId), healer, { nx: true, px: this.lockMs })) {
        await this.endOrphan(threadId, runId, healer);
        await this.redis.whileHeld(lockOf(threadId), healer, {});
      }
    }
  }

  private reading(
    work: (next: (event: BaseEvent) => void, signal: AbortSignal) => Promise<void>,
  ): Observable<BaseEvent> {
    return new Observable<BaseEvent>((subscriber) => {
      const reading = new AbortController();
      const signal = AbortSignal.any([reading.signal, this.closed.signal]);
      work((event) => subscriber.next(event), signal).then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
      return () => reading.abort();
    });
  }
}
