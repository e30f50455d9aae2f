import type { BaseEvent, Message, State } from "@ag-ui/client";
import { defined } from "../../platform/defined.js";
import { RunnerError } from "../../run/errors.js";
import { checkNames, oneOf, TEXT, TEXTS, type Names } from "../../run/options.js";
import type { ThreadContent } from "../../run/fold.js";
import { isListening } from "../../run/life.js";
import { loaded } from "../../run/loaded.js";
import { pageOf, type MessagePart } from "../../run/message-page.js";
import { quoted } from "../../run/printable.js";
import { unpackChunk, type PlacedEvent } from "../../run/pack.js";
import type { RunStatus } from "../../run/types.js";
import type { RunQuery, RunRow, ThreadHead } from "../../storage/run-store.js";
import type { MessagePage, MessagePageQuery, RunListQuery, RunSummary } from "../../wire/shapes.js";
import { cloneJson } from "../../run/json.js";
import { ownEvent } from "../agent/accept.js";
import { checkId, checkNumber } from "../checks.js";
import type { History } from "../history/history.js";
import { unlessUnreadable } from "../history/run-log.js";
import type { LiveRun } from "../live/live-run.js";
import type { RunnerParts } from "../parts.js";
import { steadily } from "../../storage/steadily.js";

const STATUS = oneOf<RunStatus>("running", "finished", "errored", "stopped", "superseded", "broken");
const RUN_QUERY: Names<RunListQuery> = { status: STATUS, limit: true, before: true };
const PAGE: Names<Omit<MessagePageQuery, "threadId">> = { before: TEXT, limit: true };
const DEFAULT_RUNS = 50;
const MAX_RUNS = 500;
const DEFAULT_MESSAGES = 50;
const MAX_MESSAGES = 500;
const DEFAULT_EVENTS = 1_000;
const MAX_EVENTS = 100_000;

/** Names a run; `threadId` has to be given where several threads have a run of this id. */
export interface RunName {
  readonly threadId?: string;
}

export interface RunEventsQuery extends RunName {
  /** Only events of these types. Default: all. */
  readonly types?: readonly string[];
  /** Only events with a greater seq. Default: from the first. */
  readonly after?: number;
  /** At most this many. Default 1,000, at most 100,000. */
  readonly limit?: number;
}

const RUN_NAME: Names<RunName> = { threadId: true };
const EVENTS_QUERY: Names<RunEventsQuery> = { ...RUN_NAME, types: TEXTS, after: true, limit: true };

/** What the log says about threads and their runs. All answers are copies. */
export class ThreadReads {
  constructor(
    private readonly parts: Pick<RunnerParts, "store">,
    private readonly history: History,
    private readonly liveRun: (threadId: string) => LiveRun | undefined,
  ) {}

  async listRuns(threadId: string, query: RunListQuery): Promise<readonly RunSummary[]> {
    checkId("threadId", threadId);
    checkNames(query, RUN_QUERY, { of: "listRuns" });
    const limit = checkNumber("limit", query.limit, DEFAULT_RUNS, MAX_RUNS);
    const before = query.before === undefined ? undefined : checkNumber("before", query.before, 0);
    const { status } = query;
    if (limit === 0) return [];
    const wanted = { threadId, limit, ...defined({ status, before }) };
    const rows = await this.parts.store.runsBefore(wanted).catch(unlessUnreadable);
    return (rows ?? (await this.readableRuns(wanted))).map(toRunSummary);
  }

  /** Fallback if some runs cannot be read: the others, one by one. */
  private async readableRuns({ threadId, status, before = Infinity, limit }: RunQuery): Promise<RunRow[]> {
    const { store } = this.parts;
    const rows: RunRow[] = [];
    const head = await store.head(threadId);
    for (let at = Math.min(before, head?.runCount ?? 0) - 1; at >= (head?.first ?? 0) && rows.length < limit; at--) {
      const row = await store.run(threadId, at).catch(unlessUnreadable);
      if (row !== undefined && (status === undefined || row.status === status)) rows.push(row);
    }
    return rows;
  }

  async agentIds(threadId: string): Promise<readonly string[] | undefined> {
    checkId("threadId", threadId);
    const { store } = this.parts;
    return steadily(store, threadId, async () => {
      const found = new Set<string>();
      if ((await store.head(threadId))?.cut === true) return undefined;
      let before: number | undefined;
      for (;;) {
        const page = { threadId, limit: MAX_RUNS, ...(before !== undefined && { before }) };
        const rows = await store.runsBefore(page).catch(unlessUnreadable);
        // The agent of an unreadable run is unknown.
        if (rows === undefined) return undefined;
        for (const { agentId } of rows) {
          if (agentId === undefined) return undefined;
          found.add(agentId);
        }
        if (rows.length < MAX_RUNS) return [...found];
        before = rows.at(-1)!.runIndex;
      }
    });
  }

  async getRun(runId: string, name: RunName): Promise<RunSummary | undefined> {
    checkNames(name, RUN_NAME, { of: "getRun" });
    const row = await this.rowOf(runId, name);
    return row && toRunSummary(row);
  }

  async getRunEvents(runId: string, query: RunEventsQuery): Promise<readonly PlacedEvent[]> {
    checkNames(query, EVENTS_QUERY, { of: "getRunEvents" });
    const limit = checkNumber("limit", query.limit, DEFAULT_EVENTS, MAX_EVENTS);
    const after = checkNumber("after", query.after, -1);
    const types = query.types && new Set(query.types);
    const named = await this.rowOf(runId, query);
    if (named === undefined || limit === 0) return [];
    return steadily(this.parts.store, named.threadId, async () => {
      const found: PlacedEvent[] = [];
      for await (const chunk of this.history.log.chunksOf(named, after)) {
        for (const placed of unpackChunk(chunk)) {
          if (types !== undefined && !types.has(placed.event.type)) continue;
          found.push({ ...placed, event: ownEvent(placed.event) });
          if (found.length === limit) return found;
        }
      }
      return found;
    });
  }

  async getThreadMessages(threadId: string): Promise<Message[]> {
    return (await this.contentOf(threadId))?.messages.map(cloneJson) ?? [];
  }

  async getMessagePage(threadId: string, place: Omit<MessagePageQuery, "threadId">): Promise<MessagePage> {
    checkId("threadId", threadId);
    checkNames(place, PAGE, { of: "getMessagePage" });
    const { before } = place;
    const limit = checkNumber("limit", place.limit, DEFAULT_MESSAGES, MAX_MESSAGES);
    for (;;) {
      // Copied before the next await: a live run goes on.
      const page = await steadily(this.parts.store, threadId, async (head) =>
        structuredClone(await this.pageNow(threadId, head, before, limit)),
      );
      if (page === "again") continue;
      if (page !== undefined) return page;
      throw new RunnerError(
        "invalid-input",
        { field: "before", threadId },
        {
          message: `before must be the id of a message of the thread, and ${quoted(before)} is none: read its last messages again`,
        },
      );
    }
  }

  async getThreadState(threadId: string): Promise<State | undefined> {
    return structuredClone((await this.contentOf(threadId))?.state);
  }

  async getThreadEvents(threadId: string): Promise<BaseEvent[]> {
    checkId("threadId", threadId);
    const { compactLog } = await loaded(import("../../run/compact.js"));
    return steadily(this.parts.store, threadId, async (head) => {
      if (head === undefined || head.deleted === true) return [];
      return compactLog(await this.history.pathEvents(head, head.activeRunIndex)).map(ownEvent);
    });
  }

  private async rowOf(runId: string, { threadId }: RunName): Promise<RunRow | undefined> {
    checkId("runId", runId);
    if (threadId !== undefined) {
      checkId("threadId", threadId);
      return this.parts.store.runById(threadId, runId);
    }
    const [row, other] = await this.parts.store.runsOfId(runId, 2);
    if (other !== undefined) {
      throw new RunnerError(
        "invalid-input",
        { field: "threadId", runId },
        { message: `Several threads have a run ${quoted(runId)}: threadId must name one` },
      );
    }
    return row;
  }

  /** The thread with its live run so far; not a copy. */
  private async contentOf(threadId: string): Promise<ThreadContent | undefined> {
    checkId("threadId", threadId);
    for (;;) {
      const content = await steadily(this.parts.store, threadId, (head) => this.contentNow(threadId, head));
      if (content !== "again") return content;
    }
  }

  /** @returns `again` where the run that is read has just ended */
  private async contentNow(
    threadId: string,
    head: ThreadHead | undefined,
  ): Promise<ThreadContent | undefined | "again"> {
    if (head === undefined || head.deleted === true) return undefined;
    if (head.live === undefined) return this.history.base(head);
    const live = await this.liveContent(threadId, head, head.live.runIndex);
    return live === "nothing" ? this.history.baseBefore(head, head.live.runIndex) : live;
  }

  /** @returns undefined where there is no message of the id `before`; not a copy */
  private async pageNow(
    threadId: string,
    head: ThreadHead | undefined,
    before: string | undefined,
    limit: number,
  ): Promise<MessagePart | undefined | "again"> {
    if (head === undefined || head.deleted === true) return pageOf([], before, limit);
    if (head.live === undefined) return this.history.page(head, head.activeRunIndex, before, limit);
    const live = await this.liveContent(threadId, head, head.live.runIndex);
    if (live === "again") return live;
    if (live !== "nothing") return pageOf(live.messages, before, limit);
    const { prevRunIndex } = await this.history.log.run(head, head.live.runIndex);
    return this.history.page(head, prevRunIndex ?? -1, before, limit);
  }

  /** @returns `nothing` where the run has committed nothing yet; `again` where it has just ended */
  private async liveContent(
    threadId: string,
    head: ThreadHead,
    runIndex: number,
  ): Promise<ThreadContent | "nothing" | "again"> {
    const local = this.liveRun(threadId);
    if (local?.inLog?.runIndex !== runIndex) return (await this.history.viewOf(head, runIndex)).content;
    if (local.view !== undefined) return local.view.content;
    if (isListening(local.is)) return "nothing";
    await local.ended;
    return "again";
  }
}

const toRunSummary = ({
  epoch: _epoch,
  fingerprint: _fingerprint,
  answerId: _answerId,
  closedFrom: _closedFrom,
  leaves: _leaves,
  revised: _revised,
  ...row
}: RunRow): RunSummary => row;
