import { expect, test } from "vitest";
import { errorResponse } from "../../../src/runtime/error-response.js";
import { RunnerError } from "../../../src/run/errors.js";

test("a thread that is not there is the caller's to know, and no failure of the runtime", async () => {
  const answer = errorResponse(new RunnerError("unknown-thread", { threadId: "t" }), "Failed to update thread");
  expect(answer.status).toBe(404);
  expect(await answer.json()).toEqual({
    error: "unknown-thread",
    code: "unknown-thread",
    message: 'No thread has this id: list the threads again (thread "t")',
    threadId: "t",
  });
});

test("a database that was deleted is gone, like a run that was deleted", () => {
  for (const code of ["deleted", "storage-deleted"] as const) {
    expect(errorResponse(new RunnerError(code, { threadId: "t" })).status).toBe(410);
  }
});
