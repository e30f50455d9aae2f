import type { LocalAgent } from "ag-ui-local-runtime/client";
import { inTime } from "./in-time.js";
import { stamp } from "./stamps.js";
import { flushed, hostOf } from "./tab-hosts.js";

/** When each delta of a run was emitted, by its host's clock, and was among this tab's messages, by its own. */
export interface Sightings {
  readonly emitted: readonly number[];
  readonly seen: readonly number[];
}

const AGENT = "paced";

/** Reads the emissions off the text of an agent's next run as it grows; resolves at the run's end. */
function sight(agent: LocalAgent): { readonly ended: Promise<Sightings>; readonly stop: () => void } {
  const emitted: number[] = [];
  const seen: number[] = [];
  let read = 0;
  const lastOfPast = agent.messages.at(-1)?.id;
  let stop = (): void => undefined;
  const ended = new Promise<Sightings>((resolve, reject) => {
    const { unsubscribe } = agent.subscribe({
      onMessagesChanged: ({ messages }) => {
        const now = stamp();
        const { id, content } = messages.at(-1) ?? {};
        if (typeof content !== "string" || id === lastOfPast) return;
        for (const said of content.slice(read).split(" ").slice(0, -1)) {
          emitted.push(Number(said));
          seen.push(now);
        }
        read = content.lastIndexOf(" ") + 1;
      },
      onRunFailed: ({ error }) => reject(error),
      onRunFinalized: () => resolve({ emitted, seen }),
    });
    stop = unsubscribe;
  });
  return { ended, stop };
}

const watched = new Map<string, Promise<Sightings>>();

export const latencyCalls = {
  /** Follows a thread, which has a run, for its next one. */
  async watch(key: string, threadId: string): Promise<void> {
    const host = hostOf(key);
    const agent = host.runtime.agent(AGENT, { threadId });
    const unfollow = agent.follow();
    await agent.connectAgent();
    await flushed(host);
    const { ended } = sight(agent);
    watched.set(
      threadId,
      ended.finally(() => setTimeout(unfollow)),
    );
  },

  /** What {@link watch} has seen of it. */
  async watched(threadId: string): Promise<Sightings> {
    const sightings = await inTime(watched.get(threadId)!, () => "the run has not ended here");
    watched.delete(threadId);
    return sightings;
  },

  /** Runs it here, in a thread of any past. */
  async runWatched(key: string, threadId: string, n: number, rate: number): Promise<Sightings> {
    const agent = hostOf(key).runtime.agent(AGENT, { threadId });
    await agent.connectAgent();
    const { ended, stop } = sight(agent);
    await agent.runAgent({ forwardedProps: { n, rate } });
    stop();
    return ended;
  },
};
