import { jetstreamManager, type JetStreamManager } from "@nats-io/jetstream";
import type { ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { filter, firstValueFrom } from "rxjs";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { natsSpace, type NatsSpaceOptions } from "../../src/sync/nats/nats-space.js";
import {
  SpaceOffline,
  type Space,
  type SpaceEntry,
  type SpaceFrame,
  type SpacePlace,
  type SpaceState,
  type NewPlace,
} from "../../src/sync/space.js";
import { startNats, type NatsServers } from "../setup/nats.mjs";

export type Begins = Extract<SpaceFrame, { is: "begins" }>;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
export const bytes = (text: string): Uint8Array => encoder.encode(text);
export const text = (body: Uint8Array): string => decoder.decode(body);

/** Servers of one test. */
export async function ownServers(options?: Parameters<typeof startNats>[0]): Promise<NatsServers> {
  const servers = await startNats(options);
  // After the spaces that are opened later are closed: hooks run in reverse.
  onTestFinished(() => servers.stop());
  return servers;
}

/** Bytes that differ from place to place. */
export function large(size: number, seed: number): Uint8Array {
  const body = new Uint8Array(size);
  let state = seed;
  for (let at = 0; at < size; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    body[at] = state >>> 24;
  }
  return body;
}

/** Servers are slow, and so may this machine be: a condition is waited for as long as it takes. */
export const eventually = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 60_000, interval: 20 });

/** Whether a text is in a file of the folder, in UTF-8 or UTF-16. */
export function isInFiles(folder: string, planted: string): boolean {
  const forms = [Buffer.from(planted, "utf8"), Buffer.from(planted, "utf16le")];
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.some(({ parentPath, name }) => {
    const content = readFileSync(join(parentPath, name));
    return name.includes(planted) || forms.some((form) => content.includes(form));
  });
}

let spaces = 0;
/** A space that no other test uses. */
export const freshName = (): string => `test_${process.pid}_${++spaces}`;

export const streamOf = (space: string): string => `AGUI_${space}`;

/** A device's way to the space, closed with the test. */
export function openSpace(
  { urls }: Pick<NatsServers, "urls">,
  options: Partial<NatsSpaceOptions> & { space: string },
): Space {
  const space = natsSpace({ servers: urls, connect, ...options });
  onTestFinished(() => space.close());
  return space;
}

export const until = (space: Space, is: SpaceState["is"]): Promise<SpaceState> =>
  firstValueFrom(space.state$.pipe(filter((state) => state.is === is)));

/** Reads in the background, to the end of the test. */
export class Reader {
  readonly frames: SpaceFrame[] = [];
  private readonly ended = new AbortController();
  readonly done: Promise<void>;

  constructor(space: Space, after?: SpacePlace) {
    this.done = (async () => {
      for await (const frame of space.read(after, this.ended.signal)) this.frames.push(frame);
    })();
    onTestFinished(() => this.stop());
  }

  get entries(): readonly SpaceEntry[] {
    return this.frames.filter((frame) => frame.is === "entry");
  }

  get begins(): readonly Begins[] {
    return this.frames.filter((frame) => frame.is === "begins");
  }

  get texts(): readonly string[] {
    return this.entries.map(({ body }) => text(body));
  }

  async stop(): Promise<void> {
    this.ended.abort();
    await this.done;
  }
}

/** Adds as a device does: what ended without an answer is repeated once there is a connection. Counts no time. */
export async function addSurely(
  space: Space,
  thread: string,
  body: Uint8Array,
  at: NewPlace,
): Promise<number | undefined> {
  for (;;) {
    await until(space, "online");
    try {
      return await space.add(thread, body, at);
    } catch (error) {
      if (!(error instanceof SpaceOffline)) throw error;
    }
  }
}

/** The servers' own view, by a connection of its own. */
export async function managerOf({ urls }: Pick<NatsServers, "urls">): Promise<JetStreamManager> {
  const nc = await connect({ servers: [...urls] });
  onTestFinished(() => nc.close());
  return jetstreamManager(nc, { checkAPI: false });
}

/** Whether servers of this version do nothing else when they remove entries: devices let others alone. */
export async function canRemove({ urls }: Pick<NatsServers, "urls">): Promise<boolean> {
  const nc = await connect({ servers: [...urls] });
  onTestFinished(() => nc.close());
  return !/^2\.\d\./.test(nc.info?.version ?? "");
}

/** What old servers do wrong when they start, or to readers that are behind, does not matter here. */
export async function asNewer(options: ConnectionOptions): Promise<NatsConnection> {
  const nc = await connect(options);
  if (nc.info !== undefined) nc.info.version = "2.10.0";
  return nc;
}

/** A connection whose publishes into the log pass through `before` and `after`; either may cut it. */
export function faulty(faults: {
  readonly before?: (nth: number, cut: () => Promise<void>) => Promise<void>;
  readonly after?: (nth: number, cut: () => Promise<void>) => Promise<void>;
}): (options: ConnectionOptions) => Promise<NatsConnection> {
  let count = 0;
  return async (options) => {
    const nc = await connect(options);
    const request = nc.request.bind(nc);
    const cut = (): Promise<void> => nc.close();
    nc.request = async (subject, ...rest) => {
      if (!subject.startsWith("agui.")) return request(subject, ...rest);
      const nth = ++count;
      await faults.before?.(nth, cut);
      const answer = await request(subject, ...rest);
      await faults.after?.(nth, cut);
      if (nc.isClosed()) throw Object.assign(new Error("no answer"), { name: "TimeoutError" });
      return answer;
    };
    return nc;
  };
}

/** A connection that calls `count` before each request whose subject has `part` in it. */
export function counting(part: string, count: () => void): (options: ConnectionOptions) => Promise<NatsConnection> {
  return async (options) => {
    const nc = await connect(options);
    const request = nc.request.bind(nc);
    nc.request = (subject, ...rest) => {
      if (subject.includes(part)) count();
      return request(subject, ...rest);
    };
    return nc;
  };
}

/**
 * Consumers of this connection get nothing, while their server says that it is there: one that was killed may do so.
 *
 * @param isDeaf whether the consumer that is made now is one of them
 */
export function deafen(nc: NatsConnection, isDeaf: () => boolean): void {
  const subscribe = nc.subscribe.bind(nc);
  nc.subscribe = (subject, given = {}) => {
    const { callback } = given;
    const isConsumer = subject.startsWith("_INBOX_") && !subject.endsWith("*") && isDeaf();
    if (!isConsumer || callback === undefined) return subscribe(subject, given);
    const heard: typeof callback = (error, msg) => (msg.subject === subject ? callback(error, msg) : undefined);
    return subscribe(subject, { ...given, callback: heard });
  };
}

/**
 * A space of a cluster, created by one device: of several that create it at once each may make it another log (nats-server
 * pull requests 3679 and 8449).
 */
export async function createdSpace(servers: NatsServers): Promise<string> {
  const space = freshName();
  await until(openSpace(servers, { space, replicas: 3 }), "online");
  return space;
}
