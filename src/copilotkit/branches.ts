import type { Message, UserMessage } from "@ag-ui/core";
import { cutForBranch } from "../client/branch.js";
import { isLive, isRefused } from "./live-agent.js";

/** Of CopilotKit's core (`useCopilotKit().copilotkit`): what starts a run with the page's tools and context. */
export interface RunsAgents<A> {
  /** Runs an agent of the page. */
  runAgent(parameters: { agent: A }): Promise<unknown>;
}

/** Of the chat's agent (`useAgent().agent`). */
export interface HasMessages {
  readonly messages: readonly { readonly id: string; readonly role: string }[];
  readonly isRunning: boolean;
  /** Replaces the messages that the agent shows. */
  setMessages(messages: never[]): void;
}

/** What a user message may say. */
export type MessageContent = UserMessage["content"];

/**
 * Answers the question before a message anew, on a branch: the message and what comes behind it leave the thread. A no-op
 * while the agent runs, and where no question of the user stands before the message.
 *
 * @param messageId default the last message: for a run that failed or was stopped
 * Errors: as `runAgent` of CopilotKit's core, which reports most of them by `onError` instead
 */
export async function regenerate<A extends HasMessages>(
  copilotkit: RunsAgents<A>,
  agent: A,
  messageId = agent.messages.at(-1)?.id,
): Promise<void> {
  const end = agent.messages.findIndex(({ id }) => id === messageId);
  const question = agent.messages.slice(0, end + 1).findLastIndex(({ role }) => role === "user");
  if (question < 0 || agent.isRunning) return;
  await branch(copilotkit, agent, agent.messages.slice(0, question + 1));
}

/**
 * Asks another question in the place of a message of the user, on a branch: what comes behind it leaves the thread. A
 * no-op while the agent runs, and where the agent has no such message.
 *
 * Errors: as of {@link regenerate}
 */
export async function editMessage<A extends HasMessages>(
  copilotkit: RunsAgents<A>,
  agent: A,
  messageId: string,
  content: MessageContent,
): Promise<void> {
  const at = agent.messages.findIndex(({ id, role }) => id === messageId && role === "user");
  const message = agent.messages[at];
  if (message === undefined || agent.isRunning) return;
  await branch(copilotkit, agent, [...agent.messages.slice(0, at), { ...message, content } as Message]);
}

async function branch<A extends HasMessages>(
  copilotkit: RunsAgents<A>,
  agent: A,
  messages: HasMessages["messages"],
): Promise<void> {
  // They are the agent's own, in the type of its copy of the client, which this entry does not know.
  const show = (shown: HasMessages["messages"]): void => agent.setMessages(shown as never[]);
  if (!isLive(agent)) {
    show(messages);
    return void (await copilotkit.runAgent({ agent }));
  }
  const { threadId } = agent;
  const undo = cutForBranch(agent, () => show(messages));
  try {
    await copilotkit.runAgent({ agent });
  } finally {
    // The core reports it. What is cut here is not to leave the thread with the next message.
    if (isRefused(agent) && agent.threadId === threadId) undo();
  }
}
