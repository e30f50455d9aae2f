import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test, vi } from "vitest";
import { RUN_ID, THREAD_ID } from "../run/streams.js";
import { Ours } from "./apply-kit.js";

const load = vi.hoisted(() => ({ fails: true }));

vi.mock("../../../src/client/apply/apply-stage.js", async (original) => {
  const loaded: object = await original();
  // What the module has is asked for each time that it was imported.
  return Object.defineProperty({ ...loaded }, "ApplyStage", {
    get: () => {
      if (load.fails) throw new TypeError("Failed to fetch dynamically imported module");
      return (loaded as { ApplyStage: unknown }).ApplyStage;
    },
  });
});

const events: BaseEvent[] = [
  { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID },
  { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "hello" },
  { type: EventType.TEXT_MESSAGE_END, messageId: "m" },
  { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID },
];

test("where the code that shows a thread cannot be loaded, a run says what to do, and the next one tries again (L13)", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const agent = new Ours(
    { messages: [], state: {} },
    events.map((event) => ({ event })),
  );
  await expect(agent.runAgent({ runId: RUN_ID })).rejects.toMatchObject({
    code: "outdated",
    message: expect.stringContaining("could not be loaded") as string,
  });
  load.fails = false;
  await agent.runAgent({ runId: RUN_ID });
  expect(agent.messages).toEqual([{ id: "m", role: "assistant", content: "hello" }]);
});
