import type { SpacePlace } from "./space.js";
import type { Known, SyncDatabase, ThreadRecord } from "./sync-database.js";

/** What a device remembers of the space. */
export type SyncRecords = Pick<SyncDatabase, keyof SyncDatabase>;

/** Beside a log in memory: a host that starts anew is another device, which gets everything. */
export class MemorySyncDatabase implements SyncRecords {
  private known: { readonly [Key in keyof Known]?: Known[Key] | undefined } = {};
  private readonly threads = new Map<string, ThreadRecord>();

  private spaceKeys: unknown;

  async prepare(): Promise<void> {
    // Everything in it is of now.
  }

  async keys(): Promise<unknown> {
    return this.spaceKeys;
  }

  async setKeys(keys: unknown): Promise<void> {
    this.spaceKeys = keys;
  }

  async device(made: string): Promise<string> {
    const { device = made } = this.known;
    await this.set("device", device);
    return device;
  }

  async get<Key extends keyof Known>(key: Key): Promise<Known[Key] | undefined> {
    return this.known[key];
  }

  async set<Key extends keyof Known>(key: Key, value: Known[Key] | undefined): Promise<void> {
    this.known = { ...this.known, [key]: value };
  }

  async thread(key: string): Promise<ThreadRecord | undefined> {
    return this.threads.get(key);
  }

  async heldBy(deviceId: string): Promise<readonly string[]> {
    const held = [...this.threads.values()].filter(({ state }) => state.lock?.device.id === deviceId);
    return held.map(({ threadId }) => threadId);
  }

  async put(threads: readonly ThreadRecord[], place?: SpacePlace): Promise<void> {
    for (const thread of threads) this.threads.set(thread.key, thread);
    if (place !== undefined) await this.set("place", place);
  }

  async forget(revives: boolean): Promise<void> {
    const { device, revives: before } = this.known;
    this.known = { device, revives: revives ? "" : before };
    this.threads.clear();
  }

  async close(): Promise<void> {
    this.threads.clear();
  }
}
