import { expect, test } from "vitest";
import { checkAttach, checkNamedRun, checkRun, checkRunQuery } from "../../../src/wire/checks.js";
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
