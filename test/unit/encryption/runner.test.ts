import { EventType } from "@ag-ui/core";
import { lastValueFrom, toArray } from "rxjs";
import { expect, test } from "vitest";
import { Encryption } from "ag-ui-local-runtime/encryption";
import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { openDB } from "idb";
import "fake-indexeddb/auto";
import { defineAgent } from "ag-ui-local-runtime/worker";

test("first light", async () => {
  const dbName = `db-${Math.random()}`;
  const encryption = new Encryption({ key: "correct horse" });
  const runner = new IndexedDBAgentRunner({ dbName, encryption });
  const agent = defineAgent(async function* (input) {
    yield { type: EventType.RUN_STARTED, threadId: input.threadId, runId: input.runId };
    yield { type: EventType.TEXT_MESSAGE_START, messageId: "m1", role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m1", delta: "planted answer" };
    yield { type: EventType.TEXT_MESSAGE_END, messageId: "m1" };
    yield { type: EventType.RUN_FINISHED, threadId: input.threadId, runId: input.runId };
  });
  const input = {
    threadId: "t",
    runId: "r",
    messages: [{ id: "u1", role: "user" as const, content: "planted question" }],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
  };
  const events = await lastValueFrom(runner.run({ threadId: "t", agent: agent.clone(), input }).pipe(toArray()));
  expect(events.at(-1)?.type).toBe("RUN_FINISHED");
  const again = await lastValueFrom(runner.connect({ threadId: "t" }).pipe(toArray()));
  expect(JSON.stringify(again)).toContain("planted answer");
  const db = await openDB(dbName);
  const all = await Promise.all([...db.objectStoreNames].map((name) => db.getAll(name)));
  expect(JSON.stringify(all)).not.toContain("planted");
  expect(await runner.listThreads()).toMatchObject([{ title: "planted question" }]);
  await encryption.lock();
  await expect(runner.listThreads()).rejects.toMatchObject({ code: "locked" });
  await expect(lastValueFrom(runner.connect({ threadId: "t" }).pipe(toArray()))).rejects.toMatchObject({
    code: "locked",
  });
  await expect(encryption.unlock("wrong")).rejects.toMatchObject({ code: "wrong-key" });
  await encryption.unlock("correct horse");
  expect(await runner.listThreads()).toMatchObject([{ title: "planted question" }]);
  await runner.close();
});
