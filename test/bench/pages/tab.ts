import { EventType, type AgentSubscriber } from "@ag-ui/client";
import { connectRuntime, type LocalAgent, type RuntimeConnection } from "ag-ui-local-runtime/client";
import { filter, firstValueFrom, share, tap, type Observable } from "rxjs";
import { attachFrames, runFrames } from "../../../src/client/frames.js";
import { HostLink } from "../../../src/client/host-link.js";
import { unpackEntry } from "../../../src/run/pack.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { MARKS_CHANNEL, say, stamp, type Emitted, type HostConfig, type Probe } from "./stamps.js";

/** How the text is delivered: `agent`, into a LocalAgent's messages; `frames`, off the wire and no further. */
export type Reader = "agent" | "frames";

export interface Delivered {
  readonly at: number;
  /** Length of the text for an agent; number of events for frames. */
  readonly amount: number;
  readonly frames: number;
}

interface Host {
  readonly runtime: RuntimeConnection;
  readonly link: HostLink;
  readonly questions: BroadcastChannel;
}

const hosts = new Map<string, Host>();
const emitted = new Map<string, Emitted>();
const hear = new Map<string, (mark: Emitted) => void>();
new BroadcastChannel(MARKS_CHANNEL).onmessage = ({ data }: MessageEvent<Emitted>) => {
  emitted.set(data.runId, data);
  hear.get(data.runId)?.(data);
};

const hostOf = (key: string): Host => {
  const host = hosts.get(key);
  if (host === undefined) throw new Error(`not connected: ${key}`);
  return host;
};

const answer = <T>(questions: BroadcastChannel, question: "clock" | "probe"): Promise<T> =>
  new Promise((resolve) => {
    questions.onmessage = ({ data }: MessageEvent<T>) => resolve(data);
    say(questions, question);
  });

/** Resolves when everything that was sent to the host before has been taken by it. */
async function flushed({ runtime }: Host): Promise<void> {
  await runtime.threads.list({ limit: 1 });
  await runtime.threads.list({ limit: 1 });
}

function collect(frames$: Observable<Frame>): Promise<Delivered> {
  return new Promise((resolve, reject) => {
    let amount = 0;
    let frames = 0;
    const reading = frames$.subscribe({
      error: reject,
      next: (frame) => {
        if (frame.type === "chunk") {
          amount += frame.chunk.count;
          frames++;
        } else if (frame.type === "settled") {
          resolve({ at: stamp(), amount, frames });
          setTimeout(() => reading.unsubscribe());
        }
      },
    });
  });
}

/** When the run's text is in the agent's messages. */
function applied(agent: LocalAgent, end: () => void): Promise<Delivered> {
  return new Promise((resolve, reject) => {
    const subscriber: AgentSubscriber = {
      onRunFailed: ({ error }) => reject(error),
      onRunFinalized: () => {
        const at = stamp();
        const { content } = agent.messages.at(-1) ?? {};
        resolve({ at, amount: typeof content === "string" ? content.length : 0, frames: 0 });
        setTimeout(end);
      },
    };
    agent.subscribe(subscriber);
  });
}

const pending = new Map<string, Promise<Delivered>>();

const input = (threadId: string, runId: string, forwardedProps: { n: number; rate?: number }) => ({
  threadId,
  runId,
  messages: [],
  tools: [],
  context: [],
  forwardedProps,
  state: {},
});

function hang(agent: LocalAgent): { readonly begun: Promise<void>; readonly ended: Promise<number> } {
  let begin!: () => void;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const ended = new Promise<number>((resolve, reject) => {
    agent
      .runAgent(
        { runId: crypto.randomUUID() },
        {
          onTextMessageContentEvent: () => begin(),
          onRunFinishedEvent: () => resolve(stamp()),
        },
      )
      .catch(reject);
  });
  return { begun, ended };
}

const bench = {
  /** Connects this tab to a host; `key` names the connection from then on. */
  async connect(key: string, config: HostConfig): Promise<void> {
    const shared = (): SharedWorker =>
      new SharedWorker(new URL("./host.worker.ts", import.meta.url), { type: "module", name: JSON.stringify(config) });
    const options = { hosts: { shared }, extendedLifetime: false };
    const runtime = connectRuntime(options);
    await firstValueFrom(runtime.status$.pipe(filter(({ is }) => is === "connected")));
    const link = new HostLink({ ...options, startTimeoutMs: 15_000, callTimeoutMs: 15_000 });
    await link.linked();
    hosts.set(key, {
      runtime,
      link,
      questions: new BroadcastChannel(`bench-host-${config.dbName}-${config.host}`),
    });
  },

  /** How far the host's clock is from this tab's, in ms, by the fastest of several questions. */
  async clockOffset(key: string): Promise<number> {
    const { questions } = hostOf(key);
    let fastest = Infinity;
    let offset = 0;
    for (let i = 0; i < 30; i++) {
      const sent = stamp();
      const { clock } = await answer<{ clock: number }>(questions, "clock");
      const back = stamp();
      if (back - sent >= fastest) continue;
      fastest = back - sent;
      offset = clock - (sent + back) / 2;
    }
    return offset;
  },

  /** What the host's probe counted since the last call. */
  async probe(key: string): Promise<Probe | undefined> {
    return (await answer<{ probe?: Probe }>(hostOf(key).questions, "probe")).probe;
  },

  /** Stays attached to a thread that has a run, for its next one, which comes from another tab. */
  async follow(key: string, reader: Reader, threadId: string): Promise<void> {
    const host = hostOf(key);
    if (reader === "frames") {
      const frames$ = attachFrames(host.link, { threadId, follow: true }).pipe(share());
      const history = firstValueFrom(frames$);
      pending.set(threadId, collect(frames$));
      await history;
    } else {
      const agent = host.runtime.agent("sync", { threadId });
      const unfollow = agent.follow();
      await agent.connectAgent();
      pending.set(threadId, applied(agent, unfollow));
    }
    await flushed(host);
  },

  /** The end of what {@link follow} waits for. */
  async followed(threadId: string): Promise<Delivered> {
    const delivered = await pending.get(threadId)!;
    pending.delete(threadId);
    return delivered;
  },

  /** Runs an agent and reads the run to its end. */
  async stream(
    key: string,
    reader: Reader,
    agentId: string,
    threadId: string,
    n: number,
  ): Promise<{ delivered: Delivered; emitted: Emitted }> {
    const host = hostOf(key);
    const runId = crypto.randomUUID();
    const marked = new Promise<Emitted>((resolve) => hear.set(runId, resolve));
    let delivered: Delivered;
    if (reader === "frames") {
      const request = { threadId, agentId, input: input(threadId, runId, { n }) };
      delivered = await collect(runFrames(host.link, request, () => undefined));
    } else {
      const agent = host.runtime.agent(agentId, { threadId });
      const end = applied(agent, () => undefined);
      await agent.runAgent({ runId, forwardedProps: { n } });
      delivered = await end;
    }
    return { delivered, emitted: await marked };
  },

  /** From each delta's emission to its arrival in this tab. In ms. */
  async latencies(key: string, rate: number, n: number): Promise<number[]> {
    const host = hostOf(key);
    const threadId = crypto.randomUUID();
    const request = { threadId, agentId: "paced", input: input(threadId, crypto.randomUUID(), { n, rate }) };
    const times: number[] = [];
    const frames$ = runFrames(host.link, request, () => undefined);
    await collect(
      frames$.pipe(
        tap((frame) => {
          const now = stamp();
          if (frame.type !== "chunk") return;
          for (const event of frame.chunk.entries.flatMap(unpackEntry)) {
            if (event.type === EventType.TEXT_MESSAGE_CONTENT) times.push(now - Number(event["delta"]));
          }
        }),
      ),
    );
    return times;
  },

  /** `runAgent()` to the first event, `count` times in one thread, a user's message each time. In ms. */
  async starts(key: string, threadId: string, count: number): Promise<number[]> {
    const agent = hostOf(key).runtime.agent("sync", { threadId });
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      agent.addMessage({ id: crypto.randomUUID(), role: "user", content: `question ${i}` });
      let first: number | undefined;
      const begun = performance.now();
      await agent.runAgent({ forwardedProps: { n: 1 } }, { onEvent: () => void (first ??= performance.now()) });
      times.push(first! - begun);
    }
    return times;
  },

  /** From `runAgent()` on a busy thread to its rejection. The thread is kept busy in `holder`. */
  async refusals(holder: string, asker: string, threadId: string, count: number): Promise<number[]> {
    const owner = hostOf(holder).runtime.agent("hanging", { threadId });
    const { begun, ended } = hang(owner);
    await begun;
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      const second = hostOf(asker).runtime.agent("hanging", { threadId });
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

  /** From `abortRun()` in a tab of `asker` to the terminal event in the tab that runs (`owner`) and that asked. */
  async stops(holder: string, asker: string, count: number): Promise<{ owner: number[]; asker: number[] }> {
    const times = { owner: [] as number[], asker: [] as number[] };
    for (let i = 0; i < count; i++) {
      const threadId = crypto.randomUUID();
      const agent = hostOf(holder).runtime.agent("hanging", { threadId });
      const other = holder === asker ? agent : hostOf(asker).runtime.agent("hanging", { threadId });
      const unfollow = holder === asker ? () => undefined : other.follow();
      const seen = new Promise<number>((resolve) => other.subscribe({ onRunFinishedEvent: () => resolve(stamp()) }));
      await flushed(hostOf(asker));
      const { begun, ended } = hang(agent);
      await begun;
      await firstValueFrom(other.run$.pipe(filter(({ is }) => is === "running")));
      const asked = stamp();
      other.abortRun();
      times.owner.push((await ended) - asked);
      times.asker.push((await seen) - asked);
      unfollow();
    }
    return times;
  },

  /** What of a host is not storage and not ports, in a worker of its own. */
  pipeline(n: number, samples: number): Promise<Record<string, number[]>> {
    const worker = new Worker(new URL("./pipeline.worker.ts", import.meta.url), { type: "module" });
    return new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Record<string, number[]>>) => {
        resolve(data);
        worker.terminate();
      };
      worker.onerror = (event) => reject(new Error(event.message));
      worker.postMessage({ n, samples }, []);
    });
  },

  async machine(): Promise<{ cores: number; browser: string }> {
    const data = (
      navigator as { userAgentData?: { getHighEntropyValues(hints: string[]): Promise<{ uaFullVersion: string }> } }
    ).userAgentData;
    const values = await data?.getHighEntropyValues(["uaFullVersion"]);
    return { cores: navigator.hardwareConcurrency, browser: values?.uaFullVersion ?? navigator.userAgent };
  },
};

export type TabBench = typeof bench;

Object.assign(globalThis, { bench });
