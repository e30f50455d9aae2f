import type { SpacePlace } from "./space.js";
import type { Absent, SyncDatabase, ThreadRecord } from "./sync-database.js";

/** What a device remembers of the space. */
export type SyncRecords = Pick<SyncDatabase, keyof SyncDatabase>;

/** Beside a log in memory: a host that starts anew is another device, which gets everything. */
export class MemorySyncDatabase implements SyncRecords {
  private deviceId: string | undefined;
  private placed: SpacePlace | undefined;
  private isRevived = false;
  private its: Absent | undefined;
  private known: number | undefined;
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
    return (this.deviceId ??= made);
  }

  async renewDevice(id: string): Promise<void> {
    this.deviceId = id;
  }

  async place(): Promise<SpacePlace | undefined> {
    return this.placed;
  }

  async revives(): Promise<boolean> {
    return this.isRevived;
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
    this.placed = place ?? this.placed;
  }

  async absent(): Promise<Absent | undefined> {
    return this.its;
  }

  async setAbsent(absent: Absent | undefined): Promise<void> {
    this.its = absent;
  }

  async epoch(): Promise<number | undefined> {
    return this.known;
  }

  async setEpoch(epoch: number): Promise<void> {
    this.known = epoch;
  }

  async forget(revives: boolean): Promise<void> {
    this.placed = undefined;
    this.known = undefined;
    this.its = undefined;
    this.isRevived ||= revives;
    this.threads.clear();
  }

  async close(): Promise<void> {
    this.threads.clear();
  }
}
