import type { Event, RunAgentInput } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";
import { analyse, type Means } from "./analyse.js";
import { answer, MAX_SEARCHED } from "./answer.js";
import { type Readable, readForQuestion } from "./readable.js";
import { asksForHelp, asksForReport, HELP, NOTHING_YET } from "./help.js";
import { escapeInline } from "./markdown.js";
import { requestOf, type ThreadDocument } from "./message.js";
import { createCache, type DocumentCache, type LoadFile, MissingDocumentError } from "./prepare.js";
import { type Events, Session } from "./session.js";
import { createSlices } from "./slices.js";
import { isReaderState, setProgress, shapeState } from "./state.js";

export interface ReaderTools {
  readonly loadFile: LoadFile;
  /** Ms between deltas of a few words; 0 streams as fast as it can. Default 12. */
  readonly pace?: number;
  /** Documents as they were read; default one for all runs of this worker. */
  readonly cache?: DocumentCache;
}

const PACE_MS = 12;
const shared = createCache();

const noFiles: LoadFile = () => Promise.reject(new Error("This reader has no store of files."));

/**
 * The agent Reader: reads the documents of a thread and answers questions about them, without network and model.
 * Leaves RUN_STARTED and RUN_FINISHED to the runtime. Ends without an error when the signal aborts.
 */
export async function* reader(
  input: RunAgentInput,
  { signal }: { readonly signal: AbortSignal },
  { loadFile: load, pace = PACE_MS, cache = shared }: ReaderTools = { loadFile: noFiles },
): AsyncGenerator<Event> {
  const slices = createSlices(signal);
  const session = new Session(input.runId, slices, pace);
  try {
    if (!isReaderState(input.state)) {
      yield { type: EventType.STATE_SNAPSHOT, snapshot: shapeState(input.state) };
    }
    yield* respond(input, { session, slices, load, cache });
    yield session.patch(setProgress(null));
    yield* session.close();
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    slices.close();
  }
}

async function* respond(input: RunAgentInput, means: Means): Events {
  const { session } = means;
  const { documents, fresh, question } = await requestOf(input.messages);
  if (documents.length === 0 || (fresh.length === 0 && asksForHelp(question))) {
    yield* session.say(documents.length === 0 ? HELP + NOTHING_YET : HELP);
    return;
  }
  if (question === "" || asksForReport(question) || (fresh.length > 0 && asksForHelp(question))) {
    for (const document of fresh.length > 0 ? fresh : documents.slice(-1)) {
      yield* orMissing(document, means, analyse(document, means));
    }
    return;
  }
  // The answer first: who asks does not wait for the report on what was attached.
  const readable: Readable[] = [];
  for (const document of fresh.length > 0 ? fresh : documents.slice(-MAX_SEARCHED)) {
    const read = yield* orMissing(document, means, readForQuestion(document, means));
    if (read) readable.push({ document, read });
  }
  if (readable.length > 0) yield* answer(question, readable, means);
  for (const { document } of readable.filter((one) => fresh.includes(one.document))) {
    yield* session.endAnswer();
    yield* orMissing(document, means, analyse(document, means));
  }
}

/** A document whose text is gone is told, and the others go on. */
async function* orMissing<T>(document: ThreadDocument, { session }: Means, events: Events<T>): Events<T | undefined> {
  try {
    return yield* events;
  } catch (error) {
    if (!(error instanceof MissingDocumentError)) throw error;
    yield* session.endStep();
    yield* session.say(`I cannot read **${escapeInline(document.name)}**: ${escapeInline(error.message)}\n\n`);
    return undefined;
  }
}
