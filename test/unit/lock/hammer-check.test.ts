import { type BaseEvent, EventType } from "@ag-ui/client";
import { expect, test } from "vitest";
import { BUSY, faultsOf, type HammerEvidence } from "../../tabs/hammer-check.js";
import type { Note } from "../../tabs/pages/scripted-notes.js";
import type { LoggedRun } from "../../tabs/soak/check.js";

const threadId = "thread";

function logged(runId: string, runIndex: number, status = "finished"): LoggedRun {
  const end =
    status === "finished"
      ? { type: EventType.RUN_FINISHED, threadId, runId }
      : { type: EventType.RUN_ERROR, message: "its host ended", code: "RUN_BROKEN" };
  const events = [{ type: EventType.RUN_STARTED, threadId, runId }, end];
  return {
    threadId,
    runId,
    runIndex,
    status,
    ordered: 0,
    events: events.map((event, seq) => ({ seq, event: event as BaseEvent })),
  };
}

const notesOf = (execution: string, runId = execution): Note[] =>
  (["started", "ended"] as const).map((is) => ({ is, threadId, runId, execution }));

const faults = (change: Partial<HammerEvidence>): string[] =>
  faultsOf({
    attempts: [{ runId: "a", outcome: "ok" }],
    notes: notesOf("a"),
    log: { runs: [logged("a", 0)], shown: [{ load: "the log", threadId, messages: ["x"] }] },
    shown: [{ load: "tab", threadId, messages: ["x"] }],
    ...change,
  });

test("what is right has no faults", () => {
  expect(
    faults({
      attempts: [
        { runId: "a", outcome: "ok" },
        { runId: "b", outcome: BUSY },
      ],
    }),
  ).toEqual([]);
});

test.each<[string, RegExp, Partial<HammerEvidence>]>([
  ["a run that was taken and never executed (L5)", /a was taken/, { notes: [] }],
  ["a run that was refused and executed (L5)", /a was refused/, { attempts: [{ runId: "a", outcome: BUSY }] }],
  [
    "a run that was refused with another sentence (L5)",
    /ended with/,
    { attempts: [{ runId: "b", outcome: "thread-busy: no" }] },
  ],
  ["a call that never settled (L13)", /ended with nothing/, { attempts: [{ runId: "b" }] }],
  [
    "a run that is broken though no host died (L7)",
    /no host died/,
    { log: { runs: [logged("a", 0, "broken")], shown: [] } },
  ],
  ["a run that was executed twice (L5)", /executed twice/, { notes: [...notesOf("1", "a"), ...notesOf("2", "a")] }],
  ["a tab that shows another order (L2)", /tab shows/, { shown: [{ load: "tab", threadId, messages: ["y"] }] }],
])("%s is found", (_, sentence, change) => {
  expect(faults(change).join()).toMatch(sentence);
});
