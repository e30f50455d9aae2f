import type { LocalAgent } from "../client/index.js";

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
  const { connectAgent, runAgent, detachActiveRun } = agent;
  let unfollow: (() => void) | undefined;
  /** Changes with each detaching: who awaited something meanwhile must not follow again. */
  let generation = 0;
  const follow = (): void => void (unfollow ??= agent.follow());

  // On this object, not in a subclass: the connection makes its agents. A clone, which CopilotKit asks for suggestions,
  // is made without them and follows nothing.
  return Object.assign(agent, {
    connectAgent: (...given: Parameters<LocalAgent["connectAgent"]>) => {
      // It may be another thread than the one that is followed.
      unfollow?.();
      unfollow = undefined;
      follow();
      return connectAgent.apply(agent, given);
    },
    runAgent: async (...given: Parameters<LocalAgent["runAgent"]>) => {
      const before = generation;
      try {
        return await runAgent.apply(agent, given);
      } finally {
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
