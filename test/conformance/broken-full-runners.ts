import { EventType, verifyEvents, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { RunnerError, type AgentRunnerRunRequest, type ThreadRunRequest } from "ag-ui-local-runtime";
import type { FullAgentRunner } from "ag-ui-local-runtime/conformance";
import { catchError, concat, concatMap, defer, filter, map, takeWhile, tap, throwError, type Observable } from "rxjs";

type Break = (good: FullAgentRunner) => Partial<FullAgentRunner>;

const isEnd = ({ type }: BaseEvent): boolean => type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;

/** The request with another input for the runner, or another stream of its agent. */
function asking(
  request: AgentRunnerRunRequest,
  change: {
    readonly input?: Partial<RunAgentInput>;
    readonly agent?: (events$: Observable<BaseEvent>) => Observable<BaseEvent>;
    readonly given?: (input: RunAgentInput) => RunAgentInput;
  },
): AgentRunnerRunRequest {
  const { agent } = request;
  const run = agent.run.bind(agent);
  const through = change.agent ?? ((events$) => events$);
  const given = change.given ?? ((input) => input);
  agent.run = (input) => through(run(given(input)));
  return { ...request, input: { ...request.input, ...change.input } };
}

const mapped = (good: FullAgentRunner, change: (event: BaseEvent) => BaseEvent): Partial<FullAgentRunner> => ({
  run: (request) => good.run(request).pipe(map(change)),
  connect: (request) => good.connect(request).pipe(map(change)),
});

/** The runner with what it hears of its agents changed. */
const hearing = (
  good: FullAgentRunner,
  agent: (events$: Observable<BaseEvent>, input: RunAgentInput) => Observable<BaseEvent>,
): Partial<FullAgentRunner> => ({
  run: (request) => good.run(asking(request, { agent: (events$) => agent(events$, request.input) })),
});

/** Runners that have everything, and each break one thing of what only they promise. */
export const BROKEN_FULL: Readonly<Record<string, Break>> = {
  "does not say that a run was stopped": (good) =>
    mapped(good, (event) => {
      const { outcome, ...rest } = event;
      return (outcome as { type?: string } | undefined)?.type === "cancelled" ? (rest as BaseEvent) : event;
    }),
  "forgets open interrupts": (good) => ({
    connect: (request) => good.connect(request).pipe(map(({ outcome: _outcome, ...event }) => event as BaseEvent)),
  }),
  "runs on past open interrupts": (good) => ({
    run: (request) => {
      const agent = (events$: Observable<BaseEvent>): Observable<BaseEvent> =>
        events$.pipe(map(({ outcome: _outcome, ...event }) => event as BaseEvent));
      return good.run(asking(request, { agent }));
    },
  }),
  "knows a run id once": (good) => {
    const seen = new Set<string>();
    return {
      run: (request) => {
        const { runId } = request.input;
        if (request.input.resume === undefined) seen.add(runId);
        else if (seen.has(runId)) return throwError(() => new RunnerError("run-exists", { runId }));
        return good.run(request);
      },
    };
  },
  "does not hand over what resumes a run": (good) => ({
    run: (request) => good.run(asking(request, { given: ({ resume: _resume, ...input }) => input })),
  }),
  "lets agents break off": (good) => ({
    run: (request) => good.run(asking(request, { agent: (events$) => events$.pipe(verifyEvents(false)) })),
  }),
  "takes an agent without a last word for a success": (good) =>
    hearing(good, (events$, { threadId, runId }) => {
      let ended = false;
      const finish$ = defer(() => (ended ? [] : [{ type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent]));
      return concat(events$.pipe(tap((event) => (ended ||= isEnd(event)))), finish$);
    }),
  "hears nothing after RUN_FINISHED": (good) =>
    hearing(good, (events$) => events$.pipe(takeWhile(({ type }) => type !== EventType.RUN_FINISHED, true))),
  "gives every failure one code": (good) =>
    mapped(good, (event) => (event.type === EventType.RUN_ERROR ? { ...event, code: "FAILED" } : event)),
  "hands out the patches that it refuses": (good) => ({
    run: (request) => {
      const refused: BaseEvent[] = [];
      const isPatch = (event: BaseEvent): boolean => event.type === EventType.STATE_DELTA && refused.push(event) > 0;
      const agent = (events$: Observable<BaseEvent>) => events$.pipe(filter((event) => !isPatch(event)));
      return good
        .run(asking(request, { agent }))
        .pipe(concatMap((event) => (isEnd(event) ? [...refused, event] : [event])));
    },
  }),
  "leaves out what costs too much": (good) =>
    hearing(good, (events$) => events$.pipe(filter((event) => event["name"] !== "costly"))),
  "hands out what is no JSON": (good) =>
    mapped(good, (event) => {
      const state = event["snapshot"] as { readonly when?: string } | undefined;
      return state?.when === undefined ? event : { ...event, snapshot: { ...state, when: new Date(state.when) } };
    }),
  "answers every tool": (good) => ({
    run: (request) => good.run(asking(request, { input: { tools: [] } })),
  }),
  "takes what an agent says when it is stopped for a failure": (good) =>
    mapped(good, (event) =>
      (event["outcome"] as { type?: string } | undefined)?.type === "cancelled"
        ? { type: EventType.RUN_ERROR, message: "signal is aborted without reason", code: "abort" }
        : event,
    ),
  "drops the state that a sender sets": (good) => ({
    run: (request) => good.run(asking(request, { input: { state: {} } })),
  }),
  "gives readers deltas alone": (good) => ({
    run: (request) => good.run(request).pipe(filter(({ type }) => type !== EventType.STATE_SNAPSHOT)),
  }),
  "gives agents no state": (good) => ({
    run: (request) => good.run(asking(request, { given: (input) => ({ ...input, state: {} }) })),
  }),
  "gives agents the last message only": (good) => ({
    run: (request) =>
      good.run(asking(request, { given: (input) => ({ ...input, messages: input.messages.slice(-1) }) })),
  }),
  "records what agents echo": (good) => {
    const inputs = new Map<unknown, unknown>();
    const agent = (events$: Observable<BaseEvent>): Observable<BaseEvent> =>
      events$.pipe(tap((event) => event.type === EventType.RUN_STARTED && inputs.set(event["runId"], event["input"])));
    const whole = (event: BaseEvent): BaseEvent =>
      event.type === EventType.RUN_STARTED ? { ...event, input: inputs.get(event["runId"]) } : event;
    return {
      run: (request) => good.run(asking(request, { agent })),
      connect: (request) => good.connect(request).pipe(map(whole)),
    };
  },
  "records all messages with each run": (good) => {
    const inputs = new Map<unknown, RunAgentInput>();
    const whole = (event: BaseEvent): BaseEvent =>
      event.type === EventType.RUN_STARTED ? { ...event, input: inputs.get(event["runId"]) } : event;
    return {
      run: (request) => {
        inputs.set(request.input.runId, structuredClone(request.input));
        return good.run(request);
      },
      connect: (request) => good.connect(request).pipe(map(whole)),
    };
  },
  "sees no branches": (good) => {
    let asked = 0;
    return {
      run: (request) => {
        // Known messages are left out, so nothing tells of an edit.
        const { messages } = request.input;
        const fresh = messages.slice(-1).map((message) => ({ ...message, id: `${message.id}-${++asked}` }));
        return good.run(asking(request, { input: { messages: fresh } }));
      },
    };
  },
  "takes what a sender lacks for cut": (good) => {
    const begun: string[] = [];
    return {
      run: (request) => {
        const sent = new Set(request.input.messages.map(({ id }) => id));
        const branchBefore = begun.find((id) => !sent.has(id));
        const asked: ThreadRunRequest = { ...request, ...(branchBefore !== undefined && { branchBefore }) };
        return good.run(asked).pipe(
          tap((event) => {
            if (event.type === EventType.TEXT_MESSAGE_START) begun.push(String(event["messageId"]));
          }),
        );
      },
    };
  },
  "starts a run again under its id": (good) => {
    let asked = 0;
    const idOf = ({ runId }: RunAgentInput): string => `${runId}-${++asked}`;
    return { run: (request) => good.run(asking(request, { input: { runId: idOf(request.input) } })) };
  },
  "refuses a known run id without a code": (good) => ({
    run: (request) =>
      good
        .run(request)
        .pipe(
          catchError((error: unknown) =>
            throwError(() => (RunnerError.is(error, "run-exists") ? new Error("no") : error)),
          ),
        ),
  }),
  "takes every connect for a plain one": (good) => ({
    connect: ({ threadId }) => good.connect({ threadId }),
    connectWithCursor: ({ threadId }) => good.connectWithCursor({ threadId }),
  }),
  "completes what should follow": (good) => ({
    connect: ({ follow: _follow, ...request }) => good.connect(request),
  }),
  "lists nothing": () => ({ listThreads: () => [], listRuns: () => [] }),
  "lists runs from the oldest": (good) => ({
    listRuns: async (threadId, query) => [...(await good.listRuns(threadId, query))].toReversed(),
  }),
  "says of every run that it has finished": (good) => ({
    getRun: async (runId, query) => {
      const run = await good.getRun(runId, query);
      return run && { ...run, status: "finished" };
    },
  }),
  "gives all events whatever is asked": (good) => ({
    getRunEvents: (runId, { threadId } = {}) => good.getRunEvents(runId, threadId === undefined ? {} : { threadId }),
  }),
  "has no messages": () => ({ getThreadMessages: () => [] }),
  "knows settled messages only": (good) => ({
    getThreadMessages: async (threadId) =>
      (await good.isRunning({ threadId })) ? [] : good.getThreadMessages(threadId),
  }),
  "gives a thread's events twice": (good) => ({
    getThreadEvents: async (threadId) => {
      const events = await good.getThreadEvents(threadId);
      return [...events, ...events];
    },
  }),
  "has another state": () => ({ getThreadState: () => ({ list: ["another"] }) }),
  "clears nothing": () => ({ clearThreads: () => undefined }),
  "goes on when it was destroyed": () => ({ destroy: () => undefined }),
};

/** A good runner with some of its methods broken. */
export function brokenFull(good: FullAgentRunner, breaks: Break): FullAgentRunner {
  return {
    run: (request) => good.run(request),
    connect: (request) => good.connect(request),
    connectWithCursor: (request) => good.connectWithCursor(request),
    isRunning: (request) => good.isRunning(request),
    stop: (request) => good.stop(request),
    listThreads: () => good.listThreads(),
    listRuns: (threadId, query) => good.listRuns(threadId, query),
    getRun: (runId, query) => good.getRun(runId, query),
    getRunEvents: (runId, query) => good.getRunEvents(runId, query),
    getThreadMessages: (threadId) => good.getThreadMessages(threadId),
    getThreadEvents: (threadId) => good.getThreadEvents(threadId),
    getThreadState: (threadId) => good.getThreadState(threadId),
    clearThreads: () => good.clearThreads(),
    destroy: () => good.destroy(),
    ...breaks(good),
  };
}
