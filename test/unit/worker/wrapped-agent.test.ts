import { EventType, FunctionMiddleware, type BaseEvent } from "@ag-ui/client";
import { tap } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import { collect, inputOf, makeRunner, silent } from "../runner/kit.js";
import { defineAgent, type AgentFunction } from "../../../src/worker/define-agent.js";

/** An agent function whose middleware notes what passes it. */
function wrapped(work: AgentFunction<BaseEvent>) {
  const passed: string[] = [];
  const noting = new FunctionMiddleware((input, next) => next.run(input).pipe(tap(({ type }) => passed.push(type))));
  return { passed, agent: defineAgent<BaseEvent>(work).use(noting) };
}

const custom: BaseEvent = { type: EventType.CUSTOM, name: "n", value: 1 };

describe("the middlewares of an agent function see", () => {
  test("the end of its run where it says none, in a clone too", async () => {
    const { passed, agent } = wrapped(async function* () {
      yield custom;
    });
    await collect(makeRunner().run({ threadId: "t", agent: agent.clone(), input: inputOf("t", "r") }));
    expect(passed).toEqual([EventType.RUN_STARTED, EventType.CUSTOM, EventType.RUN_FINISHED]);
  });

  test.each<BaseEvent>([
    { type: EventType.RUN_FINISHED, threadId: "t", runId: "r", result: 1 },
    { type: EventType.RUN_ERROR, message: "no" },
  ])("its own end alone where it says one: $type", async (end) => {
    const { passed, agent } = wrapped(async function* () {
      yield end;
    });
    await collect(makeRunner().run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(passed).toEqual([EventType.RUN_STARTED, end.type]);
  });

  test("no end of a run that was stopped (L12)", async () => {
    const { passed, agent } = wrapped(silent);
    const runner = makeRunner();
    const run = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    await vi.waitFor(() => expect(passed).toContain(EventType.TEXT_MESSAGE_START));
    await runner.stop({ threadId: "t" });
    expect((await run).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
    expect(passed).not.toContain(EventType.RUN_FINISHED);
  });
});
