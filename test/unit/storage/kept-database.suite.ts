import { EventType } from "@ag-ui/client";
import { openDB } from "idb";
import { expect, onTestFinished, test, vi } from "vitest";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import expected2 from "./fixtures/database-v2.expected.json?raw";
import kept2 from "./fixtures/database-v2.dump?raw";
import expected3 from "./fixtures/database-v3.expected.json?raw";
import kept3 from "./fixtures/database-v3.dump?raw";
import { restore, type Dump } from "./raw.js";
import { createVersion2, createVersion3 } from "./released-layouts.js";

/** What a person finds in a database: each thread, with what became of its runs. */
export async function everythingIn(dbName: string): Promise<Record<string, unknown>> {
  let ids = 0;
  const runner = new IndexedDBAgentRunner({ dbName, stopGraceMs: 50, makeId: () => `reader-${++ids}` });
  onTestFinished(() => runner.close());
  // Runs of hosts that are gone are settled first.
  const list = () => runner.listThreads({ limit: 500 });
  await vi.waitFor(async () => expect((await list()).filter(({ live }) => live !== undefined)).toEqual([]));
  const found: Record<string, unknown> = {};
  for (const { threadId, title, runCount, lastStatus } of await list()) {
    const runs = [];
    for (const { runId, status, prevRunIndex } of await runner.listRuns(threadId)) {
      const events = (await runner.getRunEvents(runId)).map(({ event }) => event);
      const customs = events.filter(({ type }) => type === EventType.CUSTOM || type === EventType.RAW);
      runs.push({ runId, status, prevRunIndex, events: events.map(({ type }) => type).join(" "), customs });
    }
    const messages = await runner.getThreadMessages(threadId);
    found[threadId] = { title, runCount, lastStatus, messages, state: await runner.getThreadState(threadId), runs };
  }
  // What cannot be told in JSON is not told.
  return JSON.parse(JSON.stringify(found)) as Record<string, unknown>;
}

/** A dump as text: one store in each line, in JSON. */
export const textOf = (dump: Dump): string =>
  Object.entries(dump)
    .map((store) => JSON.stringify(store))
    .join("\n");

const dumpIn = (text: string): Dump =>
  // What was written by the function above.
  Object.fromEntries(
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as [string, Dump[string]]),
  );

const KEPT = [
  { version: 2, create: createVersion2, kept: kept2, expected: expected2 },
  { version: 3, create: createVersion3, kept: kept3, expected: expected3 },
];

/** A database of a version, else of the last one, with these records. */
export async function restored(dump: Dump, { version, create } = KEPT.at(-1)!): Promise<string> {
  const dbName = `kept-${crypto.randomUUID()}`;
  const db = await openDB(dbName, version, { upgrade: (empty, _old, _new, tx) => create(empty, tx) });
  await restore(db, dump);
  db.close();
  onTestFinished(() => void indexedDB.deleteDatabase(dbName));
  return dbName;
}

/** A database that people have: it was written by the released code of its version, and is read by this one. */
export function testKeptDatabase(where: string): void {
  test.each(KEPT)(
    `all that stands in a database of version $version is there after any upgrade, ${where} (L1, L10)`,
    async (of) => {
      expect(await everythingIn(await restored(dumpIn(of.kept), of))).toEqual(JSON.parse(of.expected));
    },
  );
}
