import { deleteDB, openDB } from "idb";
import { expect, onTestFinished, vi } from "vitest";
import { cdp } from "vitest/browser";

const { origin } = location;

/** More than a small disk holds. Random, since browsers may store text compressed. */
export const LARGE = Array.from({ length: 500_000 }, () => Math.random().toString(36).slice(2, 10).padEnd(8, "x")).join(
  "",
);

/** Until the test ends or `free` is called, little can be stored, and nothing of the size of {@link LARGE}. */
export async function smallDisk(): Promise<{ free: () => Promise<void> }> {
  const free = () => setQuota();
  onTestFinished(free);
  // Where something was written before (by the test file that this page ran last, say), Chromium remembers for half a
  // minute how much space there was then, and lets small writes pass. That there is more again it finds out at once.
  await setQuota(1);
  await vi.waitFor(async () => expect(await isRefused("x")).toBe(true), { timeout: 120_000, interval: 500 });
  // What other tests have deleted still counts until Chromium tidies up.
  const { usage = 0 } = await navigator.storage.estimate();
  await setQuota(usage + 3_000_000);
  await vi.waitFor(async () => expect(await isRefused("x")).toBe(false), { timeout: 120_000, interval: 500 });
  return { free };
}

/** @param quotaSize in bytes; absent: that of the disk */
async function setQuota(quotaSize?: number): Promise<void> {
  await cdp().send("Storage.overrideQuotaForOrigin", { origin, ...(quotaSize !== undefined && { quotaSize }) });
}

async function isRefused(value: string): Promise<boolean> {
  const name = `small-disk-${crypto.randomUUID()}`;
  const put = async (): Promise<void> => {
    const db = await openDB(name, 1, { upgrade: (made) => void made.createObjectStore("rows") });
    await db.put("rows", value, 1).finally(() => db.close());
  };
  const refused = await put().then(
    () => false,
    (error: unknown) => error instanceof DOMException && error.name === "QuotaExceededError",
  );
  await deleteDB(name);
  return refused;
}
