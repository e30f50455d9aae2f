import type { CheckpointName } from "./config.js";

/** How many checkpoints a saver remembers: graphs go on from the last ones. */
const MOST = 1_000;

/** The checkpoints that a saver has put: one that is gone was deleted since. */
export class PutBefore {
  readonly #keys = new Set<string>();

  add(name: CheckpointName): void {
    const key = keyOf(name);
    this.#keys.delete(key);
    this.#keys.add(key);
    const [oldest] = this.#keys;
    if (this.#keys.size > MOST) this.#keys.delete(oldest!);
  }

  has(name: CheckpointName): boolean {
    return this.#keys.has(keyOf(name));
  }
}

const keyOf = ({ threadId, ns, id }: CheckpointName): string => JSON.stringify([threadId, ns, id]);
