import { defined } from "../platform/defined.js";
import { messageOf, RunnerError, type RunnerErrorCode } from "../run/errors.js";
import { json } from "./http/responses.js";

/** HTTP status per error code. Others are faults of the runtime: 500. */
const STATUS: Readonly<Partial<Record<RunnerErrorCode, number>>> = {
  "invalid-input": 400,
  "unknown-agent": 404,
  "unknown-thread": 404,
  "wrong-key": 403,
  "thread-busy": 409,
  "run-exists": 409,
  "interrupts-open": 409,
  cancelled: 409,
  fenced: 409,
  deleted: 410,
  "storage-deleted": 410,
  locked: 423,
  offline: 503,
  closed: 503,
  "host-lost": 503,
  "no-host": 503,
  outdated: 503,
  "protocol-mismatch": 503,
  "wrong-user": 503,
  "storage-blocked": 503,
  "storage-lost": 503,
  "storage-unavailable": 503,
  timeout: 504,
  "quota-exceeded": 507,
};

/**
 * The HTTP response for an error: CopilotKit's bodies where it has them, else `{ error: code, message }`. Other errors
 * show only their message, never a stack: an agent's set-up may say what is missing.
 *
 * @param failure the route's `error` text for a 500
 */
export function errorResponse(error: unknown, failure = "Failed to run agent"): Response {
  if (!RunnerError.is(error)) return json({ error: failure, message: messageOf(error) }, 500);
  const { code, details } = error;
  const status = STATUS[code] ?? 500;
  const { threadId, runId, agentId, interruptIds } = details;
  const where = defined({ threadId, runId, interruptIds });
  if (code === "unknown-agent") {
    const message = `Agent '${String(agentId)}' does not exist`;
    return json({ error: "Agent not found", message }, status);
  }
  if (code === "thread-busy") {
    // CopilotKit's front end checks for this code.
    return json({ error: error.message, code: "agent_thread_locked", ...where }, status);
  }
  if (code === "invalid-input") {
    return json({ error: "Invalid request body", details: error.message }, status);
  }
  if (status === 500) return json({ error: failure, code, message: error.message, ...where }, status);
  return json({ error: code, code, message: error.message, ...where }, status);
}
