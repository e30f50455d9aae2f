/** An HTTP error response: `{ error, message? }`. */
export function errorResponse(status: number, error: string, message?: string): Response {
  // Not `Response.json`, which older browsers lack.
  return new Response(JSON.stringify({ error, ...(message !== undefined && { message }) }), {
    status,
    headers: { "content-type": "application/json" },
  });
}
