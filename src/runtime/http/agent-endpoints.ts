import { defined } from "../../platform/defined.js";
import { EventType, PROTOCOL_VERSION } from "@ag-ui/core";
import { abortWith } from "../../platform/abort.js";
import { loggable } from "../../platform/log.js";
import { LeftOut } from "../../run/input-shape.js";
import { LocalAgentRunner } from "../../runner/local-agent-runner.js";
import { eventMapper, isNewer, messageMapper } from "../../wire/protocol-versions.js";
import { holdsNothing } from "../../run/run-names.js";
import { idKey } from "../../run/id-key.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { RuntimeCore } from "../core.js";
import type { OnDisconnect } from "../options.js";
import { foreignEvents } from "../foreign-events.js";
import { GivenMessages } from "../given-messages.js";
import type { Admitted, Answer, ServedRun } from "../request.js";
import { answerOf } from "./answer-of.js";
import { parseRunInput, parseStopBody, type PostedRunInput } from "./body.js";
import { json } from "./responses.js";
import { decoded } from "./segments.js";
import type { OfAgent, OfThread } from "./routes.js";
import { parseCursor, sseResponse } from "./sse.js";
import { streamOfEvents, streamOfFrames, type GivenEvent, type OpenFrames, type ReaderStream } from "./streams.js";

/** Default of `maxBodyBytes`. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const KEEP_ALIVE_SECONDS = 15;
const READER_TIMEOUT_SECONDS = 60;

export const maxBodyOf = ({ options }: RuntimeCore): number => options.maxBodyBytes ?? MAX_BODY_BYTES;

/**
 * POST `/agent/:agentId/run`: starts a run and streams it. The run continues when the reader disconnects, unless the
 * request or the option `onDisconnect` says that it stops.
 */
export async function run(core: RuntimeCore, request: Admitted, { agentId }: OfAgent): Promise<Answer<Response>> {
  const input = await readInput(core, request, agentId);
  const branchBefore = branchBeforeOf(request);
  const stops = onDisconnectOf(core, request) === "stop";
  const { threadId, messages } = input;
  const { page } = request;
  const cut = page === undefined ? undefined : rememberedOf(core).given.cutOf(page, threadId, messages);
  const asked: RunRequest = {
    ...runRequestOf(agentId, input),
    ...defined({ cut, branchBefore }),
  };
  const served = await core.startRun(request, asked, { shownAs: messageMapper(input.protocolVersion) });
  if (page !== undefined && served.is === "local" && served.isRecorded) {
    rememberedOf(core).given.sent(page, threadId, messages);
  }
  return answerRun(core, request, input, served, stops);
}

/** Header that sets `onDisconnect` for one request. */
const ON_DISCONNECT = "ag-ui-on-disconnect";

/** @throws Response 400 */
function onDisconnectOf({ options }: RuntimeCore, request: Admitted): OnDisconnect {
  const asked = request.request().headers.get(ON_DISCONNECT) ?? options.onDisconnect ?? "continue";
  if (asked === "continue" || asked === "stop") return asked;
  throw json({ error: "Invalid request", details: `${ON_DISCONNECT}: is neither continue nor stop` }, 400);
}

/** Header with the percent-encoded id of the message before which the run branches. */
const BRANCH_BEFORE = "ag-ui-branch-before";

/** @throws Response 400 */
function branchBeforeOf(request: Admitted): string | undefined {
  const encoded = request.request().headers.get(BRANCH_BEFORE);
  const id = encoded === null ? undefined : decoded(encoded);
  if (encoded === null || id !== undefined) return id;
  throw json({ error: "Invalid request", details: `${BRANCH_BEFORE}: is not percent-encoded` }, 400);
}

/** POST `/agent/:agentId/suggest`: runs the agent without recording. */
export async function suggest(core: RuntimeCore, request: Admitted, { agentId }: OfAgent): Promise<Answer<Response>> {
  const input = await readInput(core, request, agentId);
  const served = await core.suggest(request, runRequestOf(agentId, input));
  return answerRun(core, request, input, served);
}

/**
 * POST `/agent/:agentId/connect`: a snapshot of the thread, then its live run. With the reader's last `id:`
 * (`Last-Event-ID`, or `lastSeenEventId` in the body) only the events after it.
 */
export async function connect(core: RuntimeCore, request: Admitted, { agentId }: OfAgent): Promise<Answer<Response>> {
  await core.agents.requireHere(agentId, request.request);
  const input = await parseInput(core, request);
  const { threadId, messages, lastSeenEventId } = input;
  const { headers, signal } = request.request();
  const runner = await core.home.open();
  const filter = core.filterFor(request, threadId);
  if (!(runner instanceof LocalAgentRunner)) {
    const asked = { threadId, agentId, headers: await core.headersFor(request, agentId) };
    const events$ = await foreignEvents(runner.connect(asked));
    const stream = streamOfEvents(events$, filter, signal);
    return answerStream(core, request, input, stream.source, { ended: stream.over.then(() => ({ threadId })) });
  }
  const after = parseCursor(headers.get("last-event-id")) ?? parseCursor(lastSeenEventId);
  const open: OpenFrames = (until) =>
    runner.attach(
      { threadId, follow: false, named: holdsNothing(messages), ...(after !== undefined && { after }) },
      until,
    );
  // An error becomes the response. A snapshot comes at once, but after a cursor the first event may take long.
  const begun = after === undefined ? await begin(open, signal) : undefined;
  if (after !== undefined) await runner.mayAttach(threadId);
  const stream = streamOfFrames(threadId, begun?.open ?? open, filter, signal, {
    given: notingFor(core, request, threadId),
  });
  if (begun !== undefined) void stream.over.then(begun.left);
  const all = () => runner.getThreadMessages(threadId);
  const ended = stream.over.then(() => ({ threadId, messages: all }));
  return answerStream(core, request, input, stream.source, { ended });
}

/** POST `/agent/:agentId/stop/:threadId`. */
export async function stop(
  core: RuntimeCore,
  request: Admitted,
  { agentId, threadId }: OfAgent & OfThread,
): Promise<Answer<Response>> {
  const named = await parseStopBody(request.request(), maxBodyOf(core));
  await core.agents.requireHere(agentId, request.request);
  const stopped = await core.stop({ threadId, ...named });
  const { runId } = named;
  const told = stopped
    ? { stopped: true, interrupt: { type: EventType.RUN_ERROR, message: "Run stopped by user", code: "STOPPED" } }
    : {
        stopped: false,
        message:
          runId === undefined
            ? `No active run for thread '${threadId}'.`
            : `Run '${runId}' is not the active run for thread '${threadId}'.`,
      };
  return answerOf(() => json(told), threadId);
}

async function readInput(core: RuntimeCore, request: Admitted, agentId: string): Promise<PostedRunInput> {
  // Before the body: an unknown agent is reported first.
  await core.agents.require(agentId, request.request);
  return parseInput(core, request);
}

async function parseInput(core: RuntimeCore, request: Admitted): Promise<PostedRunInput> {
  const leftOut = new LeftOut();
  const input = await parseRunInput(request.request(), maxBodyOf(core), leftOut.note);
  leftOut.tell(core.warnOnce);
  return input;
}

/**
 * Opens the frames and waits for the first one; rejects if there is none. `left` must be called when the frames are no
 * longer read, even if they never were.
 */
async function begin(
  open: OpenFrames,
  signal: AbortSignal,
): Promise<{ readonly open: OpenFrames; readonly left: () => void }> {
  const reading = abortWith(signal);
  const frames = open(reading.signal);
  const left = (): void => {
    reading.abort();
    void frames.return().catch(() => undefined);
  };
  try {
    const first = await frames.next();
    return {
      left,
      open: async function* () {
        if (first.done !== true) yield first.value;
        yield* frames;
      },
    };
  } catch (error) {
    left();
    throw error;
  }
}

/** The agent is told this runtime's protocol version, not its reader's. */
function runRequestOf(agentId: string, { lastSeenEventId: _lastSeen, ...input }: PostedRunInput): RunRequest {
  return { threadId: input.threadId, agentId, input: { ...input, protocolVersion: PROTOCOL_VERSION } };
}

/** Records which messages of the thread the requesting page has received. */
function notingFor(core: RuntimeCore, { page }: Admitted, threadId: string): GivenEvent | undefined {
  return page === undefined ? undefined : rememberedOf(core).given.noting(page, threadId);
}

/** What the endpoints remember of the requests to a runtime. */
interface Remembered {
  readonly given: GivenMessages;
  /** How many requests read each run: a repeated request reads the same run. */
  readonly readers: Map<string, number>;
}

const remembered = new WeakMap<RuntimeCore, Remembered>();

function rememberedOf(core: RuntimeCore): Remembered {
  const known = remembered.get(core) ?? { given: new GivenMessages(), readers: new Map<string, number>() };
  remembered.set(core, known);
  return known;
}

/** @returns a function to call when the reader is gone; it returns whether that was the last one */
function enter(core: RuntimeCore, threadId: string, runId: string): () => boolean {
  const { readers: counts } = rememberedOf(core);
  const key = idKey(threadId, runId);
  counts.set(key, (counts.get(key) ?? 0) + 1);
  return () => {
    const left = counts.get(key)! - 1;
    if (left > 0) counts.set(key, left);
    else counts.delete(key);
    return left === 0;
  };
}

/** @param stops the run is stopped if its last reader leaves before its end */
function answerRun(
  core: RuntimeCore,
  request: Admitted,
  input: PostedRunInput,
  served: ServedRun,
  stops = false,
): Answer<Response> {
  const { threadId, runId } = input;
  const { signal } = request.request();
  const filter = core.filterFor(request, threadId);
  const stream =
    served.is === "local"
      ? streamOfFrames(threadId, served.frames, filter, signal, {
          isRecorded: served.isRecorded,
          given: served.isRecorded ? notingFor(core, request, threadId) : undefined,
        })
      : streamOfEvents(served.events$, filter, signal);
  const leave = enter(core, threadId, runId);
  void stream.over.then((how) => {
    served.left();
    const isLast = leave();
    // The run's end shows whether it worked.
    if (stops && how === "left" && isLast) core.stop({ threadId, runId }).catch(() => undefined);
  });
  return answerStream(core, request, input, stream.source, served, served.is === "foreign");
}

/** @param isTold whether errors of the source are already logged */
function answerStream(
  core: RuntimeCore,
  { isRelayed, path }: Admitted,
  { protocolVersion }: PostedRunInput,
  source: ReaderStream["source"],
  { ended }: Required<Pick<Answer<Response>, "ended">>,
  isTold = false,
): Answer<Response> {
  const { sseKeepAliveIntervalSeconds: seconds = KEEP_ALIVE_SECONDS } = core.options;
  const { readerTimeoutSeconds = READER_TIMEOUT_SECONDS } = core.options;
  if (isNewer(protocolVersion)) {
    core.warnOnce(`A reader names a version of AG-UI other than ${PROTOCOL_VERSION} and older ones; it is served that`);
  }
  const value = sseResponse(source, {
    keepAliveMs: seconds * 1_000,
    // A relayed stream is bounded by a window, and a suspended page may resume.
    readerTimeoutMs: isRelayed === true ? 0 : readerTimeoutSeconds * 1_000,
    map: eventMapper(protocolVersion, core.lost),
    failed: (error, isEvent) => {
      if (isTold && !isEvent) return;
      core.logger.error("[ag-ui-local-runtime] A stream of events failed", { path }, loggable(error));
    },
  });
  const { status } = value;
  // The body belongs to the reader.
  return { value, response: () => new Response(null, { status, headers: new Headers(value.headers) }), ended };
}
