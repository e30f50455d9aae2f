import type { LocalAgent } from "../client/index.js";

/** How many runs the page itself has started that are not over. */
const ownRuns = new WeakMap<object, number>();

/** Whether the run that the agent shows was started by this page. */
export const runsItself = (agent: object): boolean => (ownRuns.get(agent) ?? 0) > 0;

/**
 * Has an agent follow its thread while a CopilotKit chat shows it: the runs that another tab starts stream here too.
 *
 * CopilotKit sets `threadId`, calls `connectAgent` when a chat appears or changes its thread, and `detachActiveRun` when
 * it goes away, before each `connectAgent`, and before each run. So following begins with the first, goes on behind
 * each run, and ends with the second.
 *
 * @returns the same agent
 */
export function liveAgent(agent: LocalAgent): LocalAgent {
  const { connectAgent, runAgent, detachActiveRun, clone } = agent;
  let unfollow: (() => void) | undefined;
  /** Changes with each detaching: who awaited something meanwhile must not follow again. */
  let generation = 0;
  const follow = (): void => void (unfollow ??= agent.follow());

  // On this object, not in a subclass: the connection makes its agents.
  return Object.assign(agent, {
    // CopilotKit asks a clone for suggestions. That is no run of the chat: nobody who watches the chat is told of it (its
    // start would take a question of `useInterrupt` away), and no open interrupt is in its way.
    clone: () => Object.assign(clone.apply(agent), { subscribers: [], pendingInterrupts: [] }),
    connectAgent: (...given: Parameters<LocalAgent["connectAgent"]>) => {
      // It may be another thread than the one that is followed.
      unfollow?.();
      unfollow = undefined;
      follow();
      return connectAgent.apply(agent, given);
    },
    runAgent: async (...given: Parameters<LocalAgent["runAgent"]>) => {
      const before = generation;
      ownRuns.set(agent, (ownRuns.get(agent) ?? 0) + 1);
      try {
        return await runAgent.apply(agent, given);
      } finally {
        ownRuns.set(agent, ownRuns.get(agent)! - 1);
        // A chat without a thread of its own never connects: its thread begins with its first run.
        if (before === generation) follow();
      }
    },
    detachActiveRun: () => {
      generation++;
      unfollow?.();
      unfollow = undefined;
      return detachActiveRun.apply(agent);
    },
  });
}
