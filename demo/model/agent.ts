import type { AbstractAgent } from "@ag-ui/client";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { LocalAgentRunner } from "ag-ui-local-runtime";
import { aiAgent, aiTool, tabModel } from "ag-ui-local-runtime/ai";
import type { AgentRuntime } from "ag-ui-local-runtime/runtime";
import { getFile } from "../documents/files.js";
import { library } from "../documents/library.js";
import { clip } from "../documents/markdown.js";
import { requestOf } from "../documents/message.js";
import { type DocumentCache, indexedDocument, MissingDocumentError } from "../documents/prepare.js";
import { type Hit, queryTerms, searchIndex } from "../documents/search.js";
import { Slices } from "../documents/slices.js";
import { BROWSER, choiceIn } from "./choice.js";

const cache: DocumentCache = new Map();
const PER_SEARCH = 4;

const SYSTEM =
  "You are Model, an assistant in a page that runs in the user's browser. Use searchDocuments before you answer questions " +
  "about documents, quote what you found with its document and line, and say so where nothing was found. Use setTheme to " +
  "change the page's colours, and renameThread to name this conversation. Answer in a few short paragraphs of Markdown.";

const text = (description: string) => ({ type: "string", description }) as const;

/** Model as an agent of the runtime: any server of OpenAI's protocol, with tools of the worker and of the page. */
export function modelAgent(runtime: AgentRuntime): AbstractAgent {
  return aiAgent({
    agentId: "model",
    description: "A language model with tools: it searches documents, changes the page, and asks before it renames.",
    system: SYSTEM,
    maxSteps: 8,
    // Who looks on would rather know at once that nobody answers.
    settings: { maxRetries: 1 },
    model: ({ headers }) => {
      const { choice, key } = choiceIn(headers);
      if (choice.address === BROWSER) return tabModel(BROWSER);
      const provider = createOpenAICompatible({
        name: "server",
        baseURL: choice.address.replace(/\/+$/, ""),
        ...(key !== "" && { apiKey: key }),
        includeUsage: true,
      });
      return provider(choice.name);
    },
    tools: {
      searchDocuments: aiTool<{ query?: unknown }, object>({
        description:
          "Searches the documents of this conversation, or two sample texts about lighthouses if it has none",
        parameters: {
          type: "object",
          properties: { query: text("Words to search for") },
          required: ["query"],
        },
        repeatable: true,
        execute: async ({ query }, { input, signal }) => {
          const terms = queryTerms(String(query));
          const { documents } = await requestOf(input.messages);
          const slices = new Slices(signal);
          const found: (Hit & { document: string })[] = [];
          for (const document of documents.length > 0 ? documents : await library()) {
            // One that is gone leaves the others.
            const { index } = await indexedDocument(document, { load: getFile, cache, slices }).catch(
              (error: unknown) => {
                if (!(error instanceof MissingDocumentError)) throw error;
                return { index: undefined };
              },
            );
            for (const hit of index ? searchIndex(index, terms, PER_SEARCH) : [])
              found.push({ ...hit, document: document.name });
          }
          const best = found.toSorted((a, b) => b.score - a.score).slice(0, PER_SEARCH);
          return {
            passages: best.map(({ document, passage, line, excerpt }) => ({
              document,
              section: passage.section,
              line,
              text: excerpt,
            })),
          };
        },
      }),
      renameThread: aiTool<{ title?: unknown }, string>({
        description: "Gives this conversation another title. The user is asked first",
        parameters: { type: "object", properties: { title: text("The new title") }, required: ["title"] },
        needsApproval: true,
        repeatable: true,
        execute: async ({ title }, { input }) => {
          const runner = await runtime.runner();
          if (!(runner instanceof LocalAgentRunner)) throw new Error("This host keeps no threads");
          const named = clip(String(title).replace(/\s+/g, " ").trim(), 80);
          await runner.updateThread(input.threadId, { title: named });
          return `The thread is called “${named}” now.`;
        },
      }),
    },
  });
}
