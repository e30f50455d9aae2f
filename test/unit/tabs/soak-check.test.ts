import { type BaseEvent, EventType } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import {
  check,
  type Evidence,
  type Findings,
  type LoggedRun,
  messageIdOf,
  noFindings,
  type Piece,
} from "../../tabs/soak/check.js";
import type { Note } from "../../tabs/pages/scripted-notes.js";

const threadId = "thread";

/** A run of the log that says "0 1 2". */
function logged(runId: string, change: Partial<LoggedRun> = {}, deltas = ["0", " 1", " 2"]): LoggedRun {
  const messageId = messageIdOf(runId);
  const events = [
    { type: EventType.RUN_STARTED, threadId, runId },
    { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
    ...deltas.map((delta) => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta })),
    { type: EventType.TEXT_MESSAGE_END, messageId },
    { type: EventType.RUN_FINISHED, threadId, runId },
  ].map((event, seq) => ({ seq, event: event as BaseEvent }));
  return { threadId, runId, runIndex: 0, status: "finished", ordered: deltas.length, events, ...change };
}

const notesOf = (execution: string, runId = execution): Note[] =>
  (["started", "going", "ended"] as const).map((is) => ({ is, threadId, runId, execution }));

const text = (words: string, runId = "a"): Piece => ({ is: "text", runId, text: words });
const end = (how: string, runId = "a"): Piece => ({ is: "end", runId, end: how });
const told = (...pieces: Piece[]) => [{ load: "load", threadId, pieces }];

/** Which kinds of findings there are. */
function kinds(change: Partial<Evidence>): (keyof Findings)[] {
  const findings = check({ seen: [], log: [logged("a")], notes: notesOf("a"), shown: [], ...change });
  return (Object.keys(findings) as (keyof Findings)[]).filter((kind) => findings[kind].length > 0);
}

test("what is right has no findings", () => {
  const evidence: Evidence = {
    seen: [
      ...told(text("0"), text(" 1 2"), end("finished")),
      ...told({ is: "snapshot", texts: { a: "0 1" } }, text(" 2"), end("finished")),
      ...told(text("0"), { is: "snapshot", texts: { a: "0 1 2" } }, end("finished")),
    ],
    log: [logged("a"), logged("b", { runIndex: 1 })],
    notes: [...notesOf("a"), ...notesOf("b")],
    shown: [
      { load: "x", threadId, messages: ["user: go", "assistant: 0 1 2"] },
      { load: "y", threadId, messages: ["user: go", "assistant: 0 1 2"] },
    ],
  };
  expect(check(evidence)).toEqual(noFindings());
});

describe("what tabs saw (L2, L8)", () => {
  const cases: [string, keyof Findings, Piece[]][] = [
    ["a number left out", "gaps", [text("0"), text(" 2")]],
    ["a number left out in a snapshot", "gaps", [{ is: "snapshot", texts: { a: "0 2" } }]],
    ["a number left out behind a snapshot", "gaps", [{ is: "snapshot", texts: { a: "0" } }, text(" 2")]],
    ["what is no number", "gaps", [text("0"), text(" one")]],
    ["the first number left out", "gaps", [text("1")]],
    ["a number twice", "repeats", [text("0 1"), text(" 1 2")]],
    ["the text from its beginning again", "repeats", [text("0 1"), text("0 1 2")]],
    ["an end twice", "repeats", [text("0 1 2"), end("finished"), end("finished")]],
    ["more after the end", "repeats", [text("0 1"), end("finished"), text(" 2")]],
    ["more than the log has", "missing", [text("0 1 2 3")]],
    ["a run that the log does not have", "missing", [text("0", "other")]],
    ["a run that a later snapshot does not have", "missing", [text("0 1 2"), { is: "snapshot", texts: {} }]],
    ["a run of which a later snapshot has less", "missing", [text("0 1 2"), { is: "snapshot", texts: { a: "0" } }]],
    ["another end than the log's", "differing", [text("0 1 2"), end("broken")]],
    ["two different ends", "differing", [end("broken"), { is: "snapshot", texts: {} }, end("finished")]],
  ];
  for (const [name, kind, pieces] of cases) {
    test(`${name} is found`, () => {
      expect(kinds({ seen: told(...pieces) })).toContain(kind);
    });
  }
});

describe("the log", () => {
  const events = logged("a").events;
  const cases: [string, keyof Findings, LoggedRun[]][] = [
    ["a seq left out (L2)", "gaps", [logged("a", { events: events.filter(({ seq }) => seq !== 1) })]],
    ["a seq twice (L2)", "repeats", [logged("a", { events: [...events.slice(0, 2), ...events.slice(1)] })]],
    ["a number left out (L2)", "gaps", [logged("a", {}, ["0", " 2"])]],
    ["a number twice (L2)", "repeats", [logged("a", {}, ["0", " 1", " 1"])]],
    ["a finished run that says too little (L8)", "missing", [logged("a", { ordered: 4 })]],
    ["no terminal event (L7)", "invalid", [logged("a", { events: events.slice(0, -1) })]],
    [
      "two terminal events (L7)",
      "invalid",
      [logged("a", { events: [...events, { seq: 6, event: events.at(-1)!.event }] })],
    ],
    ["another status than its terminal event says (L7)", "invalid", [logged("a", { status: "broken" })]],
    [
      "an open message at the end (L3)",
      "invalid",
      [logged("a", { events: events.filter(({ event }) => event.type !== EventType.TEXT_MESSAGE_END) })],
    ],
    ["a run index left out", "gaps", [logged("a", { runIndex: 1 })]],
    ["a run index twice", "repeats", [logged("a"), logged("b")]],
    ["a run id twice", "repeats", [logged("a"), logged("a", { runIndex: 1 })]],
  ];
  for (const [name, kind, log] of cases) {
    test(`${name} is found`, () => {
      expect(kinds({ log })).toContain(kind);
    });
  }

  test("the sentence on two terminal events is the check's own, not the verifier's (L7)", () => {
    const twice = logged("a", { events: [...events, { seq: 6, event: events.at(-1)!.event }] });
    const { invalid } = check({ seen: [], log: [twice], notes: notesOf("a"), shown: [] });
    expect(invalid).toContainEqual(expect.stringContaining("the ends [finished, finished], which must be one"));
  });
});

describe("executions", () => {
  const both = [logged("a"), logged("b", { runIndex: 1 })];

  test("a run that was executed twice is found (L13)", () => {
    expect(kinds({ notes: [...notesOf("first", "a"), ...notesOf("second", "a")] })).toEqual(["twice"]);
  });

  test("an execution that goes on after the next one began is found (L5)", () => {
    const [started, ...rest] = notesOf("a");
    expect(kinds({ log: both, notes: [started!, ...notesOf("b"), ...rest] })).toEqual(["overlaps"]);
  });

  test("an execution that was cut off before the next one is none (L9)", () => {
    expect(kinds({ log: both, notes: [...notesOf("a").slice(0, 2), ...notesOf("b")] })).toEqual([]);
  });

  test("executions of two threads may overlap", () => {
    const elsewhere = notesOf("b").map((note) => ({ ...note, threadId: "other" }));
    const [started, ...rest] = notesOf("a");
    expect(
      kinds({ log: [logged("a"), logged("b", { threadId: "other" })], notes: [started!, ...elsewhere, ...rest] }),
    ).toEqual([]);
  });

  test("an execution that the log knows nothing of is found (L8)", () => {
    expect(kinds({ notes: [...notesOf("a"), ...notesOf("b")] })).toEqual(["missing"]);
  });

  test("a text that nobody can have said is found", () => {
    expect(kinds({ notes: [] })).toEqual(["missing"]);
  });
});

describe("what tabs show (L2)", () => {
  const shown = (...all: string[][]) => all.map((messages, n) => ({ load: `load-${n}`, threadId, messages }));

  test("another content is found", () => {
    expect(kinds({ shown: shown(["user: x"], ["user: x"], ["user: y"]) })).toEqual(["differing"]);
  });

  test("a message too few or too many is found", () => {
    expect(kinds({ shown: shown(["user: x", "user: y"], ["user: x"]) })).toEqual(["differing"]);
    expect(kinds({ shown: shown(["user: x"], ["user: x", "user: y"]) })).toEqual(["differing"]);
  });
});
