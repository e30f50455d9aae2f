import type { Space } from "../../../src/sync/space.js";
import { added, online, openSpace } from "./space-paced.js";

/** Bytes of an entry. */
const ENTRY_BYTES = 512;
const REPLICAS = 3;

/** A space, the connection that writes to it, and the devices that read it. */
interface Crowded {
  readonly writer: Space;
  devices: number;
  /** By its `seq`: how many devices have read an entry. */
  readonly reads: Map<number, number>;
  /** The entry that is waited for, and what is called when all have read it. */
  awaited?: { readonly seq: number; readonly all: () => void };
  /** The last entry of the thread that {@link crowdCalls.reach} adds to. */
  last: number;
}

const crowd: Crowded[] = [];
const body = new Uint8Array(ENTRY_BYTES).fill(120);
let ids = 0;

function lookAt(crowded: Crowded, seq: number): void {
  const { awaited, reads, devices } = crowded;
  if (awaited?.seq !== seq || reads.get(seq) !== devices) return;
  delete crowded.awaited;
  awaited.all();
}

async function read(crowded: Crowded, space: Space, begun: () => void): Promise<void> {
  const { reads } = crowded;
  for await (const frame of space.read(undefined, new AbortController().signal)) {
    if (frame.is === "begins") begun();
    else if (frame.is === "entry") {
      reads.set(frame.seq, (reads.get(frame.seq) ?? 0) + 1);
      lookAt(crowded, frame.seq);
    }
  }
}

/** One entry, until all devices of its space have read it. In ms. */
async function reach(crowded: Crowded): Promise<number> {
  const { writer } = crowded;
  const since = performance.now();
  crowded.last = await added(writer.add("reached", body, { last: crowded.last, id: `${ids++}` }));
  await new Promise<void>((resolve) => {
    crowded.awaited = { seq: crowded.last, all: resolve };
    // They may have been faster than the acknowledgement.
    lookAt(crowded, crowded.last);
  });
  return performance.now() - since;
}

/** Many devices in one process. Times in ms. */
export const crowdCalls = {
  /** Makes spaces, one after the other; how long each took. */
  async openSpaces(servers: readonly string[], count: number): Promise<number[]> {
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      const since = performance.now();
      const writer = openSpace(servers, `crowd_${i}`, REPLICAS);
      await online(writer);
      times.push(performance.now() - since);
      crowd.push({ writer, devices: 0, reads: new Map(), last: 0 });
    }
    return times;
  },

  /** All devices connect at once; until the last one reads. */
  async joinAll(servers: readonly string[], perSpace: number): Promise<number> {
    const since = performance.now();
    const joined = crowd.flatMap((crowded, i) =>
      Array.from({ length: perSpace }, () => {
        crowded.devices++;
        const space = openSpace(servers, `crowd_${i}`);
        return new Promise<void>((resolve, reject) => void read(crowded, space, resolve).catch(reject));
      }),
    );
    await Promise.all(joined);
    return performance.now() - since;
  },

  /** An entry in each space, one space after the other. */
  async reachInTurn(): Promise<number[]> {
    const times: number[] = [];
    for (const crowded of crowd) times.push(await reach(crowded));
    return times;
  },

  /** An entry in each space, all at once. */
  reachAtOnce: (): Promise<number[]> => Promise.all(crowd.map(reach)),

  /** Writers with a thread each, in a space each where there are as many; until all their entries are acknowledged. */
  async write(writers: number, entriesEach: number): Promise<number> {
    const since = performance.now();
    const round = ids++;
    const write = async (_: unknown, i: number): Promise<void> => {
      const { writer } = crowd[i % crowd.length]!;
      let last = 0;
      for (let n = 0; n < entriesEach; n++) {
        last = await added(writer.add(`writer-${round}-${i}`, body, { last, id: `${n}` }));
      }
    };
    await Promise.all(Array.from({ length: writers }, write));
    return performance.now() - since;
  },
};
