import { IndexedDBSaver } from "ag-ui-local-runtime/langgraph";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { DB_NAME } from "../database.js";
import { getFile, putFile } from "../reader/files.js";
import { readTextFile } from "../reader/intake.js";
import type { ThreadDocument } from "../reader/message.js";
import { fetchSample, samples } from "../ui/samples.js";
import { research } from "./research.js";

const saver = new IndexedDBSaver({ dbName: DB_NAME });

/** The demo's own texts, kept as if somebody had attached them. */
async function library(): Promise<ThreadDocument[]> {
  const texts = samples.filter(({ name }) => /\.(md|txt)$/.test(name));
  return Promise.all(texts.map(async (sample) => putFile(await readTextFile(await fetchSample(sample)))));
}

/** Researcher as an agent of the runtime, with the files and the checkpoints of this browser. */
export const researchAgent = defineAgent(
  (input, context) => research(input, context, { saver, load: getFile, library }),
  {
    agentId: "research",
    description:
      "Searches documents in the browser in five steps, a graph of LangGraph.js: plan, gather, read, compare, report. Goes on where it was interrupted.",
    // From its checkpoint: the messages stay as they are.
    continues: true,
  },
);
