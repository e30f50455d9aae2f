import type { SseEvent } from "../../../src/runtime/http/sse.js";

/** A source that gives what the test gives it, and counts what it is asked. */
export class Source implements AsyncIterable<readonly SseEvent[]>, AsyncIterator<readonly SseEvent[]> {
  asked = 0;
  returned = 0;
  #given: (readonly SseEvent[] | "end" | { readonly error: unknown })[] = [];
  #waiting: (() => void) | undefined;

  [Symbol.asyncIterator](): this {
    return this;
  }

  give(...events: readonly SseEvent[]): this {
    return this.#put(events);
  }

  end(): this {
    return this.#put("end");
  }

  fail(error: unknown): this {
    return this.#put({ error });
  }

  async next(): Promise<IteratorResult<readonly SseEvent[]>> {
    this.asked++;
    while (this.#given.length === 0) await new Promise<void>((resolve) => (this.#waiting = resolve));
    const next = this.#given.shift()!;
    if (next === "end") return { done: true, value: undefined };
    if ("error" in next) throw next.error;
    return { done: false, value: next };
  }

  async return(): Promise<IteratorResult<readonly SseEvent[]>> {
    this.returned++;
    return { done: true, value: undefined };
  }

  #put(next: readonly SseEvent[] | "end" | { readonly error: unknown }): this {
    this.#given.push(next);
    this.#waiting?.();
    this.#waiting = undefined;
    return this;
  }
}

/** A server-sent event as its reader gets it. */
export interface Parsed {
  readonly data: unknown;
  readonly id?: string;
}

/**
 * Reads server-sent events as the HTML standard says: lines end in LF, CR LF or CR, a blank line ends an event, an id
 * stays the last one until another comes, an event without data is none.
 */
export function parseEvents(text: string): { events: Parsed[]; comments: string[] } {
  const events: Parsed[] = [];
  const comments: string[] = [];
  let data: string[] = [];
  let id: string | undefined;
  const lines = text.split(/\r\n|\n|\r/);
  // What follows the last line end is no line.
  for (const line of lines.slice(0, -1)) {
    if (line === "") {
      if (data.length > 0) events.push({ data: JSON.parse(data.join("\n")), ...(id !== undefined && { id }) });
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (colon === 0) comments.push(value);
    else if (field === "data") data.push(value);
    else if (field === "id") id = value;
    else throw new Error(`A field that nobody sends: ${field}`);
  }
  if (data.length > 0) throw new Error("The last event has no end");
  return { events, comments };
}

/** All chunks of a body. */
export async function chunksOf(response: Response): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body!) chunks.push(chunk);
  return chunks;
}

/** The same body, cut elsewhere. */
export async function cutAt(response: Response, cuts: readonly number[]): Promise<Response> {
  const all = new Uint8Array(await response.arrayBuffer());
  const places = [0, ...cuts.map((cut) => cut % (all.length + 1)).sort((a, b) => a - b), all.length];
  const pieces = places.slice(1).map((place, n) => all.slice(places[n], place));
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
  return new Response(body, { headers: response.headers });
}
