import { EventType, type RunAgentInput } from "@ag-ui/client";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { from, mergeMap } from "rxjs";
import { expect, test, vi } from "vitest";
import { gated, inputOf } from "../runner/kit.js";

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

test("an agent that is stopped while a middleware delays its run does not begin to work (L7)", async () => {
  const delayed = gated();
  const work = vi.fn();
  const agent = defineAgent(async function* () {
    work();
    yield* [];
  });
  let isDelayed = false;
  agent.use((input, next) => {
    isDelayed = true;
    return from(delayed.gate).pipe(mergeMap(() => next.run(input)));
  });
  const first = agent.runAgent({ runId: "r1" });
  await vi.waitFor(() => expect(isDelayed).toBe(true));
  agent.abortRun();
  delayed.letOn();
  await first.catch(() => undefined);
  expect(work).not.toHaveBeenCalled();
  await agent.runAgent({ runId: "r2" });
  expect(work).toHaveBeenCalledOnce();
  // Nothing runs: the next run is none of this call's.
  agent.abortRun();
  await agent.runAgent({ runId: "r3" });
  expect(work).toHaveBeenCalledTimes(2);
});
