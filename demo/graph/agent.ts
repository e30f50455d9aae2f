import { IndexedDBSaver } from "ag-ui-local-runtime/langgraph";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { DB_NAME } from "../database.js";
import { getFile } from "../documents/files.js";
import { library } from "../documents/library.js";
import { research } from "./research.js";

const saver = new IndexedDBSaver({ dbName: DB_NAME });

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
