import type { Message } from "@ag-ui/client";
import { answersThreadEndpoints, type ThreadEndpointRunner, type ThreadRecord } from "../../run/contract.js";
import { RunnerError } from "../../run/errors.js";
import { equalJson } from "../../run/json.js";
import { byPlace, type ThreadPlace } from "../../run/thread-order.js";
import { LocalAgentRunner } from "../../runner/local-agent-runner.js";
import { threadRecordOf } from "../../wire/thread-record.js";
import type { RuntimeCore } from "../core.js";
import { filterEvents, filterMessages, filterState } from "../event-filter.js";
import { plainMessages } from "../plain-messages.js";
import type { Admitted, Answer } from "../request.js";
import { maxBodyOf } from "./agent-endpoints.js";
import { answerOf } from "./answer-of.js";
import { parseThreadUpdate, requireJson } from "./body.js";
import { json, noContent } from "./responses.js";
import type { OfThread } from "./routes.js";

const MAX_PAGE = 500;

/** GET `/threads?agentId&limit&cursor&includeArchived`: newest first. */
export async function list(core: RuntimeCore, request: Admitted): Promise<Answer<Response>> {
  const runner = await reader(core);
  const { searchParams } = new URL(request.request().url);
  const agentId = searchParams.get("agentId") || undefined;
  const isArchiveShown = searchParams.get("includeArchived") === "true";
  if (!(runner instanceof LocalAgentRunner)) {
    const isListed = (thread: ThreadRecord): boolean =>
      (agentId === undefined || thread.agentId === agentId) && (isArchiveShown || !thread.archived);
    const threads = (await runner.listThreads()).filter(isListed);
    return answerOf(() => json({ threads, nextCursor: null }));
  }
  const limit = Math.min(wholeNumber(searchParams.get("limit"), "limit") ?? 50, MAX_PAGE);
  const before = placeIn(searchParams.get("cursor"));
  const query = { limit, ...(before !== undefined && { before }), ...(agentId !== undefined && { agentId }) };
  const lists = isArchiveShown ? [false, true] : [false];
  const found = await Promise.all(lists.map((archived) => runner.listThreads({ ...query, archived })));
  const threads = found.flat().toSorted(byPlace).slice(0, limit);
  const last = threads.length === limit ? threads.at(-1) : undefined;
  const nextCursor = last === undefined ? null : `${last.updatedAt}.${last.threadId}`;
  return answerOf(() => json({ threads: threads.map(threadRecordOf), nextCursor }));
}

const LIST_CURSOR = /^(\d{1,15})\.(.+)$/su;

/** The last thread of a page of the list. @throws Response 400 */
function placeIn(cursor: string | null): ThreadPlace | undefined {
  if (cursor === null || cursor === "") return undefined;
  const [, updatedAt, threadId] = LIST_CURSOR.exec(cursor) ?? [];
  if (threadId === undefined) throw invalidQuery("cursor: must be the nextCursor of another page");
  return { updatedAt: Number(updatedAt), threadId };
}

/** GET `/threads/:threadId/messages`. */
export async function messages(
  core: RuntimeCore,
  request: Admitted,
  { threadId }: OfThread,
): Promise<Answer<Response>> {
  const found = await (await reader(core)).getThreadMessages(threadId);
  const shown = core.shown<readonly Message[]>(request, threadId, found, filterMessages);
  const plain = plainMessages(shown);
  return answerOf(() => json({ messages: plain }), threadId);
}

/** GET `/threads/:threadId/events`: compacted. */
export async function events(core: RuntimeCore, request: Admitted, { threadId }: OfThread): Promise<Answer<Response>> {
  const found = await (await reader(core)).getThreadEvents(threadId);
  const shown = core.shown(request, threadId, found, filterEvents);
  return answerOf(() => json({ events: shown }), threadId);
}

/** GET `/threads/:threadId/state`: null for an unknown thread and for one without state (over HTTP `{}` is none). */
export async function state(core: RuntimeCore, request: Admitted, { threadId }: OfThread): Promise<Answer<Response>> {
  const shown = core.shown(request, threadId, await (await reader(core)).getThreadState(threadId), filterState);
  return answerOf(() => json({ state: equalJson(shown, {}) ? null : (shown ?? null) }), threadId);
}

/** PATCH and DELETE `/threads/:threadId`. */
export async function update(core: RuntimeCore, request: Admitted, { threadId }: OfThread): Promise<Answer<Response>> {
  const runner = await keeper(core);
  if (request.request().method === "DELETE") {
    if (!(await runner.deleteThread(threadId))) throw new RunnerError("unknown-thread", { threadId });
    return answerOf(() => json({ threadId, deleted: true }), threadId);
  }
  const changes = await parseThreadUpdate(request.request(), maxBodyOf(core));
  const record = threadRecordOf(await runner.updateThread(threadId, changes));
  return answerOf(() => json(record), threadId);
}

/** POST `/threads/:threadId/archive`. */
export async function archive(core: RuntimeCore, request: Admitted, { threadId }: OfThread): Promise<Answer<Response>> {
  requireJson(request.request());
  await (await keeper(core)).updateThread(threadId, { archived: true });
  return answerOf(() => json({ threadId, archived: true }), threadId);
}

/** POST `/threads/clear`. */
export async function clear(core: RuntimeCore, request: Admitted): Promise<Answer<Response>> {
  requireJson(request.request());
  await (await reader(core)).clearThreads();
  return answerOf(noContent);
}

/** @throws Response 422 if the runner has no thread reads */
async function reader(core: RuntimeCore): Promise<LocalAgentRunner | ThreadEndpointRunner> {
  const runner = await core.home.open();
  if (runner instanceof LocalAgentRunner || answersThreadEndpoints(runner)) return runner;
  throw json({ error: "The runtime's runner keeps no list of threads" }, 422);
}

/** @throws Response 422 if the runner cannot change threads */
async function keeper(core: RuntimeCore): Promise<LocalAgentRunner> {
  const runner = await core.home.open();
  if (runner instanceof LocalAgentRunner) return runner;
  throw json({ error: "The runtime's runner cannot change its threads" }, 422);
}

/** @throws Response 400 */
function wholeNumber(text: string | null, field: string): number | undefined {
  if (text === null || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw invalidQuery(`${field}: must be a whole number`);
}

const invalidQuery = (details: string): Response => json({ error: "Invalid query", details }, 400);
