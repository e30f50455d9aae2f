/** How much this site stores in the browser, in bytes, and whether the browser may delete it to make room. */
export interface StorageUse {
  readonly used: number;
  readonly most: number;
  readonly isKept: boolean;
}

/** undefined where the browser does not tell (plain http). */
export async function storageUse(): Promise<StorageUse | undefined> {
  const storage = (navigator as { storage?: StorageManager }).storage;
  if (!storage) return undefined;
  const [{ usage = 0, quota = 0 }, isKept] = await Promise.all([storage.estimate(), storage.persisted()]);
  return { used: usage, most: quota, isKept };
}

/** Asks the browser, which may ask the person, not to delete anything of this site by itself. */
export const keepStorage = (): Promise<boolean> => navigator.storage.persist();
