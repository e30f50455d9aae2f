import { Annotation } from "@langchain/langgraph/web";
import type { ThreadDocument } from "../documents/message.js";

/** What a document says to the question, with where it says so. */
export interface Finding {
  readonly document: string;
  readonly section: string;
  readonly line: number;
  readonly text: string;
  /** Words of the question that it holds. */
  readonly matched: readonly string[];
  /** How well it answers, beside others of its document. */
  readonly score: number;
}

/** What the graph knows so far. All of it is in each checkpoint: so a node needs nothing of the host it began in. */
export const ResearchState = Annotation.Root({
  question: Annotation<string>,
  documents: Annotation<readonly ThreadDocument[]>,
  /** The words that are searched for. */
  terms: Annotation<readonly string[]>,
  findings: Annotation<readonly Finding[]>,
  /** The nodes that have ended. */
  done: Annotation<readonly string[]>,
});

export type Research = typeof ResearchState.State;
export type Learned = typeof ResearchState.Update;
