/** Something to begin with: one click sends it. */
export interface Starter {
  readonly label: string;
  /** The name of a file of demo/samples that is attached. */
  readonly sample?: string;
  readonly question?: string;
}

/** An agent of the demo's host, as the page speaks of it. */
export interface AgentView {
  readonly id: string;
  readonly name: string;
  readonly does: string;
  /** Heads its starters in an empty thread. */
  readonly invites: string;
  readonly starters: readonly Starter[];
  /** In the empty message box. */
  readonly placeholder: string;
  /**
   * What to do about a run that was interrupted: `retry` answers the last question anew, in place of what had come;
   * `continue` asks the agent to go on where it was.
   */
  readonly again: "retry" | "continue";
}

const READER: AgentView = {
  id: "reader",
  name: "Reader",
  does: "Outlines texts, measures tables, answers with quotes",
  invites: "Give it something to read",
  starters: [
    { label: "Outline a guide to lighthouses", sample: "guide-to-lighthouses.md" },
    { label: "Describe a table of 500 harbour calls", sample: "harbour-calls.csv" },
    {
      label: "Ask a short story about its notebooks",
      sample: "the-last-relief.txt",
      question: "What is in the notebooks?",
    },
  ],
  placeholder: "Ask something, or drop a document",
  again: "retry",
};

const RESEARCHER: AgentView = {
  id: "research",
  name: "Researcher",
  does: "A LangGraph.js graph that goes on where it was cut off",
  invites: "Ask it something",
  starters: [
    { label: "What did the keeper do with the lamp?", question: "What did the keeper do with the lamp?" },
    { label: "How does a lens send light to the horizon?", question: "How does a lens send light to the horizon?" },
  ],
  placeholder: "Ask about lighthouses, or drop a document",
  again: "continue",
};

const MODEL: AgentView = {
  id: "model",
  name: "Model",
  does: "A language model with tools. A scripted one is ready",
  invites: "Watch it use a tool",
  starters: [
    { label: "What did the keeper do with the lamp?", question: "What did the keeper do with the lamp?" },
    { label: "Make this page dark", question: "Make this page dark" },
    { label: "Give this thread a better name", question: "Give this thread a better name" },
  ],
  placeholder: "Ask the model, or drop a document",
  again: "retry",
};

export const AGENTS: readonly AgentView[] = [READER, RESEARCHER, MODEL];

/** The model's agent has a second id, where it needs the network. */
export const isModel = (id: string | undefined): boolean => id === "model" || id === "model-remote";

/** The agent with this id; Reader for none, and for one that this page does not know. */
export const agentView = (id: string | undefined): AgentView =>
  AGENTS.find((agent) => agent.id === (isModel(id) ? MODEL.id : id)) ?? READER;
