import type { LocalAgent } from "../client/index.js";
import { callsIn } from "../client/tools/frontend-tools.js";
import { runsItself } from "./live-agent.js";
import { isQuestion, type RunsTools } from "./shared-tools.js";

/** Calls of `useHumanInTheLoop` that nobody has answered. */
function hasQuestion(copilotkit: RunsTools<LocalAgent>, { messages, agentId }: LocalAgent): boolean {
  const answered = new Set(messages.map((message) => (message.role === "tool" ? message.toolCallId : undefined)));
  return callsIn(messages)
    .filter(({ id }) => !answered.has(id))
    .map(({ function: { name } }) => copilotkit.getTool({ toolName: name, ...(agentId !== undefined && { agentId }) }))
    .some(isQuestion);
}

/**
 * Has CopilotKit ask what an agent asks by `useHumanInTheLoop` in a run of another tab. By itself it asks in the tab that
 * started the run, and in one that opens the thread later.
 *
 * @returns ends it
 */
export function shareQuestions(copilotkit: RunsTools<LocalAgent>, agent: LocalAgent): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = (): void => {
    if (agent.isRunning || runsItself(agent) || !hasQuestion(copilotkit, agent)) return;
    // CopilotKit looks for open questions behind each connect.
    void copilotkit.connectAgent({ agent });
  };
  const subscription = agent.subscribe({
    onRunFinalized: () => {
      clearTimeout(timer);
      // Behind the end of the run, which is told before it.
      timer = setTimeout(look);
    },
  });
  return () => {
    clearTimeout(timer);
    subscription.unsubscribe();
  };
}
