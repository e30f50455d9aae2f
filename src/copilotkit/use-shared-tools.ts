import { useCallback, useEffect, useMemo } from "react";
import type { LocalAgent, ShownToolCall } from "../client/index.js";
import { NO_CALLS } from "../client/tools/frontend-tools.js";
import { useRuntime } from "../react/index.js";
import { useSnapshot } from "../react/provider.js";
import { isLive } from "./live-agent.js";
import { shareQuestions } from "./questions.js";
import { SharedTools, type RunsTools, type SharedToolsOptions } from "./shared-tools.js";

/** Calls of the page's tools that wait, in whichever tab. */
export interface SharedToolCalls {
  readonly calls: readonly ShownToolCall[];
  /** Gives a call its result, in place of a handler. Errors: RunnerError `call-over` if it has one, or the thread went on. */
  readonly answer: (toolCallId: string, result: unknown) => Promise<void>;
  /** Runs an interrupted call again, in this tab. Errors: RunnerError `call-over` */
  readonly runAgain: (toolCallId: string) => Promise<void>;
}

/**
 * Runs each call of the page's CopilotKit tools in one tab, once: also after a reload, and in another tab when the one
 * that ran it is gone. What `useHumanInTheLoop` asks is asked in all tabs, and answered once. Every page of the threads
 * has to use it.
 *
 * @param agent the chat's, as CopilotKit's `useAgent()` gives it. With one that is no agent of the worker nothing happens
 */
export function useSharedTools<A extends object>(
  copilotkit: RunsTools<A>,
  agent: A,
  { notRepeatable, onError }: SharedToolsOptions = {},
): SharedToolCalls {
  const runtime = useRuntime();
  const tools = useMemo(() => {
    if (runtime === undefined || !isLive(agent)) return undefined;
    // It is of the worker, so it is a `LocalAgent`, which CopilotKit has in its own type.
    return SharedTools.of(runtime, copilotkit as unknown as RunsTools<LocalAgent>, agent);
  }, [runtime, copilotkit, agent]);
  useEffect(() => tools?.configure({ ...(notRepeatable && { notRepeatable }), ...(onError && { onError }) }));
  useEffect(
    () => (isLive(agent) ? shareQuestions(copilotkit as unknown as RunsTools<LocalAgent>, agent) : undefined),
    [copilotkit, agent],
  );
  const calls = useSnapshot(tools, NO_CALLS);
  const answer = useCallback(async (id: string, result: unknown) => tools?.answer(id, result), [tools]);
  const runAgain = useCallback(async (id: string) => tools?.runAgain(id), [tools]);
  return useMemo(() => ({ calls, answer, runAgain }), [calls, answer, runAgain]);
}
