import { EventType, type RunAgentInput } from "@ag-ui/client";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { expect, test } from "vitest";
import { inputOf } from "../runner/kit.js";

test("an agent that is stopped at an event is not asked for the next one, and cleans up (L7)", async () => {
  const did: string[] = [];
  const events = {
    next: () => {
      did.push("next");
      const value = { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" } as const;
      return did.length === 1 ? Promise.resolve({ done: false as const, value }) : new Promise<never>(() => undefined);
    },
    return: () => {
      did.push("return");
      return Promise.resolve({ done: true as const, value: undefined });
    },
  };
  const agent = defineAgent((_input: RunAgentInput) => ({ [Symbol.asyncIterator]: () => events }));
  await new Promise<void>((resolve) =>
    agent.run(inputOf("t", "r")).subscribe({
      next: ({ type }) => void (type === EventType.TEXT_MESSAGE_START && agent.abortRun()),
      complete: resolve,
    }),
  );
  expect(did).toEqual(["next", "return"]);
});
