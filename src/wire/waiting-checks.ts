import { checker, checkRun, fieldsOf, id, oneOf, optional } from "./checks.js";
import type { RunRequest } from "./shapes.js";
import type { EnqueueRequest, NamedWaiting, WaitingMove } from "./waiting-shapes.js";

/* What a tab asks of runs that wait. Errors: RunnerError `invalid-input`. */

export function checkEnqueue(request: EnqueueRequest): EnqueueRequest {
  const fields = fieldsOf(request, "request");
  checkRun(fields["run"] as RunRequest); // which checks it
  oneOf("reject", "queue", "supersede")(fields, "onBusy");
  oneOf("fail", "wait")(fields, "whenOffline");
  return request;
}

export const checkWaitingQuery = checker<{ readonly threadId?: string }>("request", { threadId: optional(id) });

export const checkNamedWaiting = checker<NamedWaiting>("request", { threadId: id, runId: id });

export const checkWaitingMove = checker<WaitingMove>("request", {
  threadId: id,
  runId: id,
  before: (fields, field) => {
    if (fields[field] !== null) id(fields, field);
  },
});
