import { AbstractAgent, EventType, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import type { LocalAgentRunner } from "ag-ui-local-runtime";
import { Observable, type Subscriber } from "rxjs";

/** In ms, one for each run; `append` has {@link APPENDS} for each. */
export interface ThreadTimes {
  /** `run()` → first event delivered. */
  readonly start: number[];
  /** An event emitted while the log is idle → delivered. */
  readonly append: number[];
  /** The agent's completion → the Observable completed. */
  readonly settle: number[];
}

/** Deltas of each measured run. */
export const APPENDS = 3;

/** Emits what it is told to, when it is told to. */
class LiveAgent extends AbstractAgent {
  reads = false;
  subscriber: Subscriber<BaseEvent> | undefined;

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      this.subscriber = subscriber;
      if (this.reads && input.messages.at(-1)?.role !== "user") throw new Error("the question is not the last message");
      const { threadId, runId } = input;
      this.emit(EventType.RUN_STARTED, { threadId, runId });
      this.emit(EventType.TEXT_MESSAGE_START, { messageId: `answer-${runId}`, role: "assistant" });
    });
  }

  emit(type: EventType, fields: object): void {
    this.subscriber!.next({ type, ...fields });
  }

  finish(threadId: string, runId: string): void {
    this.emit(EventType.TEXT_MESSAGE_END, { messageId: `answer-${runId}` });
    this.emit(EventType.RUN_FINISHED, { threadId, runId });
    this.subscriber!.complete();
  }
}

const original = new LiveAgent({ agentId: "live" });

function request(threadId: string, reads: boolean): { threadId: string; agent: LiveAgent; input: RunAgentInput } {
  const runId = crypto.randomUUID();
  const agent: LiveAgent = original.clone();
  agent.reads = reads;
  const messages = [{ id: `question-${runId}`, role: "user" as const, content: "What is the answer?" }];
  return {
    threadId,
    agent,
    input: { threadId, runId, messages, tools: [], context: [], forwardedProps: {}, state: {} },
  };
}

const idle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

/** One run, of which only what is new is sent. */
async function liveRun(runner: LocalAgentRunner, threadId: string, reads: boolean, times: ThreadTimes): Promise<void> {
  const asked = request(threadId, reads);
  const { agent, input } = asked;
  const { runId } = input;
  let wake = (): void => undefined;
  let last: BaseEvent | undefined;
  let first: number | undefined;
  let at = performance.now();
  const begun = at;
  const completed = new Promise<number>((resolve, reject) => {
    runner.run(asked).subscribe({
      next: (event) => {
        at = performance.now();
        first ??= at;
        last = event;
        wake();
      },
      error: reject,
      complete: () => resolve(performance.now()),
    });
  });
  const delivered = (is: (event: BaseEvent) => boolean): Promise<unknown> =>
    Promise.race([
      completed,
      new Promise<void>((resolve) => {
        wake = () => {
          if (last !== undefined && is(last)) resolve();
        };
        wake();
      }),
    ]);
  await delivered(({ type }) => type === EventType.TEXT_MESSAGE_START);
  times.start.push(first! - begun);
  for (let i = 0; i < APPENDS; i++) {
    await idle();
    const emitted = performance.now();
    agent.emit(EventType.TEXT_MESSAGE_CONTENT, { messageId: `answer-${runId}`, delta: `word ${i} ` });
    await delivered((event) => event["delta"] === `word ${i} `);
    times.append.push(at - emitted);
  }
  await idle();
  const finishing = performance.now();
  agent.finish(threadId, runId);
  times.settle.push((await completed) - finishing);
  if (last?.type !== EventType.RUN_FINISHED || (await runner.isRunning({ threadId }))) {
    throw new Error(`the run ended with ${last?.type}`);
  }
}

const none = (): ThreadTimes => ({ start: [], append: [], settle: [] });

/** Threads of one store, as its host works with them. `open` makes another runner on that store. */
export function liveThreads(open: () => LocalAgentRunner) {
  let runner: LocalAgentRunner | undefined;
  const opened = async (): Promise<LocalAgentRunner> => {
    runner ??= open();
    await runner.opened;
    return runner;
  };
  return {
    /** Adds settled runs to a thread: a question and a short answer each. */
    async fill(threadId: string, runs: number): Promise<void> {
      const host = await opened();
      for (let i = 0; i < runs; i++) {
        await new Promise<void>((resolve, reject) => {
          const asked = request(threadId, false);
          const { runId } = asked.input;
          host.run(asked).subscribe({
            next: ({ type }) => {
              if (type !== EventType.RUN_STARTED) return;
              asked.agent.emit(EventType.TEXT_MESSAGE_CONTENT, {
                messageId: `answer-${runId}`,
                delta: "A short answer.",
              });
              asked.agent.finish(threadId, runId);
            },
            error: reject,
            complete: resolve,
          });
        });
      }
    },

    /** Runs in the host that ran the ones before. */
    async warm(threadId: string, runs: number, reads: boolean): Promise<ThreadTimes> {
      const host = await opened();
      const times = none();
      for (let i = 0; i < runs; i++) await liveRun(host, threadId, reads, times);
      return times;
    },

    /** The first run of a fresh host. */
    async cold(threadId: string, reads: boolean): Promise<ThreadTimes> {
      await runner?.close();
      runner = undefined;
      const times = none();
      await liveRun(await opened(), threadId, reads, times);
      return times;
    },
  };
}
