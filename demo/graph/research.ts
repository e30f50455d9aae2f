import { type Event, EventType, type RunAgentInput } from "@ag-ui/core";
import type { BaseCheckpointSaver } from "@langchain/langgraph/web";
import type { AgentContext } from "ag-ui-local-runtime/worker";
import { requestOf, type ThreadDocument } from "../documents/message.js";
import type { DocumentCache, LoadFile } from "../documents/prepare.js";
import { paced, Slices } from "../documents/slices.js";
import { asksForHelp } from "../reader/help.js";
import { researchGraph } from "./graph.js";
import { NODE_NAMES, type NodeName, TITLES } from "./nodes.js";

export interface ResearchTools {
  readonly saver: BaseCheckpointSaver;
  readonly load: LoadFile;
  /** What is searched where the thread has no document of its own. */
  readonly library: () => Promise<readonly ThreadDocument[]>;
  /** Ms between deltas of a few words. Default 60: a node takes a while, as one that asks a model does. */
  readonly pace?: number;
  readonly cache?: DocumentCache;
}

const shared: DocumentCache = new Map();

/** With these words a person asks for the rest of what was interrupted. */
const GO_ON = /^(?:please |bitte )?(?:go on|continue|resume|weiter|mach weiter)[\s!.]*$/i;

/**
 * The agent Researcher: answers from documents in five steps, a graph of LangGraph.js. What each node found is stored
 * before the next one begins. So a run that was interrupted, by a stop or by the end of its host, is gone on with by the
 * next one: asked to go on, or asked the same again (as the host does where it recovers a broken run), it begins at the node
 * that was under way.
 */
export async function* research(
  input: RunAgentInput,
  { signal, attempt }: Pick<AgentContext, "signal" | "attempt">,
  { saver, load, library, pace = 60, cache = shared }: ResearchTools,
): AsyncGenerator<Event> {
  const { threadId, runId } = input;
  const slices = new Slices(signal);
  try {
    const graph = researchGraph({ saver, runId, paced: (text) => paced(text, pace, slices), load, cache, slices });
    const config = { configurable: { thread_id: threadId } };
    const { documents, question } = await requestOf(input.messages);
    const { next, values } = await graph.getState(config);
    const asksToGoOn = GO_ON.test(question);
    const goesOn = next.length > 0 && (asksToGoOn || question === (values as { question?: unknown }).question);
    if (question === "" || asksForHelp(question) || (asksToGoOn && !goesOn)) {
      yield* message(`${runId}-help`, asksToGoOn ? NOTHING_LEFT : HELP);
      return;
    }
    if (goesOn && attempt !== undefined) yield* withoutCutOff(input, `${attempt.of}-${next[0]}`);
    else if (goesOn) yield* message(`${runId}-resumed`, resumed(next as NodeName[]));
    const begin = async () => ({
      question,
      documents: documents.length > 0 ? documents : await library(),
      terms: [],
      findings: [],
      done: [],
    });
    const chunks = await graph.stream(goesOn ? null : await begin(), {
      ...config,
      streamMode: "custom",
      // The next node begins when this one's end is stored.
      durability: "sync",
      signal,
    });
    // The nodes of the graph give nothing else.
    for await (const chunk of chunks) yield chunk as Event;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

const event = (one: Event): Event => one;

function* message(messageId: string, text: string): Generator<Event> {
  yield event({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" });
  yield event({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: text });
  yield event({ type: EventType.TEXT_MESSAGE_END, messageId });
}

/** The node that was under way begins anew: what it had said goes, so that the reader sees one answer. */
function* withoutCutOff({ messages }: RunAgentInput, messageId: string): Generator<Event> {
  const kept = messages.filter(({ id }) => id !== messageId);
  if (kept.length < messages.length) yield event({ type: EventType.MESSAGES_SNAPSHOT, messages: kept });
}

const HELP = `## Hello, I am Researcher

I search the documents of this conversation, or two sample texts about lighthouses, in five steps: plan, search, quotes, comparison and summary. Each step is saved before the next one begins, so I can continue after an interruption.

Ask me something, for example: “What did the keeper do with the lamp?”
`;
const NOTHING_LEFT = "There is nothing left to continue: your last question is answered. Ask me something new.\n";

/** @param next the nodes that are to be done now */
function resumed(next: readonly NodeName[]): string {
  const before = NODE_NAMES.slice(0, NODE_NAMES.indexOf(next[0]!));
  const titles = (names: readonly NodeName[]): string => names.map((name) => `**${TITLES[name]}**`).join(", ");
  const kept = before.length === 0 ? "No step was finished yet" : `Already done, and not repeated: ${titles(before)}`;
  return `I continue where I was interrupted. ${kept}. Now: ${titles(next)}.\n`;
}
