import { defineAgent } from "ag-ui-local-runtime/worker";
import { getFile } from "../documents/files.js";
import { reader } from "./reader.js";

/** Reader as an agent of the runtime, with the files of this browser. */
export const readerAgent = defineAgent((input, context) => reader(input, context, { load: getFile }), {
  agentId: "reader",
  description: "Reads text, Markdown and tables in the browser: outline, key terms, statistics, answers with quotes.",
});
