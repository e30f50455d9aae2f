import { EventType } from "@ag-ui/client";
import { firstValueFrom, Observable, of, throwError } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Logger } from "../../../src/platform/log.js";
import { agentOf, collect, counter, gated, inputOf, PRESETS, rawAgent, replay, silent } from "./kit.js";

type Line = readonly unknown[];

function recorder(): { readonly lines: Line[]; readonly logger: Logger } {
  const lines: Line[] = [];
  return { lines, logger: { error: (...line) => void lines.push(line), warn: (...line) => void lines.push(line) } };
}

function throwsDeepDown(): never {
  throw new TypeError("no such poem");
}

const failing = agentOf(async function* (input) {
  yield { type: EventType.TEXT_MESSAGE_START, messageId: `${input.runId}-a`, role: "assistant" };
  throwsDeepDown();
});

describe.each(PRESETS)("the logger of a runner (%s)", (_name, makeRunner) => {
  test("is told once what an agent threw, with its stack", async () => {
    const { lines, logger } = recorder();
    const runner = makeRunner({ logger });
    const run = runner.run({ threadId: "t", agent: failing.clone(), input: inputOf("t", "r") });
    await Promise.all([collect(run), collect(run), replay(runner, "t")]);
    expect(lines).toEqual([['Run "r" of thread "t" (agent "test") failed: no such poem', expect.any(Error)]]);
    const [[, error]] = lines as [[string, Error]];
    expect(error.name).toBe("TypeError");
    expect(error.stack).toContain("throwsDeepDown");
  });

  test("is all that is told of a failure, also of an agent that somebody watches from inside", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => printed.mockRestore());
    const { lines, logger } = recorder();
    const watched = failing.clone();
    const failed = vi.fn();
    watched.subscribe({ onRunFailed: failed });
    const runner = makeRunner({ logger });
    const events = await collect(runner.run({ threadId: "t", agent: watched, input: inputOf("t", "r") }));
    expect(events.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, message: "no such poem" });
    expect(failed).toHaveBeenCalledOnce();
    expect(lines.length).toBe(1);
    expect(printed).not.toHaveBeenCalled();
  });

  test("is the console where none is given", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
    try {
      const runner = makeRunner({ logger: undefined as never });
      await collect(runner.run({ threadId: "t", agent: failing.clone(), input: inputOf("t", "r") }));
      expect(printed.mock.calls).toEqual([[expect.stringContaining("no such poem"), expect.any(Error)]]);
    } finally {
      printed.mockRestore();
    }
  });

  test.each([
    ["an agent's RUN_ERROR", of({ type: EventType.RUN_ERROR, message: "Too many", code: "RATE" }), "RATE: Too many"],
    ["an invalid stream", of({ type: EventType.TEXT_MESSAGE_END, messageId: "m" }), "RUN_STARTED"],
    ["a failure before the first event", throwError(() => "not even an error"), "not even an error"],
  ])("is told of %s", async (_what, events$, text) => {
    const { lines, logger } = recorder();
    const runner = makeRunner({ logger });
    await collect(runner.run({ threadId: "t", agent: rawAgent(() => events$), input: inputOf("t", "r") }));
    expect(lines.map(([message]) => message)).toEqual([expect.stringContaining(text)]);
  });

  test("is told nothing of runs that finish, and of stopped ones, whatever their agent throws then", async () => {
    const { lines, logger } = recorder();
    const runner = makeRunner({ logger });
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "r1") }));
    const { gate, letOn } = gated();
    const spiteful = agentOf(async function* (input, context) {
      letOn();
      yield* silent(input, context);
      throw new DOMException("signal is aborted without reason", "AbortError");
    });
    const rude = rawAgent(
      () =>
        new Observable((subscriber) => {
          letOn();
          return () => subscriber.error(new Error("gone"));
        }),
    );
    for (const [runId, agent] of Object.entries({ spiteful, rude })) {
      const events = collect(runner.run({ threadId: "t", agent, input: inputOf("t", runId) }));
      await gate;
      await vi.waitFor(async () => expect(await runner.stop({ threadId: "t", runId })).toBe(true));
      expect((await events).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
    }
    expect(lines).toEqual([]);
  });

  test("is shown nothing of what an error carries beside its message: it may be a request's", async () => {
    const { lines, logger } = recorder();
    const runner = makeRunner({ logger });
    const cause = Object.assign(new Error("socket closed"), {
      config: { headers: { authorization: "Bearer s3cret" } },
    });
    const thrown = Object.assign(new Error("call failed", { cause }), { request: { authorization: "Bearer s3cret" } });
    const agent = rawAgent(() => throwError(() => thrown));
    await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    const [[, error]] = lines as [[string, Error]];
    expect(Object.keys(error)).toEqual([]);
    expect(error.cause).toMatchObject({ message: "socket closed" });
    expect(Object.keys(error.cause as Error)).toEqual([]);
  });

  test.each<[string, () => unknown]>([
    ["throws", throwsDeepDown],
    ["rejects", () => Promise.reject(new Error("the logger failed"))],
  ])("changes nothing where it %s", async (_how, fail) => {
    const runner = makeRunner({ logger: { error: fail, warn: fail } });
    const run = runner.run({ threadId: "t", agent: failing.clone(), input: inputOf("t", "r") });
    expect((await collect(run)).at(-1)).toMatchObject({ type: EventType.RUN_ERROR, message: "no such poem" });
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r2") }));
    await expect(firstValueFrom(runner.connect({ threadId: "t" }))).resolves.toBeDefined();
  });

  test("that is none is refused", () => {
    expect(() => makeRunner({ logger: { error: () => undefined } as unknown as Logger })).toThrow(/logger/);
  });
});
