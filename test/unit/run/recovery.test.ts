import { describe, expect, test } from "vitest";
import { attemptRunId, isRecoverable, policyOf } from "../../../src/run/recovery.js";
import { retryAfterOf, verdictOf, type RecoveryCase } from "../../../src/run/verdict.js";

const given: RecoveryCase = { policy: {}, number: 1, started: [], repeatable: new Set(), endedAt: 1_000 };

describe("which ends are recovered", () => {
  test("nothing by itself unless the agent's policy says so", () => {
    expect([policyOf(undefined), policyOf("ask"), policyOf("auto")]).toEqual([undefined, undefined, {}]);
  });

  test("never what somebody stopped or superseded, nor what has finished", () => {
    for (const status of ["stopped", "superseded", "finished"] as const) {
      expect(isRecoverable({ status, code: "INCOMPLETE_STREAM" }, {})).toBe(false);
    }
  });

  test("broken, cut off, and what may succeed later; other failures stay", () => {
    const ends = [
      { status: "broken" },
      { status: "errored", code: "INCOMPLETE_STREAM" },
      { status: "errored", code: "RATE_LIMITED" },
      { status: "errored", code: "AGENT_FAILED" },
      { status: "errored" },
    ] as const;
    expect(ends.map((end) => isRecoverable(end, {}))).toEqual([true, true, true, false, false]);
    expect(ends.map((end) => isRecoverable(end, { on: ["incomplete"] }))).toEqual([false, true, false, false, false]);
  });
});

describe("the verdict", () => {
  test("goes on after a pause that doubles, up to its longest", () => {
    const policy = { maxAttempts: 9, backoffMs: 100, maxBackoffMs: 500 };
    const pauses = [1, 2, 3, 4].map((number) => {
      const verdict = verdictOf({ ...given, policy, number });
      return verdict.is === "go" ? verdict.at - 1_000 : undefined;
    });
    expect(pauses).toEqual([100, 200, 400, 500]);
    expect(verdictOf({ ...given, policy })).toMatchObject({ number: 2 });
  });

  test("a tool that started without a result is left to a person, unless it may run twice", () => {
    const started = ["pay", "search", "pay"];
    const repeatable = new Set(["search"]);
    expect(verdictOf({ ...given, started, repeatable })).toEqual({ is: "ask", why: "tools-started", tools: ["pay"] });
    expect(verdictOf({ ...given, started, repeatable: new Set(["search", "pay"]) })).toMatchObject({ is: "go" });
    // Asking comes before giving up: the reader must be told of the tool.
    expect(verdictOf({ ...given, started, repeatable, number: 3 })).toMatchObject({ is: "ask" });
  });

  test("gives up after the last attempt", () => {
    expect(verdictOf({ ...given, number: 2 })).toMatchObject({ is: "go", number: 3 });
    expect(verdictOf({ ...given, number: 3 })).toEqual({ is: "gave-up", why: "attempts", attempts: 3 });
    expect(verdictOf({ ...given, policy: { maxAttempts: 1 } })).toMatchObject({ is: "gave-up" });
  });

  test("waits as long as the server says, within a day", () => {
    expect(verdictOf({ ...given, retryAfterMs: 60_000 })).toMatchObject({ at: 61_000 });
    expect(retryAfterOf({ metadata: { retryAfterMs: 5_000 } })).toBe(5_000);
    expect(retryAfterOf({ metadata: { retryAfterMs: Infinity } })).toBe(86_400_000);
    for (const odd of [
      {},
      { metadata: null },
      { metadata: { retryAfterMs: "5" } },
      { metadata: { retryAfterMs: NaN } },
    ]) {
      expect(retryAfterOf(odd)).toBeUndefined();
    }
  });
});

test("the ids of a chain follow from the first run's, whatever that looks like", () => {
  const second = attemptRunId("run~2", 2);
  const third = attemptRunId(second, 3);
  expect([second, third, attemptRunId(third, 4)]).toEqual(["run~2~2", "run~2~3", "run~2~4"]);
});
