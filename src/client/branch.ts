import type { LocalAgent } from "./local-agent.js";

/**
 * Cuts what an agent shows, for a run on a branch.
 *
 * @param cut changes its messages
 * @returns shows again what was cut: the run was refused
 */
export function cutForBranch(agent: LocalAgent, cut: () => unknown): () => void {
  const { messages: before, pendingInterrupts } = agent;
  cut();
  const { messages } = agent;
  // A branch leaves the run that asked behind; the host knows whether it does.
  agent.pendingInterrupts = [];
  return () => {
    agent.pendingInterrupts = pendingInterrupts;
    if (agent.messages === messages) agent.show(before);
    // More has come meanwhile: the thread is read again, since what was cut is missing here.
    else agent.connectAgent().catch(() => undefined);
  };
}
