import { AbstractAgent, EventType, type BaseEvent, type Message, type MessagesSnapshotEvent } from "@ag-ui/client";
import { connectRuntime, type LocalAgent } from "ag-ui-local-runtime/client";
import { filter, firstValueFrom, from, lastValueFrom, NEVER, type Observable } from "rxjs";
import { attachFrames, runFrames } from "../../../src/client/frames.js";
import type { HostLink } from "../../../src/client/host-link.js";
import type { Replay } from "../../../src/wire/shapes.js";
import type { HostConfig, IdleWord } from "./stamps.js";
import { bootIdOf, hostOf, linkTo, optionsOf } from "./tab-hosts.js";
import { inputOf } from "./tab-input.js";
import { checkTold, PER_RUN, toldMessage } from "./told.js";

const AGENT = "telling";

/** Its first frame: the snapshot, or the compacted events. */
async function preludeOf(link: HostLink, threadId: string, replay: Replay): Promise<readonly BaseEvent[]> {
  const frame = await firstValueFrom(attachFrames(link, { threadId, replay, follow: false }));
  if (frame.type !== "prelude") throw new Error(`the first frame is ${frame.type}`);
  return frame.events;
}

function snapshotIn(events: readonly BaseEvent[]): readonly Message[] {
  const last = events.findLast(({ type }) => type === EventType.MESSAGES_SNAPSHOT);
  return (last as MessagesSnapshotEvent | undefined)?.messages ?? [];
}

/** Attaches an agent; when its messages were there, and when it had nothing more to read. In ms from `begun`. */
async function whenThere(agent: LocalAgent, count: number, begun: number): Promise<{ there: number; read: number }> {
  let there: number | undefined;
  const { unsubscribe } = agent.subscribe({
    onMessagesChanged: ({ messages }) => {
      if (messages.length === count) there ??= performance.now() - begun;
    },
  });
  await agent.connectAgent();
  const read = performance.now() - begun;
  unsubscribe();
  if (there === undefined) throw new Error(`${agent.messages.length} messages instead of ${count}`);
  return { there, read };
}

/** As an HttpAgent that is answered at once: what it connects to is history, event by event. */
class ReplayAgent extends AbstractAgent {
  constructor(private readonly events: readonly BaseEvent[]) {
    super();
  }

  override run(): Observable<BaseEvent> {
    return NEVER;
  }

  protected override connect(): Observable<BaseEvent> {
    return from(this.events);
  }
}

export interface AttachOnce {
  readonly key: string;
  readonly threadId: string;
  /** Messages of the thread. */
  readonly count: number;
}

/** What the bench asks of a tab about attaching to settled threads. Times in ms. */
export const attachCalls = {
  /** Makes messages `begin` to `end` of a long thread. */
  async tell(key: string, threadId: string, begin: number, end: number): Promise<void> {
    const { link } = hostOf(key);
    for (let i = begin; i < end; i += PER_RUN) {
      const input = inputOf(threadId, crypto.randomUUID(), { answers: PER_RUN - 1, from: i + 1 }, [toldMessage(i)]);
      const request = { threadId, agentId: AGENT, input, partial: { stateSet: false } };
      const settled$ = runFrames(link, request, () => undefined).pipe(filter(({ type }) => type === "settled"));
      const settled = await lastValueFrom(settled$);
      if (settled.type === "settled" && settled.status !== "finished") throw new Error(`the run is ${settled.status}`);
    }
  },

  /** Attaching without an agent, to the frame that has the history. */
  async attachByFrame({ key, threadId, count }: AttachOnce): Promise<number> {
    const { link } = hostOf(key);
    await link.linked();
    const begun = performance.now();
    const events = await preludeOf(link, threadId, "snapshot");
    const ms = performance.now() - begun;
    checkTold(snapshotIn(events), 0, count);
    return ms;
  },

  /**
   * Attaching a LocalAgent that has nothing yet, to its messages.
   *
   * @param messageLimit so many of the newest only
   */
  async attachByAgent({ key, threadId, count }: AttachOnce, messageLimit?: number): Promise<number> {
    const { runtime } = hostOf(key);
    // An option that it does not know is one that it does not heed: then the check below fails.
    const agent = runtime.agent(AGENT, { threadId, ...(messageLimit && { messageLimit }) });
    const expected = messageLimit ?? count;
    const { there } = await whenThere(agent, expected, performance.now());
    checkTold(agent.messages, count - expected, count);
    return there;
  },

  /** The client's own way: history as compacted events, from the host (`handedOut`), then applied one by one. */
  async attachByReplay({ key, threadId, count }: AttachOnce): Promise<{ handedOut: number; applied: number }> {
    const { link } = hostOf(key);
    await link.linked();
    const begun = performance.now();
    const events = await preludeOf(link, threadId, "events");
    const handedOut = performance.now() - begun;
    const agent = new ReplayAgent(events);
    const begunToApply = performance.now();
    await agent.connectAgent();
    const applied = performance.now() - begunToApply;
    checkTold(agent.messages, 0, count);
    return { handedOut, applied };
  },

  /** From nothing, not even a worker, to a connection (`connected`) and to the messages of a LocalAgent (`there`). */
  async firstByAgent(
    config: HostConfig,
    threadId: string,
    count: number,
  ): Promise<{ connected: number; there: number }> {
    const begun = performance.now();
    const runtime = connectRuntime(optionsOf(config));
    const connecting = bootIdOf(runtime).then(() => performance.now() - begun);
    const agent = runtime.agent(AGENT, { threadId });
    const { there, read } =
      count === 0 ? { there: undefined, read: await readNothing(agent, begun) } : await whenThere(agent, count, begun);
    const connected = await connecting;
    checkTold(agent.messages, 0, count);
    await runtime.close();
    return { connected, there: there ?? read };
  },

  /** The same to the first frame. */
  async firstByFrame(config: HostConfig, threadId: string, count: number): Promise<number> {
    const begun = performance.now();
    const link = linkTo(config);
    const events = await preludeOf(link, threadId, "snapshot");
    const ms = performance.now() - begun;
    checkTold(snapshotIn(events), 0, count);
    await link.close();
    return ms;
  },

  /**
   * A worker without the runtime, to its first message.
   *
   * @param what `loaded`: with its code, which does nothing
   */
  async bareStart(name: string, what: "idle" | "loaded"): Promise<number> {
    const begun = performance.now();
    const { port } =
      what === "idle"
        ? new SharedWorker(new URL("./idle.worker.ts", import.meta.url), { type: "module", name })
        : new SharedWorker(new URL("./loaded.worker.ts", import.meta.url), { type: "module", name });
    const word = await new Promise<IdleWord>((resolve) => {
      port.onmessage = ({ data }: MessageEvent<IdleWord>) => resolve(data);
    });
    const ms = performance.now() - begun;
    if (word !== "here") throw new Error(`the first word is ${word}`);
    return ms;
  },
};

/** The end of reading a thread that nobody has written to. */
async function readNothing(agent: LocalAgent, begun: number): Promise<number> {
  await agent.connectAgent();
  return performance.now() - begun;
}
