import { expect } from "vitest";

/** What `work` throws, which must be a Response: its status and its JSON. */
export async function refusal(work: Promise<unknown>): Promise<{ readonly status: number; readonly body: unknown }> {
  const answer: unknown = await work.then(
    (value) => ({ notRefused: value }),
    (error: unknown) => error,
  );
  if (!(answer instanceof Response)) throw new Error("No Response was thrown", { cause: answer });
  return told(answer);
}

/** The status and the JSON of an answer, whose headers must be those of JSON. */
export async function told(answer: Response): Promise<{ readonly status: number; readonly body: unknown }> {
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  return { status: answer.status, body: await answer.json() };
}

/** A refusal of the caller as CopilotKit's front end reads it; never the server's own failure. */
export async function expectRefusal(thrown: unknown): Promise<void> {
  if (!(thrown instanceof Response)) throw new Error("Not a Response", { cause: thrown });
  expect(thrown.status).toBeGreaterThanOrEqual(400);
  expect(thrown.status).toBeLessThan(500);
  expect((await told(thrown)).body).toEqual(expect.objectContaining({ error: expect.any(String) }));
}

export const JSON_TYPE = { "Content-Type": "application/json" };

/** A POST of `body`: bytes, streams and text as they are, else as JSON. */
export function post(body: unknown, headers: HeadersInit = JSON_TYPE, url = "http://localhost/"): Request {
  const raw = typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
  // Needed for streams; the DOM's types do not know it. https://fetch.spec.whatwg.org/#dom-requestinit-duplex
  const init = { method: "POST", headers, body: raw ? body : JSON.stringify(body), duplex: "half" };
  return new Request(url, init as RequestInit);
}
