import { AbstractAgent, type BaseEvent, type Message, verifyEvents } from "@ag-ui/client";
import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { type Observable, lastValueFrom } from "rxjs";
import { isRecord } from "../../../src/run/json.js";
import type { LoggedRun, Shown } from "../soak/check.js";
import { contentOf } from "./soak-report.js";

/** Whole messages: their ids and their order are the same everywhere too. The order of their fields is nobody's. */
export const shownAs = (messages: readonly Message[]): string[] =>
  messages.map((message) => JSON.stringify(message, (_, value: unknown) => (isRecord(value) ? sorted(value) : value)));

const sorted = (record: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record).toSorted(([one], [other]) => (one < other ? -1 : 1)));

/** Threads as they stand in the log. */
export interface ReadLog {
  readonly runs: LoggedRun[];
  /** All messages of the threads. */
  readonly shown: Shown[];
}

/** Reads the log past any host, by a runner of this page. */
async function withRunner<T>(dbName: string, read: (runner: IndexedDBAgentRunner) => Promise<T>): Promise<T> {
  const runner = new IndexedDBAgentRunner({ dbName });
  try {
    return await read(runner);
  } finally {
    await runner.close();
  }
}

/** @param after only the runs of a thread behind this index */
export const readLog = (
  dbName: string,
  threadIds: readonly string[],
  after: Readonly<Record<string, number>>,
): Promise<ReadLog> =>
  withRunner(dbName, async (runner) => {
    const read: ReadLog = { runs: [], shown: [] };
    for (const threadId of threadIds) {
      const messages = await runner.getThreadMessages(threadId);
      read.shown.push({ load: "the log", threadId, messages: shownAs(messages) });
      read.runs.push(...(await runsOf(runner, threadId, after[threadId] ?? -1)));
    }
    return read;
  });

/** Why the client's verifier refuses what a reader of the whole history is handed, thread by thread. */
export const refusals = (dbName: string, threadIds: readonly string[]): Promise<string[]> =>
  withRunner(dbName, async (runner) => {
    const refused: string[] = [];
    for (const threadId of threadIds) {
      const reading = lastValueFrom(runner.connect({ threadId }).pipe(verifyEvents()), { defaultValue: undefined });
      await reading.catch((error: unknown) => refused.push(`${threadId}: ${String(error)}`));
    }
    return refused;
  });

/** What the client's own agent rebuilds from the whole history. */
export const replayed = (dbName: string, threadIds: readonly string[]): Promise<Shown[]> =>
  withRunner(dbName, async (runner) => {
    const shown: Shown[] = [];
    for (const threadId of threadIds) {
      const reader = new Reader(runner.connect({ threadId }), threadId);
      await reader.connectAgent();
      shown.push({ load: "a replay", threadId, messages: shownAs(reader.messages) });
    }
    return shown;
  });

class Reader extends AbstractAgent {
  constructor(
    private readonly history$: Observable<BaseEvent>,
    threadId: string,
  ) {
    super({ threadId });
  }

  run(): Observable<BaseEvent> {
    return this.history$;
  }

  protected override connect(): Observable<BaseEvent> {
    return this.history$;
  }
}

async function runsOf(runner: IndexedDBAgentRunner, threadId: string, after: number): Promise<LoggedRun[]> {
  const found: LoggedRun[] = [];
  for (let before: number | undefined; ; before = found.at(-1)!.runIndex) {
    const rows = await runner.listRuns(threadId, { limit: 100, ...(before !== undefined && { before }) });
    for (const { runId, runIndex, status, recovery } of rows) {
      if (runIndex <= after) return found;
      const events = await runner.getRunEvents(runId, { threadId });
      const started = events[0]?.event as (BaseEvent & { input?: { messages?: Message[] } }) | undefined;
      const order = started?.input?.messages?.findLast(({ role }) => role === "user");
      const { n = 0 } = order === undefined ? {} : (JSON.parse(contentOf(order)) as { n?: number });
      const placed = events.map(({ seq, event }) => ({ seq, event }));
      const left = recovery && { recovery: `${recovery.is} ${recovery.why}` };
      found.push({ threadId, runId, runIndex, status, ...left, ordered: n, events: placed });
    }
    if (rows.length < 100) return found;
  }
}
