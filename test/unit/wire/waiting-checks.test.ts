import { expect, test } from "vitest";
import {
  checkEnqueue,
  checkNamedWaiting,
  checkWaitingMove,
  checkWaitingQuery,
} from "../../../src/wire/waiting-checks.js";
import { inputOf } from "../runner/plain-kit.js";

const run = { threadId: "t", agentId: "a", input: inputOf("t", "r") };
const asked = { run, onBusy: "queue", whenOffline: "wait" };
const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;

/** What a page sends need not have the shape that is given. */
const refused = (check: (given: never) => unknown, given: unknown): void =>
  expect(() => check(given as never)).toThrow(expect.objectContaining({ code: "invalid-input" }));

test("what is well formed passes", () => {
  expect(checkEnqueue(asked as never)).toBe(asked);
  expect(checkWaitingQuery({})).toEqual({});
  expect(checkWaitingMove({ threadId: "t", runId: "r", before: null })).toMatchObject({ before: null });
});

test.each([
  [undefined],
  ["queue"],
  [{ ...asked, run: undefined }],
  [{ ...asked, run: { ...run, threadId: "" } }],
  [{ ...asked, run: { ...run, input: { ...run.input, messages: "all" } } }],
  [{ ...asked, run: { ...run, input: { ...run.input, context: [cyclic] } } }],
  [{ ...asked, run: { ...run, onBusy: "later" } }],
  [{ ...asked, onBusy: "later" }],
  [{ ...asked, onBusy: undefined }],
  [{ ...asked, whenOffline: true }],
])("a run that is to wait is refused where it is not one (L19): case %#", (given) => refused(checkEnqueue, given));

test.each([[{ threadId: 1 }], [{ threadId: "" }], [[]]])("a query is refused (L19): case %#", (given) =>
  refused(checkWaitingQuery, given),
);

test.each([
  [{ threadId: "t", runId: "r" }],
  [{ threadId: "t", runId: "r", before: "" }],
  [{ threadId: "t", runId: "r", before: 1 }],
  [{ threadId: "t", before: null }],
])("a move is refused (L19): case %#", (given) => refused(checkWaitingMove, given));

test.each([[{ threadId: "t" }], [{ runId: "r" }], [null]])("a name is refused (L19): case %#", (given) =>
  refused(checkNamedWaiting, given),
);
