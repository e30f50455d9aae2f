import type { Subscription } from "rxjs";
import { Bell, ringOrSilence } from "../platform/bell.js";
import { defined } from "../platform/defined.js";
import type { Lazy } from "../platform/lazy.js";
import { messageOf, RunnerError } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import type { Encryption } from "../storage/encryption/encryption.js";
import type { RunRow } from "../storage/rows.js";
import type { SyncState } from "../wire/shapes.js";
import { MemorySyncDatabase, type SyncRecords } from "./memory-sync-database.js";
import type { NatsSpaceOptions } from "./nats/options.js";
import type { SyncOptions } from "./options.js";
import type { Space } from "./space.js";
import { SyncDatabase } from "./sync-database.js";
import { Sync } from "./sync.js";
import type { ServerParts } from "./sync-host.js";
import { keyOfThread } from "./thread-key.js";

const unread = (message: string): SyncState => ({ is: "offline", message, isCurrent: false, devices: [] });
const LOCKED = unread("The database is locked: its threads are in step again once somebody unlocks it");

/** Backoff between looks at a database that cannot be read: first and longest wait, in ms. */
const LOOK_MS = 1_000;
const LOOK_MAX_MS = 15_000;

const refused = (message: string): SyncState => ({ is: "refused", message, isCurrent: false, devices: [] });
const UNSAVED = refused("This browser stores nothing for the page: the threads of other devices are not shown");

/** What is needed beside the runner, and what the app has asked for. */
export interface SyncStart {
  /** Told the status, and each change of it. */
  readonly tell: (status: SyncState) => void;
  /** That of the runner; of a server, that of its space. */
  readonly encryption?: Lazy<Encryption> | undefined;
  /** How many threads stay on this device. Default: all that came. */
  readonly maxThreads?: number | undefined;
  /** How NATS is connected to. Default: by WebSocket. */
  readonly connect?: NatsSpaceOptions["connect"];
  /** Where this host executes what the devices of the space ask for. */
  readonly server?: ServerParts | undefined;
}

/**
 * Keeps the runner's log in step with those of other devices, until the runner is closed: an encrypted one while it is
 * unlocked.
 *
 * Resolves when it has ended. Errors: RunnerError, why it cannot be in step
 */
export async function startSync(runner: LocalAgentRunner, options: SyncOptions, start: SyncStart): Promise<void> {
  const { tell, encryption } = start;
  // What it removes for lack of room would be deleted on all devices.
  if (runner.durability === "memory" && start.server === undefined) return tell(UNSAVED);
  const { closedSignal: closed } = runner;
  const moved = new Bell();
  let now: Sync | undefined;
  let hearing: Subscription | undefined;
  const deletions = runner.deleted$.subscribe(() => now?.logLost());
  let lookAgainMs = LOOK_MS;
  try {
    while (!closed.aborted) {
      let seen = moved.count;
      let failed: string;
      try {
        const given = await encryption?.get();
        hearing ??= given?.unlocked$.subscribe(() => moved.ring());
        seen = moved.count;
        const state = await stateOf(runner);
        if (state === "unlocked") {
          now = await syncOf(runner, options, start, given, () => moved.ring());
          lookAgainMs = LOOK_MS;
          now.status$.subscribe(tell);
          await moved.wait(seen, closed);
          await now.close();
          now = undefined;
          continue;
        }
        if (state === "locked") {
          tell(LOCKED);
          await moved.wait(seen, closed);
          continue;
        }
        failed = `The database cannot be read now: ${state.failed}`;
      } catch (error) {
        failed = messageOf(error);
        // No other try makes them valid.
        if (RunnerError.is(error, "invalid-input")) {
          tell(refused(failed));
          throw error;
        }
      }
      tell(unread(failed));
      await ringOrSilence(moved, seen, runner.waiting.clock, lookAgainMs, closed);
      lookAgainMs = Math.min(2 * lookAgainMs, LOOK_MAX_MS);
    }
  } finally {
    deletions.unsubscribe();
    hearing?.unsubscribe();
    if (typeof options.space === "object") await options.space.close();
  }
}

/** `unlocked`: nothing is encrypted, or its key is here. `failed`: why that cannot be told now. */
async function stateOf(runner: LocalAgentRunner): Promise<"unlocked" | "locked" | { readonly failed: string }> {
  try {
    const state = await runner.lockState();
    return state === undefined || state === "unlocked" ? "unlocked" : "locked";
  } catch (error) {
    return RunnerError.is(error, "wrong-key") ? "locked" : { failed: messageOf(error) };
  }
}

async function syncOf(
  runner: LocalAgentRunner,
  options: SyncOptions,
  { server, connect, maxThreads }: SyncStart,
  encryption: Encryption | undefined,
  renewed: () => void,
): Promise<Sync> {
  const { space, device = deviceName(), keep } = options;
  const sealing = encryption && (await loaded(import("./sealed/sealed-space.js")));
  // Nothing fails once it is made.
  const below = await spaceOf(options, connect, server !== undefined);
  // A server goes on with what another one was asked for, and began while this one was there.
  const takesOver = ({ device: its, asker }: Pick<RunRow, "device" | "asker">): boolean =>
    its !== undefined && asker !== undefined && sync.hasLeft(its.id);
  const { parts, elsewhere, listChanged } = runner.joinDevices(server && takesOver);
  const { dbName, clock, logger, makeId, store } = parts;
  const database: SyncRecords =
    runner.durability === "memory" ? new MemorySyncDatabase() : new SyncDatabase(dbName, clock, store.codec);
  const sealed =
    encryption &&
    sealing &&
    new sealing.SealedSpace({
      space: below,
      name: typeof space === "string" ? space : "",
      encryption,
      store: database,
      keyMark: async () => store.keyMark?.(),
      logger,
      makeId,
    });
  const sync: Sync = new Sync({
    space: sealed ?? below,
    keyOf: sealed?.keyOf ?? keyOfThread,
    parts,
    elsewhere,
    database,
    deviceName: device,
    keep,
    maxThreads,
    listChanged,
    renewed,
    stop: (call) => void runner.stop(call).catch(() => undefined),
    ...(server !== undefined && { server }),
  });
  return sync;
}

async function spaceOf(
  { space, servers = [], credentials, replicas }: SyncOptions,
  connect: SyncStart["connect"],
  isServer: boolean,
): Promise<Space> {
  if (typeof space === "function") return space();
  if (typeof space !== "string") return keptOpen(space);
  const { natsSpaceOf } = await loaded(import("./nats/nats-space.js"));
  return natsSpaceOf({ servers, space, ...defined({ credentials, replicas, connect }) }, { isServer });
}

/** A space of the app's: it is used again when the database is unlocked, or the device has taken another id. */
const keptOpen = (space: Space): Space => ({
  state$: space.state$,
  told$: space.told$,
  read: (...of) => space.read(...of),
  lasts: (...of) => space.lasts(...of),
  entries: (...of) => space.entries(...of),
  add: (...of) => space.add(...of),
  remove: async (...of) => (await space.remove?.(...of)) ?? false,
  tell: (body) => space.tell(body),
  close: async () => undefined,
});

/** The browser and its system, as far as the browser tells: "Chrome on Windows". */
function deviceName(): string {
  const { userAgentData, userAgent = "" } = (globalThis.navigator ?? {}) as Partial<Navigator> & {
    readonly userAgentData?: { readonly brands: readonly { readonly brand: string }[]; readonly platform: string };
  };
  const brand = userAgentData?.brands.find((one) => !/not.?a.?brand|chromium/i.test(one.brand))?.brand;
  const browser = brand ?? (/Firefox|Edg|Chrome|Safari/.exec(userAgent)?.[0] || "A device");
  const system = userAgentData?.platform || /Windows|Android|iPhone|iPad|Mac|Linux/.exec(userAgent)?.[0];
  return system === undefined ? browser : `${browser} on ${system}`;
}
