import { EventType, type BaseEvent } from "@ag-ui/client";
import type { AgentRunner, AgentRunnerRunRequest } from "ag-ui-local-runtime";
import { concat, concatMap, defer, EMPTY, filter, finalize, from, map, of, share, tap, throwError } from "rxjs";
import type { Observable } from "rxjs";

type Break = (good: AgentRunner) => Partial<AgentRunner>;

const without = (...types: readonly string[]) => filter((event: BaseEvent) => !types.includes(event.type));
const never = (): Promise<never> => new Promise(() => {});

/** Runners that each break one thing of a good one. */
export const BROKEN: Readonly<Record<string, Break>> = {
  "starts when it is subscribed to": (good) => ({ run: (request) => defer(() => good.run(request)) }),
  "hands late subscribers only what is left": (good) => ({
    run: (request) => {
      const shared$ = good.run(request).pipe(share());
      shared$.subscribe({ error: () => undefined });
      return shared$;
    },
  }),
  "stops a run that nobody listens to": (good) => ({
    run: (request) => {
      const { threadId } = request;
      return good.run(request).pipe(finalize(() => void good.stop({ threadId })));
    },
  }),
  "says in other words that a thread is busy": (good) => ({
    run: (request) => {
      try {
        return good.run(request);
      } catch {
        throw new Error("busy");
      }
    },
  }),
  "lets a second run of a thread in": (good) => {
    let runs = 0;
    return {
      run: (request) => good.run(runs++ === 0 ? request : { ...request, threadId: `${request.threadId}${runs}` }),
    };
  },
  "never ends a run": (good) => ({ run: (request) => concat(good.run(request), from(never())) }),
  "ends a run with an error": (good) => ({
    run: (request) =>
      concat(
        good.run(request),
        throwError(() => new Error("over")),
      ),
  }),
  "refuses every run": () => ({ run: () => throwError(() => new Error("Thread already running")) }),
  "runs nothing": () => ({ run: () => EMPTY }),
  "doubles the terminal event": (good) => ({
    run: (request) => good.run(request).pipe(concatMap((event) => (isEnd(event) ? of(event, event) : of(event)))),
  }),
  "closes nothing": (good) => {
    const open = without(
      EventType.TEXT_MESSAGE_END,
      EventType.TOOL_CALL_END,
      EventType.REASONING_END,
      EventType.REASONING_MESSAGE_END,
      EventType.STEP_FINISHED,
      EventType.SUBAGENT_FINISHED,
    );
    return { run: (request) => good.run(request).pipe(open), connect: (request) => good.connect(request).pipe(open) };
  },
  "forgets the messages of users": (good) => ({
    connect: (request) => good.connect(request).pipe(map(({ input: _input, ...event }) => event as BaseEvent)),
  }),
  "forgets states": (good) => ({
    connect: (request) => good.connect(request).pipe(without(EventType.STATE_SNAPSHOT, EventType.STATE_DELTA)),
  }),
  "forgets texts": (good) => ({
    connect: (request) => good.connect(request).pipe(without(EventType.TEXT_MESSAGE_CONTENT)),
  }),
  "replays nothing": () => ({ connect: () => EMPTY }),
  "replays everything twice": (good) => ({
    connect: (request) => concat(good.connect(request), good.connect(request)),
  }),
  "cannot replay": () => ({ connect: () => throwError(() => new Error("no history")) }),
  "invents a thread": (good) => ({
    connect: (request) => concat(good.connect(request), of<BaseEvent>({ type: EventType.RUN_ERROR, message: "?" })),
  }),
  "replays live runs only when they are over": (good) => ({
    connect: ({ threadId }) => defer(() => over(good, threadId)).pipe(concatMap(() => good.connect({ threadId }))),
  }),
  "stops what a reader reads": (good) => ({
    connect: (request) => good.connect(request).pipe(finalize(() => void good.stop(request))),
  }),
  "is always running": () => ({ isRunning: async () => true }),
  "is never running": () => ({ isRunning: async () => false }),
  "says that it stopped": () => ({ stop: async () => true }),
  "says that it stopped nothing": (good) => ({
    stop: async (request) => {
      await good.stop(request);
      return false;
    },
  }),
  "stops whatever runs": (good) => ({ stop: ({ threadId }) => good.stop({ threadId }) }),
  "says yes to every stop": (good) => ({
    stop: async (request) => {
      await good.stop(request);
      return true;
    },
  }),
  "waits for the end when it stops": (good) => ({
    stop: async ({ threadId }) => {
      await over(good, threadId);
      return true;
    },
  }),
  "stops all threads at once": (good) => {
    const threads = new Set<string>();
    return {
      run: (request) => {
        threads.add(request.threadId);
        return good.run(request);
      },
      stop: async () => {
        for (const threadId of threads) await good.stop({ threadId });
        return true;
      },
    };
  },
  "changes events of the agent": (good) => ({
    run: (request: AgentRunnerRunRequest): Observable<BaseEvent> => {
      const { agent } = request;
      const run = agent.run.bind(agent);
      agent.run = (input) => run(input).pipe(tap((event) => Object.assign(event, { metadata: { seen: true } })));
      return good.run(request);
    },
  }),
};

function isEnd({ type }: BaseEvent): boolean {
  return type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;
}

async function over(runner: AgentRunner, threadId: string): Promise<void> {
  while (await runner.isRunning({ threadId })) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A good runner with some of its methods broken. */
export function broken(good: AgentRunner, breaks: Break): AgentRunner {
  return {
    run: (request) => good.run(request),
    connect: (request) => good.connect(request),
    isRunning: (request) => good.isRunning(request),
    stop: (request) => good.stop(request),
    ...breaks(good),
  };
}
