/** An answer of HTTP that says why there is no other: `{ error, message? }`. */
export function errorResponse(status: number, error: string, message?: string): Response {
  // `Response.json` is younger than some of the browsers.
  return new Response(JSON.stringify({ error, ...(message !== undefined && { message }) }), {
    status,
    headers: { "content-type": "application/json" },
  });
}
