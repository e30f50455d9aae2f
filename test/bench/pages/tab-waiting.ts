import { EventType } from "@ag-ui/client";
import { filter, firstValueFrom, ReplaySubject, take, toArray } from "rxjs";
import { hostOf } from "./tab-hosts.js";
import { inputOf } from "./tab-input.js";

const ONE_WORD = { n: 1 };

/** What the bench asks of a tab about runs that wait. */
export const waitingCalls = {
  /** Keeps a thread busy; resolves when it is. */
  async keepBusy(key: string, threadId: string): Promise<void> {
    const agent = hostOf(key).runtime.agent("hanging", { threadId });
    const begun = new Promise<void>((resolve) => agent.subscribe({ onRunStartedEvent: () => resolve() }));
    agent.runAgent({ forwardedProps: ONE_WORD }).catch(() => undefined);
    await begun;
  },

  /** Adds so many runs, each with a message, to those that wait in the thread; the time of each, in ms. */
  async enqueue(key: string, threadId: string, count: number): Promise<number[]> {
    const { link } = hostOf(key);
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      const messages = [{ id: crypto.randomUUID(), role: "user" as const, content: `question ${i}` }];
      const input = inputOf(threadId, crypto.randomUUID(), ONE_WORD, messages);
      const run = { threadId, agentId: "sync", input, partial: { stateSet: false } };
      const begun = performance.now();
      const is = await link.call("enqueue", { run, onBusy: "queue", whenOffline: "fail" });
      times.push(performance.now() - begun);
      if (is !== "waits") throw new Error(`run ${i} does not wait: ${is}`);
    }
    return times;
  },

  /** The time of so many lists of the thread's waiting runs, in ms. */
  async listWaiting(key: string, threadId: string, times: number, expected: number): Promise<number[]> {
    const { waiting } = hostOf(key).runtime;
    const taken: number[] = [];
    for (let i = 0; i < times; i++) {
      const begun = performance.now();
      const { length } = await waiting.list(threadId);
      taken.push(performance.now() - begun);
      if (length !== expected) throw new Error(`${length} runs wait instead of ${expected}`);
    }
    return taken;
  },

  /** Ends the live run; from each end to the first event of the next run, so many times, in ms. */
  async startsOfNext(key: string, threadId: string, count: number): Promise<number[]> {
    const agent = hostOf(key).runtime.agent("hanging", { threadId });
    const pauses$ = new ReplaySubject<number>();
    let ended: number | undefined;
    agent.subscribe({
      onEvent: ({ event: { type } }) => {
        if (type === EventType.RUN_FINISHED) ended = performance.now();
        if (type === EventType.RUN_STARTED && ended !== undefined) pauses$.next(performance.now() - ended);
      },
    });
    const unfollow = agent.follow();
    await firstValueFrom(agent.run$.pipe(filter(({ is }) => is === "running")));
    ended = undefined;
    agent.abortRun();
    const pauses = await firstValueFrom(pauses$.pipe(take(count), toArray()));
    unfollow();
    return pauses;
  },

  /** Deletes a thread with all that waits in it. */
  async forget(key: string, threadId: string): Promise<void> {
    await hostOf(key).runtime.threads.delete(threadId);
  },
};
