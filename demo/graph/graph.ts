import { type Event, EventType } from "@ag-ui/core";
import {
  type BaseCheckpointSaver,
  END,
  type LangGraphRunnableConfig,
  START,
  StateGraph,
} from "@langchain/langgraph/web";
import type { LibraryMeans } from "./library.js";
import { NODES, type NodeName, type Say, TITLES } from "./nodes.js";
import { type Learned, type Research, ResearchState } from "./state.js";

export interface GraphMeans extends LibraryMeans {
  readonly saver: BaseCheckpointSaver;
  readonly runId: string;
  /** Gives a text in pieces, each when it is due. */
  readonly paced: (text: string) => AsyncIterable<string>;
}

const event = (one: Event): Event => one;

/**
 * Plan, gather, read, compare, report. Each node says what it does as a message of its own, by LangGraph's custom stream,
 * whose chunks are AG-UI events.
 */
export function researchGraph(means: GraphMeans) {
  const node =
    (name: NodeName) =>
    async (state: Research, { writer }: LangGraphRunnableConfig): Promise<Learned> => {
      const tell = (one: Event): void => writer?.(event(one));
      const messageId = `${means.runId}-${name}`;
      tell({ type: EventType.STEP_STARTED, stepName: TITLES[name] });
      tell({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" });
      const say: Say = async (markdown) => {
        for await (const delta of means.paced(markdown))
          tell({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta });
      };
      await say(`## ${TITLES[name]}\n\n`);
      const learned = await NODES[name](state, say, means);
      tell({ type: EventType.TEXT_MESSAGE_END, messageId });
      tell({ type: EventType.STEP_FINISHED, stepName: TITLES[name] });
      return { ...learned, done: [...state.done, name] };
    };
  return new StateGraph(ResearchState)
    .addNode("plan", node("plan"))
    .addNode("gather", node("gather"))
    .addNode("read", node("read"))
    .addNode("compare", node("compare"))
    .addNode("report", node("report"))
    .addEdge(START, "plan")
    .addEdge("plan", "gather")
    .addEdge("gather", "read")
    .addEdge("read", "compare")
    .addEdge("compare", "report")
    .addEdge("report", END)
    .compile({ checkpointer: means.saver });
}
