import { describe, expect, test } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { afterFailure } from "../../../src/runtime/waiting/failures.js";
import { reasonFor, type Candidate, type Situation } from "../../../src/runtime/waiting/reason.js";

const run: Candidate = { kind: "run" };
const free: Situation = {
  head: undefined,
  online: true,
  now: 1_000,
  needsNetwork: false,
  lacksHeaders: [],
  openInterrupts: [],
  awaitedCalls: [],
};
const error = { code: "refused", message: "no" } as const;
const live = { activeRunIndex: 0, live: { runIndex: 0, runId: "r0" } };
const recovery = { kind: "recovery", ofIndex: 0, notBefore: 2_000 } as const;
const brings: Partial<Candidate> = {
  input: { messages: [{ id: "m", role: "tool", toolCallId: "c1", content: "it" }] },
};
const asked = [{ id: "i1", reason: "confirm" }];

describe("why the first waiting run of a thread waits", () => {
  test.each<[string, Partial<Candidate>, Partial<Situation>, unknown]>([
    ["nothing keeps it", {}, {}, { is: "starting" }],
    ["a run is live", {}, { head: live }, { is: "busy", runId: "r0" }],
    ["somebody must answer", {}, { openInterrupts: asked }, { is: "interrupts", interruptIds: ["i1"] }],
    [
      "it answers itself",
      { input: { messages: [], resume: [{ interruptId: "i1", status: "resolved", payload: 1 }] } },
      { openInterrupts: asked },
      { is: "starting" },
    ],
    ["it goes on with a broken run", { kind: "recovery" }, { openInterrupts: asked }, { is: "starting" }],
    ["tools run", {}, { awaitedCalls: ["c1"] }, { is: "tool-calls" }],
    ["it brings one result of two", brings, { awaitedCalls: ["c1", "c2"] }, { is: "tool-calls" }],
    ["it brings what the tools gave", brings, { awaitedCalls: ["c1"] }, { is: "starting" }],
    ["no network, which it needs", {}, { online: false, needsNetwork: true }, { is: "offline" }],
    ["no network, which it does not need", {}, { online: false }, { is: "starting" }],
    ["no tab has the key", {}, { lacksHeaders: ["x-key"] }, { is: "headers", names: ["x-key"] }],
    ["later before no key", { notBefore: 2_000 }, { lacksHeaders: ["x-key"] }, { is: "retry", at: 2_000 }],
    ["a broken run is decided without a key", { kind: "recovery" }, { lacksHeaders: ["x-key"] }, { is: "starting" }],
    ["not before", { notBefore: 2_000 }, {}, { is: "retry", at: 2_000 }],
    ["a broken run, until its time comes", recovery, { head: { activeRunIndex: 0 } }, { is: "retry", at: 2_000 }],
    ["a broken run, and the thread went on", recovery, { head: { activeRunIndex: 1 } }, { is: "starting" }],
    ["from then on", { notBefore: 1_000 }, {}, { is: "starting" }],
    ["this host tries later", { notBefore: 1_500 }, { here: { retryAt: 3_000 } }, { is: "retry", at: 3_000 }],
    ["it failed, says the log", { error }, { head: live }, { is: "failed", error }],
    ["it failed here", {}, { here: { error } }, { is: "failed", error }],
    ["busy before offline", {}, { head: live, online: false, needsNetwork: true }, { is: "busy", runId: "r0" }],
    ["offline before later", { notBefore: 2_000 }, { online: false, needsNetwork: true }, { is: "offline" }],
  ])("%s", (_, candidate, situation, reason) => {
    expect(reasonFor({ ...run, ...candidate }, { ...free, ...situation })).toEqual(reason);
  });
});

describe("what becomes of a waiting run that could not start", () => {
  const NOW = Date.parse("Tue, 24 Nov 2026 12:00:00 GMT");

  test.each([
    ["30", 30_000],
    ["Tue, 24 Nov 2026 12:01:30 GMT", 90_000],
    ["Tue, 24 Nov 2026 11:00:00 GMT", 250],
    ["0", 250],
    ["soon", 250],
    ["99999999999", 86_400_000],
  ])("a middleware that says when to come again (%s) is asked no earlier", (retryAfter, afterMs) => {
    const refused = new RunnerError("refused", { status: 429, retryAfter });
    expect(afterFailure(refused, 1, NOW)).toEqual({ is: "retry", afterMs });
  });

  test("what may pass is tried again, less and less often", () => {
    const waits = [1, 2, 3, 20].map((tries) => afterFailure(new RunnerError("thread-busy"), tries, NOW));
    expect(waits).toEqual([250, 500, 1_000, 60_000].map((afterMs) => ({ is: "retry", afterMs })));
    expect(afterFailure(new RunnerError("refused", { status: 429 }), 1, NOW)).toMatchObject({ is: "retry" });
    expect(afterFailure(new RunnerError("refused", { status: 503 }), 1, NOW)).toMatchObject({ is: "retry" });
  });

  test("what will not pass stays until somebody does something", () => {
    expect(afterFailure(new RunnerError("refused", { status: 403 }), 1, NOW)).toMatchObject({
      is: "failed",
      lasting: true,
      error: { code: "refused" },
    });
    // Another build may have it.
    expect(afterFailure(new RunnerError("unknown-agent"), 1, NOW)).toMatchObject({ is: "failed", lasting: false });
    // A server that has it may come.
    expect(afterFailure(new RunnerError("unknown-agent"), 1, NOW, true)).toEqual({ is: "retry", afterMs: 250 });
  });

  test("an error of nobody's own kind counts as lasting after some tries", () => {
    expect(afterFailure(new TypeError("no module"), 4, NOW)).toMatchObject({ is: "retry" });
    expect(afterFailure(new TypeError("no module"), 5, NOW)).toEqual({
      is: "failed",
      lasting: true,
      error: { code: "host-failed", message: "no module" },
    });
  });
});
