import type { BaseEvent } from "@ag-ui/client";
import { expectThat, fail, shown } from "../../../../src/conformance/expect.js";

/** An event as it came: `id` is what its reader would send back as `Last-Event-ID`. */
export interface Read {
  readonly event: BaseEvent;
  readonly id?: string;
}

/** Reads a stream of server-sent events, as slowly as it is asked to. https://html.spec.whatwg.org/#event-stream-interpretation */
export class EventReader {
  /** Everything that was read so far. */
  readonly read: Read[] = [];
  private readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  private readonly decoder = new TextDecoder();
  private text = "";
  private ahead: Read[] = [];

  /** @throws where the answer is no stream of events */
  constructor(response: Response) {
    const { status, headers, body } = response;
    const type = headers.get("Content-Type");
    expectThat(
      status === 200 && type?.startsWith("text/event-stream") === true && body !== null,
      "must answer with a stream of events",
      `answered ${status} ${String(type)}`,
    );
    this.reader = body.getReader();
  }

  /** @returns undefined at the end */
  async next(): Promise<Read | undefined> {
    while (this.ahead.length === 0) {
      const { done, value } = await this.reader.read();
      if (done) {
        expectThat(this.text === "", "a stream must end after a whole event", `ended with ${shown(this.text)}`);
        return undefined;
      }
      this.text += this.decoder.decode(value, { stream: true });
      const blocks = this.text.split("\n\n");
      this.text = blocks.pop()!;
      this.ahead = blocks.flatMap((block) => parse(block) ?? []);
    }
    const next = this.ahead.shift()!;
    this.read.push(next);
    return next;
  }

  /** Reads on to the first event that matches, it included. */
  async until(matches: (read: Read) => boolean, what: string): Promise<Read> {
    for (;;) {
      const next = await this.next();
      if (next === undefined) fail(`a stream must not end before ${what}`, `read ${shown(typesOf(this.read))}`);
      if (matches(next)) return next;
    }
  }

  /** Everything, from the first event on. */
  async all(): Promise<readonly Read[]> {
    while ((await this.next()) !== undefined);
    return this.read;
  }

  /** Leaves, as a tab that is closed does. */
  async leave(): Promise<void> {
    await this.reader.cancel();
  }
}

/** Comments keep a connection open and say nothing. */
function parse(block: string): Read | undefined {
  const fields = block.split("\n").filter((line) => !line.startsWith(":"));
  if (fields.length === 0) return undefined;
  const of = (name: string): string | undefined =>
    fields.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = of("data");
  if (data === undefined) fail("each event must have data", shown(block));
  const id = of("id");
  return { event: JSON.parse(data) as BaseEvent, ...(id !== undefined && { id }) };
}

export const typesOf = (events: readonly Read[]): readonly string[] => events.map(({ event }) => event.type);

/** The events with adjacent deltas of one thing joined: how text is cut is free (L2). */
export function joined(events: readonly Read[]): readonly BaseEvent[] {
  const all: BaseEvent[] = [];
  for (const { event } of events) {
    const last = all.at(-1);
    if (last === undefined || typeof event["delta"] !== "string" || keyOf(last) !== keyOf(event)) all.push(event);
    else all[all.length - 1] = { ...last, delta: `${String(last["delta"])}${event["delta"]}` };
  }
  return all;
}

const keyOf = ({ type, messageId, toolCallId }: BaseEvent): string => JSON.stringify([type, messageId, toolCallId]);
