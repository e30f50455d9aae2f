import { SpaceOffline } from "../space.js";

/** Codes of the server's errors: https://github.com/nats-io/nats-server/blob/main/server/errors.json */
const WRONG_LAST_SEQUENCE = 10_071;
/** Newer servers: what came before is not stored yet, so its seq is not known. */
const WRONG_LAST_SEQUENCE_UNKNOWN = 10_164;
/** Newer servers: a message with this id is not stored yet. */
const DUPLICATE_IN_PROCESS = 10_158;
export const STREAM_NOT_FOUND = 10_059;
export const STREAM_NAME_IN_USE = 10_058;
const JETSTREAM_NOT_ENABLED_FOR_ACCOUNT = 10_039;
/** A limit of the stream: the server says 503, and means no. */
const STREAM_FULL = 10_077;

export function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** Whether another message was first, or this one before. */
export function isBehind(error: unknown): boolean {
  const code = codeOf(error);
  return code === WRONG_LAST_SEQUENCE || code === WRONG_LAST_SEQUENCE_UNKNOWN || code === DUPLICATE_IN_PROCESS;
}

/** Which names errors have for "nobody listens there". */
const UNHEARD = new Set(["JetStreamNotEnabled", "NoResponders"]);

/** Whether nobody listens to what was published or asked. */
export const isUnheard = (error: unknown): boolean =>
  error instanceof Error && UNHEARD.has(error.name) && codeOf(error) !== JETSTREAM_NOT_ENABLED_FOR_ACCOUNT;

/** Which names errors have for "there is no answer": the classes are of a package that is loaded late. */
const UNANSWERED = new Set([
  ...UNHEARD,
  "ClosedConnectionError",
  "ConnectionError",
  "DrainingConnectionError",
  "RequestError",
  "TimeoutError",
]);

const REFUSED = new Set(["AuthorizationError", "PermissionViolationError", "UserAuthenticationExpiredError"]);

/** Whether the credentials are not valid, or do not allow it. */
export function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (REFUSED.has(error.name) || codeOf(error) === JETSTREAM_NOT_ENABLED_FOR_ACCOUNT) return true;
  return error.cause !== undefined && isRefused(error.cause);
}

/** Whether the credentials do not allow it. */
export function isForbidden(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "PermissionViolationError" || (error.cause !== undefined && isForbidden(error.cause));
}

/** Whether there was no answer, so that nobody knows what became of the request. */
export function isUnanswered(error: unknown): boolean {
  if (!(error instanceof Error) || isRefused(error) || codeOf(error) === STREAM_FULL) return false;
  // An answer of a server that is not ready.
  return UNANSWERED.has(error.name) || ("status" in error && error.status === 503);
}

/** A server that has just begun to lead may lack what others have: whoever asked tries again, by the same connection. */
export function failAsBehind(): never {
  throw new SpaceOffline("The server does not know yet what others have acknowledged or sent");
}
