import { useEffect } from "react";
import { runsItself } from "./live-agent.js";

/** Of CopilotKit's core (`useCopilotKit().copilotkit`): what shows the questions of a thread. */
export interface AsksUser<A> {
  /** Reads the agent's thread. */
  connectAgent(parameters: { agent: A }): Promise<unknown>;
  /** The tool of this name that the page offers, if any. */
  getTool(parameters: { toolName: string; agentId?: string }): { readonly type?: unknown } | undefined;
}

/** Of the chat's agent (`useAgent().agent`). */
export interface QuestionAgent {
  agentId?: string;
  readonly messages: readonly { readonly id: string; readonly role: string }[];
  readonly isRunning: boolean;
  /** Tells of the agent's runs until `unsubscribe` is called. */
  subscribe(subscriber: { onRunFinalized?: () => void }): {
    /** Ends it. */
    readonly unsubscribe: () => void;
  };
}

interface Call {
  readonly id: string;
  readonly function: { readonly name: string };
}

/** Calls of `useHumanInTheLoop` that nobody has answered. */
function hasQuestion<A extends QuestionAgent>(copilotkit: AsksUser<A>, { messages, agentId }: A): boolean {
  // Each role has the fields that AG-UI gives it.
  const all = messages as readonly { readonly toolCalls?: readonly Call[]; readonly toolCallId?: string }[];
  const answered = new Set(all.map(({ toolCallId }) => toolCallId));
  return all
    .flatMap(({ toolCalls = [] }) => toolCalls)
    .filter(({ id }) => !answered.has(id))
    .map(({ function: { name } }) => copilotkit.getTool({ toolName: name, ...(agentId !== undefined && { agentId }) }))
    .some((tool) => tool?.type === "human-in-the-loop");
}

/**
 * What an agent asks by `useHumanInTheLoop` in a run of another tab can be answered here too. CopilotKit itself asks in
 * the tab that started the run, and in one that opens the thread later.
 */
export function useSharedQuestions<A extends QuestionAgent>(copilotkit: AsksUser<A>, agent: A): void {
  useEffect(() => {
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
  }, [copilotkit, agent]);
}
