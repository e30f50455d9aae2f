import { DEFAULT_DB_NAME } from "../../platform/names.js";
import { loaded } from "../../run/loaded.js";
import type { PayloadCodec } from "../codec.js";
import type { OnOpened } from "../encryption/key-ring.js";
import type { EncryptionOption } from "../encryption-option.js";
import type { DeviceStore } from "../devices.js";
import type { RunStore } from "../run-store.js";
import type { WaitingStore } from "../waiting.js";
import { indexedDBChunks } from "./chunk-reads.js";
import { DatabaseConnection, type ConnectionOptions } from "./database-connection.js";
import { indexedDBForeignEnds } from "./foreign-end.js";
import { sweep } from "./garbage.js";
import { refuseLocked } from "./keyless.js";
import { indexedDBReads } from "./reads.js";
import { KEYS, PAYLOADS, runtimeLayout, type RuntimeSchema } from "./schema.js";
import { storedBy, type StoredBy } from "./stored-by.js";
import { indexedDBThreads } from "./threads.js";
import { indexedDBWrites } from "./writes.js";

export interface IndexedDBRunStoreOptions extends Partial<Omit<ConnectionOptions<RuntimeSchema>, "layout">> {
  readonly encryption?: EncryptionOption | undefined;
  /** Called whenever keys were unlocked: there may be something for `encryptRest`. */
  readonly onKeys?: OnOpened | undefined;
  /** In place of `encryption`, for tests. */
  readonly codec?: PayloadCodec;
  /** The epochs of a new database start above it. Default 0; see {@link epochBefore}. */
  readonly newEpochs?: () => number;
}

type LazyWaiting = Omit<WaitingStore, "waitingThreads" | "clearWaiting">;

/** @param load called at each use */
const lazyWaiting = (load: () => Promise<LazyWaiting>): LazyWaiting => ({
  addWaiting: async (...args) => (await load()).addWaiting(...args),
  waitingRuns: async (...args) => (await load()).waitingRuns(...args),
  isWaiting: async (...args) => (await load()).isWaiting(...args),
  moveWaiting: async (...args) => (await load()).moveWaiting(...args),
  removeWaiting: async (...args) => (await load()).removeWaiting(...args),
  endRecovery: async (...args) => (await load()).endRecovery(...args),
  updateWaiting: async (...args) => (await load()).updateWaiting(...args),
});

/** @param load called at each use */
const lazyDevices = (load: () => Promise<DeviceStore>): DeviceStore => ({
  runNamed: async (...args) => (await load()).runNamed(...args),
  reopen: async (...args) => (await load()).reopen(...args),
  placeRun: async (...args) => (await load()).placeRun(...args),
  activate: async (...args) => (await load()).activate(...args),
  listAbsent: async (...args) => (await load()).listAbsent?.(...args),
  leave: async (...args) => (await (await load()).leave?.(...args)) ?? false,
  absent: async () => (await (await load()).absent?.()) ?? [],
  arrived: async (...args) => (await load()).arrived?.(...args),
});

/**
 * The log in IndexedDB. Opened at the first use. What deletes, repacks or reads pages is loaded when it is needed; what starts,
 * writes and ends runs is not: a host must be able to end them at any moment. Errors: those of storage in RunnerErrorCode.
 */
export function indexedDBRunStore(options: IndexedDBRunStoreOptions = {}): RunStore {
  const { dbName = DEFAULT_DB_NAME, encryption, newEpochs = () => 0 } = options;
  const connection = new DatabaseConnection({
    ...options,
    dbName,
    layout: runtimeLayout(newEpochs),
    onGone: (deleted) => {
      stored.gone();
      options.onGone?.(deleted);
    },
  });
  const stored: StoredBy = storedBy(encryption, {
    connection,
    keysAt: KEYS,
    content: PAYLOADS,
    onKeys: options.onKeys,
  });
  const { codec = stored.codec } = options;
  return {
    ...indexedDBReads(connection, codec),
    ...indexedDBThreads(connection, codec),
    ...indexedDBWrites(connection, codec),
    ...indexedDBForeignEnds(connection, codec),
    chunks: indexedDBChunks(connection, codec),
    messagePage: async (...place) =>
      (await loaded(import("./message-pages.js"))).indexedDBMessagePages(connection, codec)(...place),
    ...lazyWaiting(async () => (await loaded(import("./waiting.js"))).indexedDBWaiting(connection, codec)),
    ...lazyDevices(async () => {
      const [{ indexedDBDevices }, { indexedDBAbsent }] = await Promise.all([
        loaded(import("./devices.js")),
        loaded(import("./absent.js")),
      ]);
      return { ...indexedDBDevices(connection, codec), ...indexedDBAbsent(connection, codec) };
    }),
    deleteThread: async (...of) => (await loaded(import("./deletion.js"))).deleteThread(connection, ...of),
    cut: async (...at) => (await loaded(import("./deletion.js"))).cut(connection, codec, ...at),
    repack: async (...run) => (await loaded(import("./repack.js"))).repack(connection, codec, ...run),
    sweep: () => sweep(connection),
    codec,
    readable: () => refuseLocked(connection, codec, KEYS),
    lockState: () => stored.lockState(),
    locks: async () => (await stored.ring?.get())?.locks() ?? 0,
    keyMark: async () => (await stored.ring?.get())?.keyMark(),
    encryptRest: async (signal) => {
      if (stored.ring === undefined) return false;
      const { encryptRest } = await loaded(import("./encrypt-rest.js"));
      return encryptRest(connection, await stored.ring.get(), signal);
    },
    close: () => {
      stored.close();
      return connection.close();
    },
  };
}
