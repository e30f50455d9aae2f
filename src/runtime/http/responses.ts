import { jsonBody } from "./json-pieces.js";

/** Responses that the endpoints share. Texts and codes are those of CopilotKit's runtime. */

/** A JSON response. It must not be cached or sniffed, because it is valid for one caller at one moment. */
export function json(body: unknown, status = 200, headers?: HeadersInit): Response {
  const all = new Headers(headers);
  all.set("Content-Type", "application/json");
  all.set("Cache-Control", "no-store");
  all.set("X-Content-Type-Options", "nosniff");
  return new Response(jsonBody(body), { status, headers: all });
}

export function noContent(): Response {
  return new Response(null, { status: 204, headers: { "Cache-Control": "no-store" } });
}

/** @param details what is wrong with the request; never a value from it */
export function invalidBody(details: string): Response {
  return json({ error: "Invalid request body", details }, 400);
}

/** @param message what is wrong with the envelope; never a value from it */
export function invalidEnvelope(message: string, status: 400 | 415 = 400): Response {
  return json({ error: "invalid_request", message }, status);
}

export function badRequest(): Response {
  return json({ error: "Bad request" }, 400);
}

export function notFound(): Response {
  return json({ error: "Not found" }, 404);
}

export function methodNotAllowed(allowed: readonly string[]): Response {
  return json({ error: "Method not allowed" }, 405, { Allow: allowed.join(", ") });
}

export function payloadTooLarge(): Response {
  return json({ error: "Payload too large" }, 413);
}

export function unsupportedMediaType(): Response {
  return json({ error: "Unsupported media type" }, 415);
}

/**
 * Carries no details: the error may hold secrets.
 *
 * @param id identifies the error in the log
 */
export function internalError(id?: string): Response {
  return json({ error: "internal_error", ...(id !== undefined && { id }) }, 500);
}
