import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { History } from "../../../src/runner/history/history.js";
import { emptyMemoryData, memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { chunkOf, claimed, foreignEnd } from "../storage/kit.js";
import { user } from "./plain-kit.js";

/*
 * Runs that were settled without reading their content, whose messages readers derive.
 */

test("where a full disk keeps nothing that is derived, each run is derived from what those before it left (L2)", async () => {
  const inner = memoryRunStore(emptyMemoryData());
  const store = {
    ...inner,
    derive: async (): Promise<void> => {
      throw new RunnerError("quota-exceeded");
    },
  };
  const broken = async (runId: string, events: readonly BaseEvent[]): Promise<void> => {
    const base = await store.head("t");
    const prevRunIndex = base?.activeRunIndex ?? null;
    const claim = await claimed(store, "t", runId, { base, prevRunIndex, input: { messages: [user(`${runId}-u`)] } });
    const started = { type: EventType.RUN_STARTED, threadId: "t", runId };
    await store.append(claim, chunkOf(claim, 0, [started, ...events]));
    await store.settleForeign("t", runId, "broken", 3_000, foreignEnd);
  };
  await broken("r1", [
    { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "look", parentMessageId: "asks" },
    { type: EventType.TOOL_CALL_END, toolCallId: "c" },
    { type: EventType.TEXT_MESSAGE_START, messageId: "says", role: "assistant" },
    { type: EventType.TEXT_MESSAGE_END, messageId: "says" },
  ]);
  await broken("r2", [{ type: EventType.TOOL_CALL_RESULT, messageId: "found", toolCallId: "c", content: "it" }]);
  const head = (await store.head("t"))!;
  expect(head.underived).toEqual([0, 1]);
  const { messages } = await new History(store).base(head);
  expect(messages.map(({ id }) => id)).toEqual(["r1-u", "asks", "found", "says", "r2-u"]);
});
