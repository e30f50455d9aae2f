import { EventType, type BaseEvent, type RunErrorEvent } from "@ag-ui/client";
import type { LocalAgent } from "ag-ui-local-runtime/client";
import { filter, firstValueFrom, startWith, Subject, type Observable } from "rxjs";
import { defaultLocks } from "../../../src/platform/locks.js";
import { hostLifeLockName } from "../../../src/platform/names.js";
import { heard } from "./heard.js";
import { ABORTS_CHANNEL, stamp, WORD, type Aborted } from "./stamps.js";
import { clockOffset, flushed, hostOf } from "./tab-hosts.js";

/** What dooms a run: `hanging` says its words and no more, `recovering` goes on when its run broke. */
export type Doomed = "hanging" | "recovering";
const AGENT: Doomed = "hanging";
const abortOf = heard<Aborted>(ABORTS_CHANNEL);

/** An agent and what it is told from now on: a session of the client's tells only who subscribed before it began. */
interface Heard {
  readonly agent: LocalAgent;
  readonly events$: Observable<BaseEvent>;
  /** Its messages have changed. */
  readonly changes$: Observable<void>;
}

function listenTo(agent: LocalAgent): Heard {
  const events$ = new Subject<BaseEvent>();
  const changes$ = new Subject<void>();
  agent.subscribe({
    onEvent: ({ event }) => events$.next(event),
    onMessagesChanged: () => changes$.next(),
  });
  return { agent, events$, changes$ };
}

/** Resolves when so many words are in the agent's last message. */
function said({ agent, changes$ }: Heard, words: number): Promise<void> {
  const isThere = (): boolean => String(agent.messages.at(-1)?.content ?? "").length >= words * WORD.length;
  return firstValueFrom(changes$.pipe(startWith(undefined), filter(isThere)));
}

/** Starts a run that says so many words and then waits to be stopped. `ended`: when its RUN_FINISHED came. */
function hang(
  heardAgent: Heard,
  words = 1,
): { readonly runId: string; readonly begun: Promise<void>; readonly ended: Promise<number> } {
  const runId = crypto.randomUUID();
  const ended = new Promise<number>((resolve, reject) => {
    const parameters = { runId, forwardedProps: { n: words } };
    heardAgent.agent.runAgent(parameters, { onRunFinishedEvent: () => resolve(stamp()) }).catch(reject);
  });
  // Where the host is to die nobody waits for it.
  ended.catch(() => undefined);
  return { runId, begun: said(heardAgent, words), ended };
}

/** When a tab noticed what of a host's death, by its own clock. */
export interface Witness {
  /** The host's life lock fell. */
  readonly fallen: number;
  /** The tab was connected to a host that lives. */
  readonly connected: number;
  /** The first event of the thread. */
  readonly first: number;
  /** The first event of the run that was started on RUN_BROKEN. */
  readonly again?: number;
  /** The first text of the attempt that went on with the broken run. */
  readonly text?: number;
}

/** What a tab does or waits for after RUN_BROKEN. */
export type Next =
  | "nothing"
  /** Runs again as soon as it is told. */
  | "run"
  /** Waits for more than so many words of the answer. */
  | { readonly moreThan: number };

interface Attended {
  readonly heardAgent: Heard;
  readonly leave: () => void;
  witness?: Promise<Witness>;
}

/** By thread: agents whose run's host is about to die. */
const attended = new Map<string, Attended>();

const attendedOf = (threadId: string): Attended => {
  const found = attended.get(threadId);
  if (found === undefined) throw new Error(`not attended: ${threadId}`);
  return found;
};

const isBroken = (event: BaseEvent): boolean =>
  event.type === EventType.RUN_ERROR && (event as RunErrorEvent).code === "RUN_BROKEN";

/** Starts a run, and stops it on its first event; resolves with that event's time. */
async function runAgain(heardAgent: Heard): Promise<number> {
  const { agent, events$ } = heardAgent;
  const first = firstValueFrom(events$.pipe(filter(({ type }) => type === EventType.RUN_STARTED))).then(stamp);
  const { ended } = hang(heardAgent);
  const at = await first;
  agent.abortRun();
  await ended;
  return at;
}

/** What the bench asks of a tab about refusals, stops and deaths. */
export const faultCalls = {
  /** From `runAgent()` on a busy thread to its rejection. The thread is kept busy in `holder`. */
  async refusals(holder: string, asker: string, threadId: string, count: number): Promise<number[]> {
    const owner = hostOf(holder).runtime.agent(AGENT, { threadId });
    const { begun, ended } = hang(listenTo(owner));
    await begun;
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      const second = hostOf(asker).runtime.agent(AGENT, { threadId });
      const asked = performance.now();
      const code = await second.runAgent().then(
        () => "no refusal",
        (error: { code?: string }) => error.code,
      );
      times.push(performance.now() - asked);
      if (code !== "thread-busy") throw new Error(`not refused: ${code}`);
    }
    owner.abortRun();
    await ended;
    return times;
  },

  /**
   * From `abortRun()` in a tab of `asker` to the abort in the agent, and to the terminal event in the tab that runs
   * (`owner`) and that asked.
   */
  async stops(
    holder: string,
    asker: string,
    count: number,
  ): Promise<{ aborted: number[]; owner: number[]; asker: number[] }> {
    const times = { aborted: [] as number[], owner: [] as number[], asker: [] as number[] };
    const offset = await clockOffset(holder);
    for (let i = 0; i < count; i++) {
      const threadId = crypto.randomUUID();
      const agent = hostOf(holder).runtime.agent(AGENT, { threadId });
      const other = holder === asker ? agent : hostOf(asker).runtime.agent(AGENT, { threadId });
      const unfollow = holder === asker ? () => undefined : other.follow();
      const seen = new Promise<number>((resolve) => other.subscribe({ onRunFinishedEvent: () => resolve(stamp()) }));
      await flushed(hostOf(asker));
      const { runId, begun, ended } = hang(listenTo(agent));
      const aborting = abortOf(runId);
      await begun;
      await firstValueFrom(other.run$.pipe(filter(({ is }) => is === "running")));
      const asked = stamp();
      other.abortRun();
      times.owner.push((await ended) - asked);
      times.asker.push((await seen) - asked);
      times.aborted.push((await aborting).at - offset - asked);
      unfollow();
    }
    return times;
  },

  now: stamp,

  /** Follows a thread whose next run is to lose its host. */
  async attend(key: string, threadId: string, agentId: Doomed): Promise<void> {
    const agent = hostOf(key).runtime.agent(agentId, { threadId });
    attended.set(threadId, { heardAgent: listenTo(agent), leave: agent.follow() });
    await flushed(hostOf(key));
  },

  /** Starts that run here; resolves when so many words of it are here. */
  async doom(key: string, threadId: string, words: number, agentId: Doomed): Promise<void> {
    const agent = hostOf(key).runtime.agent(agentId, { threadId });
    const heardAgent = listenTo(agent);
    attended.set(threadId, { heardAgent, leave: agentId === "recovering" ? agent.follow() : () => undefined });
    await hang(heardAgent, words).begun;
  },

  /** Resolves when so many words of an attended run are here. */
  said: (threadId: string, words: number): Promise<void> => said(attendedOf(threadId).heardAgent, words),

  /** Resolves when this tab waits for the death of that host. */
  async brace(
    key: string,
    threadId: string,
    host: { readonly dbName: string; readonly hostId: string },
    next: Next,
  ): Promise<void> {
    const entry = attendedOf(threadId);
    const { events$ } = entry.heardAgent;
    const { signal } = new AbortController();
    const fallen = defaultLocks()!.whenFree(hostLifeLockName(host.dbName, host.hostId), signal).then(stamp);
    const living$ = hostOf(key).runtime.status$.pipe(
      filter((it) => it.is === "connected" && it.bootId !== host.hostId),
    );
    const connected = firstValueFrom(living$).then(stamp);
    const first = firstValueFrom(events$).then(stamp);
    const broken = firstValueFrom(events$.pipe(filter(isBroken)));
    entry.witness = (async () => {
      await broken;
      const then =
        next === "nothing"
          ? {}
          : next === "run"
            ? { again: await runAgain(entry.heardAgent) }
            : { text: await said(entry.heardAgent, next.moreThan + 1).then(stamp) };
      return { fallen: await fallen, connected: await connected, first: await first, ...then };
    })();
    // Answered behind the request above.
    await navigator.locks.query();
  },

  /** What this tab noticed of that death. Attends the thread no longer. */
  async witnessed(threadId: string): Promise<Witness> {
    const { witness, leave } = attendedOf(threadId);
    if (witness === undefined) throw new Error(`not braced: ${threadId}`);
    const noticed = await witness;
    leave();
    attended.delete(threadId);
    return noticed;
  },
};
