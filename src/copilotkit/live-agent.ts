import { BehaviorSubject, filter, type Observable } from "rxjs";
import type { LocalAgent } from "../client/index.js";
import { asError } from "../client/read-until-done.js";
import { sharedToolsOf } from "./shared-tools.js";

/** By agent: why the run that the page asked for last did not begin. */
const refusals = new WeakMap<object, BehaviorSubject<Error | undefined>>();

/** Whether it is an agent of the worker that {@link liveAgent} was given. */
export const isLive = (agent: object): agent is LocalAgent => refusals.has(agent);

/** Why the run that the page asked for last did not begin, until another one of the thread does; replays the latest. */
export const refusalOf = (agent: LocalAgent): Observable<Error | undefined> => refusals.get(agent)!;

/** Whether the run that the page asked for last did not begin. */
export const isRefused = (agent: LocalAgent): boolean => refusals.get(agent)?.value !== undefined;

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
  const refusal = new BehaviorSubject<Error | undefined>(undefined);
  refusals.set(agent, refusal);
  /** The thread that it is of. */
  let refusedIn: string | undefined;
  /** How many runs of the thread the agent has seen begin. */
  let begun = 0;
  agent.run$.pipe(filter(({ is }) => is === "running")).subscribe(() => {
    begun++;
    refusal.next(undefined);
  });
  const { connectAgent, runAgent, runAfterToolCalls, detachActiveRun, clone } = agent;
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
      if (refusedIn !== agent.threadId) refusal.next(undefined);
      follow();
      return connectAgent.apply(agent, given);
    },
    runAgent: async (...given: Parameters<LocalAgent["runAgent"]>) => {
      const [parameters, subscriber] = given;
      const tools = sharedToolsOf(agent);
      const handed = tools?.takeHanded(parameters?.runId);
      if (handed !== undefined) {
        follow();
        return handed;
      }
      tools?.dropUnwanted();
      const before = generation;
      const begunBefore = begun;
      const { threadId } = agent;
      refusal.next(undefined);
      ownRuns.set(agent, (ownRuns.get(agent) ?? 0) + 1);
      try {
        const goOn = (runId: string): ReturnType<typeof runAgent> =>
          runAfterToolCalls.call(agent, runId, parameters, subscriber);
        const result = await (tools?.goingOn(parameters?.runId, goOn) ?? runAgent.apply(agent, given));
        return tools?.leftOf(result, parameters?.tools) ?? result;
      } catch (error) {
        // How a run fails that has begun, `run$` tells.
        if (begun === begunBefore && agent.threadId === threadId) {
          refusedIn = threadId;
          refusal.next(asError(error));
        }
        throw error;
      } finally {
        ownRuns.set(agent, ownRuns.get(agent)! - 1);
        // A chat without a thread of its own never connects: its thread begins with its first run.
        if (before === generation) follow();
      }
    },
    runAfterToolCalls: (...given: Parameters<LocalAgent["runAfterToolCalls"]>) =>
      sharedToolsOf(agent)?.goOn(given[0]) ?? runAfterToolCalls.apply(agent, given),
    detachActiveRun: () => {
      generation++;
      unfollow?.();
      unfollow = undefined;
      return detachActiveRun.apply(agent);
    },
  });
}
