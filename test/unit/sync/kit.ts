import type { AbstractAgent, Message } from "@ag-ui/client";
import { filter, firstValueFrom } from "rxjs";
import { expect, onTestFinished, vi } from "vitest";
import type { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { Lazy } from "../../../src/platform/lazy.js";
import { nextTask, systemClock, type Clock } from "../../../src/platform/clock.js";
import type { AtFailurePoint } from "../../../src/run/failure-points.js";
import type { Space } from "../../../src/sync/space.js";
import { decodeMessage } from "../../../src/sync/messages.js";
import { SealedSpace } from "../../../src/sync/sealed/sealed-space.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { SyncDatabase } from "../../../src/sync/sync-database.js";
import { startSync } from "../../../src/sync/start.js";
import type { SyncOptions } from "../../../src/sync/options.js";
import { Sync } from "../../../src/sync/sync.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import type { SyncState } from "../../../src/wire/shapes.js";
import {
  agentOf,
  collect,
  counter,
  freshDb,
  inputOf,
  makeRunner,
  quiet,
  rebuild,
  replay,
  user,
} from "../runner/kit.js";
import { fastKey } from "../encryption/fast-key.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";

/** Resolves when it throws no more: it is looked at again and again. */
export const eventually = (check: () => Promise<void> | void) => vi.waitFor(check, { timeout: 60_000, interval: 5 });

/** Lets other work of this process go on for some tasks. */
export async function passes(tasks: number): Promise<void> {
  for (let task = 0; task < tasks; task++) await nextTask();
}

/** A clock on which a minute can pass at once: who was not heard of since then is away. */
export function minutes(base: Clock = systemClock) {
  let ahead = 0;
  const clock: Clock = { ...base, elapsed: () => systemClock.elapsed() + ahead };
  return { clock, pass: () => void (ahead += 60_000) };
}

/** One device: a runner, kept in step. */
export interface DeviceOn<S extends Space> {
  readonly name: string;
  readonly runner: IndexedDBAgentRunner;
  readonly space: S;
  readonly sync: Sync;
  /** The log, and what is remembered of the space, as `sync` uses them. */
  readonly store: RunStore;
  readonly database: SyncDatabase;
  /** What it printed. */
  readonly said: readonly string[];
  /** Ends its live runs as stopped, and lets go. */
  readonly close: () => Promise<void>;
}

export type Device = DeviceOn<MemorySpace>;

interface DeviceOptions {
  readonly dbName?: string;
  readonly clock?: Clock;
  readonly atFailurePoint?: AtFailurePoint;
  /** Of the log. */
  readonly limits?: { readonly maxRunsPerThread: number };
  readonly encryption?: Encryption;
  readonly keep?: "all" | "opened";
  readonly maxThreads?: number;
  /** How many entries of a thread become one. */
  readonly compactFrom?: number;
  /** What the space is called, where keys are bound to it. */
  readonly spaceName?: string;
}

export function deviceOn<S extends Space>(
  space: S,
  name: string,
  { spaceName = "", keep, maxThreads, compactFrom, ...options }: DeviceOptions = {},
): DeviceOn<S> {
  const said: string[] = [];
  const log = (...what: unknown[]): void => void said.push(what.map(String).join(" "));
  const runner = makeRunner({ dbName: freshDb(), logger: { warn: log, error: log }, ...options });
  const { parts, elsewhere, listChanged } = runner.joinDevices();
  const { dbName, clock, makeId, store, logger } = parts;
  const database = new SyncDatabase(dbName, clock, store.codec);
  const { encryption } = options;
  const sealed =
    encryption &&
    new SealedSpace({
      space,
      name: spaceName,
      encryption,
      store: database,
      keyMark: async () => store.keyMark?.(),
      logger,
      makeId,
    });
  const sync = new Sync({
    listChanged,
    keep,
    maxThreads,
    compactFrom,
    space: sealed ?? space,
    keyOf: sealed?.keyOf ?? keyOfThread,
    database,
    parts,
    elsewhere,
    deviceName: name,
    stop: (call) => void runner.stop(call).catch(() => undefined),
  });
  const close = async (): Promise<void> => {
    await runner.close();
    await sync.close();
  };
  return { name, runner, space, sync, store, database, said, close };
}

export const makeDevice = (
  server: MemoryServer,
  name: string,
  { faults, ...options }: DeviceOptions & { readonly faults?: ConstructorParameters<typeof MemorySpace>[1] } = {},
): Device => deviceOn(new MemorySpace(server, faults), name, options);

/** A device that ends with the test. */
export function device(...of: Parameters<typeof makeDevice>): Device {
  const made = makeDevice(...of);
  onTestFinished(made.close);
  return made;
}

type AnyDevice = DeviceOn<Space>;

/** Resolves when the device has read everything and sent everything. */
export async function inStep(...devices: readonly AnyDevice[]): Promise<void> {
  for (const { sync } of devices) await firstValueFrom(sync.status$.pipe(filter(({ isCurrent }) => isCurrent)));
}

/** Keeps a runner in step as a runtime does. `last`: the newest status that was told. */
export function started(
  options: SyncOptions,
  { encryption, ...its }: { readonly encryption?: Encryption; readonly dbName?: string; readonly clock?: Clock } = {},
) {
  const runner = makeRunner({ dbName: freshDb(), logger: quiet, ...its, ...(encryption && { encryption }) });
  const told: SyncState[] = [];
  const over = startSync(runner, options, {
    tell: (state) => told.push(state),
    ...(encryption && { encryption: new Lazy(() => encryption) }),
  });
  onTestFinished(async () => {
    await runner.close();
    await over.catch(() => undefined);
  });
  const tells = (state: object) => eventually(() => expect(told.at(-1)).toMatchObject(state));
  return { runner, told, over, tells, isInStep: () => tells({ is: "online", isCurrent: true }) };
}

export const statusOf = ({ sync }: AnyDevice): Promise<SyncState> => firstValueFrom(sync.status$);

type Said = [device: AnyDevice, threadId: string, runId: string, agent: AbstractAgent, messages?: Message[]];

/** Runs an agent, whatever goes on in the thread. */
export const sayNow = (...[{ runner }, threadId, runId, agent, messages = [user(`${runId}-u`)]]: Said) =>
  collect(runner.run({ threadId, agent, input: inputOf(threadId, runId, messages) }));

/** Runs an agent, once the thread is not busy on this device. */
export async function say(...of: Said): ReturnType<typeof sayNow> {
  const [{ runner }, threadId] = of;
  await vi.waitFor(async () => expect(await runner.isRunning({ threadId })).toBe(false), { interval: 5 });
  return sayNow(...of);
}

/** Like {@link say}: the run is sent when it is over, as a whole. */
export async function sayOffline(
  on: Device,
  ...[threadId, runId, agent]: [threadId: string, runId: string, agent: AbstractAgent]
): Promise<void> {
  on.space.connect(false);
  await say(on, threadId, runId, agent);
  on.space.connect(true);
}

/** What a reader rebuilds of a thread. */
export const shown = async ({ runner }: AnyDevice, threadId: string) => rebuild(await replay(runner, threadId));

/** The thread's runs by their ids, whatever their indexes are here. Those of one id are told apart by what they answer. */
export async function tree({ runner, store }: AnyDevice, threadId: string): Promise<Record<string, unknown>> {
  const runs = (await runner.listRuns(threadId, { limit: 500 })).toReversed();
  const answerOf = new Map((await store.runs(threadId)).map(({ runIndex, answerId }) => [runIndex, answerId]));
  const isAlone = (id: string): boolean => runs.filter(({ runId }) => runId === id).length === 1;
  const idOf = new Map(
    runs.map(({ runIndex, runId }) => [runIndex, isAlone(runId) ? runId : `${runId} ${answerOf.get(runIndex)}`]),
  );
  const rows = runs.map(
    ({ runIndex, prevRunIndex, status }) =>
      [idOf.get(runIndex)!, { prev: idOf.get(prevRunIndex ?? -1) ?? null, status }] as const,
  );
  return Object.fromEntries(rows.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** An entry that begins the first run of a thread, but for its thread, its device and its id. */
export const BEGINS = {
  type: "run",
  prev: null,
  knew: null,
  startedAt: 1,
  fingerprint: "f",
  input: { messages: [] },
  title: "",
} as const;

/** The messages of the space, in order. */
export const types = ({ entries }: MemoryServer): string[] =>
  entries.flatMap(({ body }) => {
    const message = decodeMessage(body);
    return typeof message === "object" ? message.type : [];
  });

/** What an entry says, for whoever looks into a failure; none for one that cannot be read. */
export function lineOf({ seq, body }: MemoryServer["entries"][number]): string[] {
  const message = decodeMessage(body);
  if (typeof message !== "object") return [];
  const { type, threadId } = message;
  const of = "runId" in message ? ` ${message.runId}` : "";
  return [`${seq} ${threadId} ${message.device.name}: ${type}${of}${"knew" in message ? ` knew ${message.knew}` : ""}`];
}

export const ended = (server: MemoryServer): number => types(server).filter((type) => type === "end").length;

/** Two devices in step. */
export async function pair() {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  return { server, phone, laptop };
}

/** Two devices whose thread `t` has one run. */
export async function bothHave(runId: string) {
  const { server, phone, laptop } = await pair();
  await say(phone, "t", runId, agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  return { server, phone, laptop };
}

/** The first answer, as a reader sees it now. */
export async function textOn({ runner }: Device): Promise<unknown> {
  return (await runner.getThreadMessages("t"))[1]?.content;
}

/** An encryption of a device: all have one of their own. */
export const withKey = (key: CryptoKey | string = fastKey): { readonly encryption: Encryption } => ({
  encryption: new Encryption({ key }),
});

/** Resolves when the devices have and show the same of the thread, at its end. */
export async function same(threadId: string, ...devices: readonly Device[]): Promise<void> {
  await eventually(async () => {
    const [first, ...others] = await Promise.all(
      devices.map(async (one) => ({ tree: await tree(one, threadId), shown: await shown(one, threadId) })),
    );
    for (const other of others) expect(other).toEqual(first);
    expect(JSON.stringify(first!.tree)).not.toContain("running");
  });
}

export { MemoryServer };
