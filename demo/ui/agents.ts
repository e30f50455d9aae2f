/** An agent of the demo's host, as the page speaks of it. */
export interface AgentView {
  readonly id: string;
  readonly name: string;
  readonly does: string;
  /** Heads the empty thread. */
  readonly invites: string;
  readonly introduces: string;
  /** In the empty message box. */
  readonly placeholder: string;
  /** What sending the last message again comes to. */
  readonly again: { readonly label: string; readonly means: string };
  /** Questions to begin with. */
  readonly questions: readonly string[];
}

const READER: AgentView = {
  id: "reader",
  name: "Reader",
  does: "reads your documents and answers with quotes and figures",
  invites: "Give it something to read.",
  introduces:
    "Reader goes through texts and tables, outlines them and answers with quotes or figures. It is an AG-UI agent that runs inside your browser: no server, no key, and nothing you drop here leaves this computer.",
  placeholder: "Ask, or drop a document",
  again: { label: "Run again", means: "Sends your last message again, as a new run. What is above stays." },
  questions: [],
};

const RESEARCHER: AgentView = {
  id: "research",
  name: "Researcher",
  does: "goes through five steps, a graph of LangGraph.js, and resumes where it was interrupted",
  invites: "Ask it something.",
  introduces:
    "Researcher searches your documents, or two texts about lighthouses, in five steps. Each step is stored before the next begins: close every tab in the middle, come back, and it goes on with the step that was under way.",
  placeholder: "Ask about lighthouses, or drop a document",
  again: {
    label: "Go on",
    means: "Sends your last message again: the finished steps are kept, the interrupted one is done anew.",
  },
  questions: ["What did the keeper do with the lamp?", "How does a lens send light to the horizon?"],
};

export const AGENTS: readonly AgentView[] = [READER, RESEARCHER];

/** The agent with this id; Reader for none, and for one that this page does not know. */
export const agentView = (id: string | undefined): AgentView => AGENTS.find((agent) => agent.id === id) ?? READER;
