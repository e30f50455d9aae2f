import "fake-indexeddb/auto";
import { EventType, verifyEvents, type BaseEvent } from "@ag-ui/client";
import { from, lastValueFrom, toArray } from "rxjs";
import { expect, test } from "vitest";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { defineAgent } from "../../../src/worker/define-agent.js";

const echo = defineAgent(async function* (input, { signal }) {
  const id = `${input.runId}-a`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId: id, role: "assistant" } as BaseEvent;
  for (let n = 0; n < 100 && !signal.aborted; n++) {
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: id, delta: `${n} ` } as BaseEvent;
    if (n % 10 === 0) await new Promise((r) => setTimeout(r, 0));
  }
});
const input = (threadId: string, runId: string) => ({
  threadId,
  runId,
  state: {},
  tools: [],
  context: [],
  forwardedProps: {},
  messages: [{ id: `${runId}-u`, role: "user" as const, content: `hi ${runId}` }],
});

test("run, connect", async () => {
  const runner = new IndexedDBAgentRunner({ dbName: "t1" });
  const events = await lastValueFrom(
    runner.run({ threadId: "a", agent: echo.clone(), input: input("a", "r1") }).pipe(toArray()),
  );
  expect(events.length).toBe(104);
  await lastValueFrom(runner.run({ threadId: "a", agent: echo.clone(), input: input("a", "r2") }).pipe(toArray()));
  const seen = await lastValueFrom(runner.connect({ threadId: "a" }).pipe(verifyEvents(), toArray()));
  console.log(seen.map((e) => e.type));
  const ac = new AbortController();
  const frames = [];
  for await (const f of runner.attach({ threadId: "a" }, ac.signal)) frames.push(f);
  console.dir(frames, { depth: 6 });
  console.log(await runner.listThreads());
  void from([]);
  await runner.close();
});
