import { describe, expect, test } from "vitest";
import {
  RUNNER_ERROR_CODES,
  RunnerError,
  type RunnerErrorCode,
  type RunnerErrorDetails,
} from "../../../src/run/errors.js";
import { fromErrorData, toErrorData } from "../../../src/wire/errors.js";

const messageOf = (code: RunnerErrorCode, details?: RunnerErrorDetails, options?: { cause?: unknown }): string =>
  new RunnerError(code, details, options).message;

describe("the message of a RunnerError", () => {
  test.each<[string, RunnerErrorCode, RunnerErrorDetails]>([
    [
      'No agent is registered under this id: "peot" (there are "poet", "reader")',
      "unknown-agent",
      { agentId: "peot", agentIds: ["poet", "reader"] },
    ],
    [
      'No agent is registered under this id: "peot" (there are none)',
      "unknown-agent",
      { agentId: "peot", agentIds: [] },
    ],
    ['No thread has this id: list the threads again (thread "t")', "unknown-thread", { threadId: "t" }],
    [
      'This run id was already used in the thread with another input: use a fresh run id (run "r", thread "t")',
      "run-exists",
      { threadId: "t", runId: "r" },
    ],
    [
      'A stored record is not valid (run number 3, thread "t", store "runs")',
      "corrupt-record",
      { threadId: "t", runIndex: 3, store: "runs" },
    ],
    [
      'The connection to the database was lost: what was shown is kept; try again (database "app": UnknownError: gone)',
      "storage-lost",
      { dbName: "app", cause: "UnknownError: gone" },
    ],
    ["No host could be started (shared: mute; worker: no)", "no-host", { causes: ["shared: mute", "worker: no"] }],
    ['The input is not valid (field "input.tools")', "invalid-input", { field: "input.tools" }],
    ["The runtime refused the request (status 401: Sign in)", "refused", { status: 401, body: "Sign in" }],
    [
      "The host did not answer in time: it may still take effect, look before you repeat it (after 15000 ms)",
      "timeout",
      { callTimeoutMs: 15_000 },
    ],
    ["Thread already running", "thread-busy", { threadId: "t", runId: "r", holderId: "h" }],
  ])("is %s", (message, code, details) => {
    expect(messageOf(code, details)).toBe(message);
  });

  test("carries what is behind it", () => {
    expect(messageOf("agent-not-cloneable", { agentId: "a" }, { cause: new TypeError("no url") })).toMatch(
      / \(agent "a": no url\)$/,
    );
  });

  test.each(RUNNER_ERROR_CODES)("of %s never says what is not meant for people", (code) => {
    const details = { holderId: "h0lder", headers: { authorization: "s3cret" }, token: "s3cret", threadId: "t" };
    expect(messageOf(code, details)).not.toMatch(/s3cret|h0lder|authorization/);
  });

  test("is of a sane length, whatever it quotes", () => {
    const long = "x".repeat(1_000_000);
    const many = Array.from({ length: 100_000 }, (_, n) => `agent-${n}`);
    expect(messageOf("unknown-agent", { agentId: long, agentIds: [long, ...many] }).length).toBeLessThan(1_000);
    expect(messageOf("unknown-agent", { agentId: "a", agentIds: many })).toContain('agent-19", 99980 more)');
    expect(messageOf("no-host", { causes: many.map(() => long) }).length).toBeLessThan(2_100);
    expect(messageOf("storage-lost", {}, { cause: new Error(long) }).length).toBeLessThan(500);
    expect(new RunnerError("host-failed", {}, { message: long }).message.length).toBeLessThan(2_100);
  });

  test("holds nothing that a console or a page would not show", () => {
    const hidden = "a\u0000\u001b[31m\u202e\u200b\u2028\ud800\u00adz\nb";
    const message = messageOf("unknown-thread", { threadId: hidden });
    expect(message).toMatch(/^[\x20-\x7e]*$/);
    expect(message).toContain(String.raw`\u{202e}`);
    expect(messageOf("storage-lost", { cause: hidden })).not.toMatch(/\p{Cc}(?<!\n)|\p{Cf}|\p{Cs}/u);
  });

  test.each([
    ["an object", { threadId: { toString: () => "x" } as never }],
    [
      "what throws when it is read",
      {
        threadId: {
          toString: () => {
            throw new Error("no");
          },
        } as never,
      },
    ],
  ])("is made of %s too", (_, details) => {
    expect(messageOf("deleted", details)).toContain("(thread object)");
  });

  test("crosses contexts as it is", () => {
    const error = new RunnerError("unknown-agent", { agentId: "peot", agentIds: ["poet"] });
    const crossed = fromErrorData(structuredClone(toErrorData(error)));
    expect([crossed.code, crossed.message, crossed.details]).toEqual([error.code, error.message, error.details]);
  });
});

test.each([
  ["a revoked proxy", () => revoked({})],
  ["a revoked proxy of a RunnerError", () => revoked(new RunnerError("closed"))],
  ["an error whose name throws", () => Object.defineProperty(new Error("x"), "name", { get: () => fail() })],
])("%s is no RunnerError", (_what, make) => {
  expect(RunnerError.is(make())).toBe(false);
  expect(RunnerError.is(make(), "closed")).toBe(false);
});

function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function fail(): never {
  throw new Error("no");
}
