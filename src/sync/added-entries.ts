/** What this device has added to a thread, until it is read. */
export class AddedEntries {
  private readonly bodies = new Map<number, Uint8Array>();
  /** The seq of the last entry that was read. */
  private last = 0;

  get areRead(): boolean {
    return this.bodies.size === 0;
  }

  add(seq: number, body: Uint8Array): void {
    if (seq > this.last) this.bodies.set(seq, body);
  }

  /**
   * The entry at `seq` was read.
   *
   * @returns false where the space lacks something that was added to it, or has something else there
   */
  read(seq: number, body: Uint8Array): boolean {
    const isLost = [...this.bodies].some(([at, its]) => at < seq || (at === seq && !areEqual(its, body)));
    this.forget(seq);
    this.last = seq;
    return !isLost;
  }

  /** They are there, or are found out about otherwise. */
  forget(upTo: number): void {
    for (const seq of this.bodies.keys()) if (seq <= upTo) this.bodies.delete(seq);
  }
}

export const areEqual = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, at) => byte === other[at]);
