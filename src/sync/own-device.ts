import type { HeldLock } from "../platform/locks.js";
import { hostLifeLockName, syncLockName } from "../platform/names.js";
import type { SyncHost } from "./sync-host.js";

/** Pause after a failure that nobody expected, in ms. */
const RETRY_MS = 1_000;

/** Which device this is, and that no other host of its database keeps it in step. */
export class OwnDevice {
  private readonly held: HeldLock[] = [];
  /** It has another id, or is about to. */
  private isRenewed = false;

  constructor(private readonly of: Pick<SyncHost, "database" | "parts" | "renewed" | "closed">) {}

  /**
   * One host of the database: the others wait for its end. The life lock makes others take what it writes down for live.
   *
   * @returns false where this host has ended first
   */
  async hold(): Promise<boolean> {
    const { parts, closed } = this.of;
    const { dbName, hostId, locks, clock } = parts;
    for (const name of [syncLockName(dbName), hostLifeLockName(dbName, hostId)]) {
      const holding = locks.hold(name);
      const lock = await Promise.race([holding, clock.after(Infinity, closed).then(() => undefined)]);
      if (lock === undefined) {
        void holding.then((late) => late.release()).catch(() => undefined);
        return false;
      }
      this.held.push(lock);
    }
    return true;
  }

  /** Another host may keep it in step. */
  async release(): Promise<void> {
    for (const lock of this.held.splice(0)) await lock.release();
  }

  /** Its id: what fails is tried again, as everything later is. @returns undefined where this host has ended first */
  async id(): Promise<string | undefined> {
    const { database, parts, closed } = this.of;
    while (!closed.aborted) {
      try {
        await database.prepare();
        return await database.device(parts.makeId());
      } catch (error) {
        parts.logger.warn(`Devices are not in step: ${String(error)}`);
        await parts.clock.after(RETRY_MS, closed);
      }
    }
    return undefined;
  }

  /** Another device has this one's id, and its claims and runs were taken for those of this one. */
  async renew(): Promise<void> {
    const { database, parts, renewed } = this.of;
    // Without Web Locks it may be another host of this very database.
    if (this.isRenewed || parts.locks.contextOnly === true) return;
    this.isRenewed = true;
    parts.logger.warn("Another device has the id of this one, as a copy of its profile has: this one takes a new id");
    try {
      await database.set("device", parts.makeId());
      renewed?.();
    } catch (error) {
      // It is tried again when the other one is heard next.
      this.isRenewed = false;
      parts.logger.warn(`The id of this device stays: ${String(error)}`);
    }
  }
}
