import { EventType, type AgentSubscriber } from "@ag-ui/client";
import type { LocalAgent } from "ag-ui-local-runtime/client";
import { firstValueFrom, share, tap, type Observable } from "rxjs";
import { attachFrames, runFrames } from "../../../src/client/frames.js";
import { unpackEntry } from "../../../src/run/pack.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { heard } from "./heard.js";
import { MARKS_CHANNEL, stamp, WORD, type Emitted } from "./stamps.js";
import { faultCalls } from "./tab-faults.js";
import { attachCalls } from "./tab-attach.js";
import { deviceCalls } from "./tab-devices.js";
import { flushed, hostCalls, hostOf } from "./tab-hosts.js";
import { inputOf } from "./tab-input.js";
import { latencyCalls } from "./tab-latency.js";
import { liveCalls } from "./tab-live.js";
import { screenCalls } from "./tab-screen.js";
import { waitingCalls } from "./tab-waiting.js";

/** How the text is delivered: `agent`, into a LocalAgent's messages; `frames`, off the wire and no further. */
export type Reader = "agent" | "frames";

export interface Delivered {
  readonly at: number;
  /** Length of the text for an agent; number of events for frames. */
  readonly amount: number;
  readonly frames: number;
}

const emissionOf = heard<Emitted>(MARKS_CHANNEL);

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
        const text = typeof content === "string" ? content : "";
        if (text === WORD.repeat(Math.floor(text.length / WORD.length)))
          resolve({ at, amount: text.length, frames: 0 });
        else reject(new Error(`a text of ${text.length} that is not what was said`));
        setTimeout(end);
      },
    };
    agent.subscribe(subscriber);
  });
}

const pending = new Map<string, Promise<Delivered>>();

const bench = {
  ...hostCalls,
  ...faultCalls,
  ...latencyCalls,
  ...attachCalls,
  ...liveCalls,
  ...screenCalls,
  ...waitingCalls,
  ...deviceCalls,

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
    const marked = emissionOf(runId);
    let delivered: Delivered;
    if (reader === "frames") {
      const request = { threadId, agentId, input: inputOf(threadId, runId, { n }) };
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
    const request = { threadId, agentId: "paced", input: inputOf(threadId, crypto.randomUUID(), { n, rate }) };
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
