import { connect } from "@nats-io/transport-node";
import { filter, firstValueFrom } from "rxjs";
import { natsSpace } from "../../../src/sync/nats/nats-space.js";
import type { Space } from "../../../src/sync/space.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A connection to a space, from Node. */
export const openSpace = (servers: readonly string[], space: string, replicas?: number): Space =>
  natsSpace({ servers, space, connect, ...(replicas !== undefined && { replicas }) });

export async function online({ state$ }: Space): Promise<void> {
  await firstValueFrom(state$.pipe(filter(({ is }) => is === "online")));
}

/** The seq of an entry that nobody else can have been before. */
export async function added(seq: Promise<number | undefined>): Promise<number> {
  const at = await seq;
  if (at === undefined) throw new Error("somebody else has added an entry");
  return at;
}

/** `count` entries of one thread at a rate, as they are due: when each was emitted is its body. */
async function emit(space: Space, perSecond: number, count: number): Promise<void> {
  const begun = performance.now();
  let last = 0;
  const due: number[] = [];
  for (let emitted = 0, sent = 0; sent < count;) {
    const now = performance.now();
    const many = Math.min(count, Math.floor(((now - begun) / 1_000) * perSecond));
    for (; emitted < many; emitted++) due.push(now);
    const at = due.shift();
    if (at === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
    else last = await added(space.add("paced", encoder.encode(String(at)), { last, id: `${sent++}` }));
  }
}

export interface Paced {
  readonly servers: readonly string[];
  readonly space: string;
  readonly perSecond: number;
  readonly count: number;
}

export const pacedCalls = {
  /** From one connection's `add` to another one's `read`, in ms, one for each entry. */
  async paced({ servers, space, perSecond, count }: Paced): Promise<number[]> {
    const writer = openSpace(servers, space);
    const reader = openSpace(servers, space);
    await Promise.all([online(writer), online(reader)]);
    const times: number[] = [];
    let emitting: Promise<void> | undefined;
    for await (const frame of reader.read(undefined, new AbortController().signal)) {
      if (frame.is === "begins") emitting ??= emit(writer, perSecond, count);
      else if (frame.is === "entry" && times.push(performance.now() - Number(decoder.decode(frame.body))) === count)
        break;
    }
    await emitting;
    await Promise.all([writer.close(), reader.close()]);
    return times;
  },

  /** Connects, and reads all entries of a space that has some. In ms. */
  async readAll(servers: readonly string[], name: string): Promise<number> {
    const since = performance.now();
    const space = openSpace(servers, name);
    let last: number | undefined;
    for await (const frame of space.read(undefined, new AbortController().signal)) {
      if (frame.is === "begins") ({ last } = frame);
      else if (frame.seq === last) break;
    }
    const ms = performance.now() - since;
    await space.close();
    return ms;
  },
};
