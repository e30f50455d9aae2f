import { expect, test } from "vitest";
import {
  checkAttach,
  checkMessagePageQuery,
  checkNamedRun,
  checkRun,
  checkRunQuery,
} from "../../../src/wire/checks.js";
import type { AttachRequest, MessagePageQuery, RunRequest } from "../../../src/wire/shapes.js";
import { inputOf } from "../runner/kit.js";

const run = { threadId: "t", agentId: "a", input: inputOf("t", "r") };

test.each<[string, (given: never) => unknown, readonly unknown[], readonly unknown[]]>([
  [
    "attach",
    checkAttach,
    [{ threadId: "t", runId: "" }, { threadId: "t", replay: "last" }, null],
    [{ threadId: "t", runId: "r", replay: "last-run" }],
  ],
  ["run", checkRun, [{ ...run, persistedInputMessages: "all" }], [run, { ...run, persistedInputMessages: [] }]],
  ["listRuns", checkRunQuery, [undefined, "t", {}, { threadId: 1 }], [{ threadId: "t", limit: 3 }]],
  [
    "getRun, getRunEvents",
    checkNamedRun,
    [null, [], {}, { runId: 7 }, { runId: "r", threadId: "" }],
    [{ runId: "r" }, { runId: "r", threadId: "t" }],
  ],
])("what a tab sends to %s is checked", (_call, check, bad, good) => {
  // Anything can come over a port.
  for (const given of bad)
    expect(() => check(given as never)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  for (const given of good) expect(check(given as never)).toBe(given);
});

test("what is no page is refused where it arrives", () => {
  const attach = (limit: unknown) => () => checkAttach({ threadId: "t", limit } as AttachRequest);
  for (const limit of [0, -1, 1.5, Number.NaN, "1", null]) expect(attach(limit)).toThrow(/limit must/);
  for (const limit of [undefined, 1, 10_000]) expect(attach(limit)).not.toThrow();
  const query = (fields: object) => () => checkMessagePageQuery({ threadId: "t", ...fields } as MessagePageQuery);
  for (const fields of [{ before: 7 }, { limit: "1" }, { threadId: "" }]) {
    expect(query(fields)).toThrow(/must/);
  }
  for (const before of ["m", ""]) expect(query({ before, limit: 3 })).not.toThrow();
});

test("what is neither true nor false is refused where it arrives", () => {
  for (const field of ["follow", "holds", "named"]) {
    const attach = (given: unknown) => () => checkAttach({ threadId: "t", [field]: given } as unknown as AttachRequest);
    for (const given of ["true", 1, null, {}]) expect(attach(given)).toThrow(new RegExp(`${field} must`));
    for (const given of [undefined, true, false]) expect(attach(given)).not.toThrow();
  }
});

test("what is no branch point is refused where it arrives", () => {
  const check = (fields: object) => () => checkRun({ ...run, ...fields } as RunRequest);
  for (const cut of [null, "m", {}, [7]]) expect(check({ cut })).toThrow(/cut must/);
  for (const cut of [undefined, [], ["m", ""]]) expect(check({ cut })).not.toThrow();
  for (const branchBefore of [null, 7, {}]) expect(check({ branchBefore })).toThrow(/branchBefore must/);
  for (const branchBefore of [undefined, "m", ""]) expect(check({ branchBefore })).not.toThrow();
});
