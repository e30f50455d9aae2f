/** Keeps the values used last, up to a number and a weight. The one set last is kept whatever it weighs. */
export class RecentlyUsed<T> {
  readonly #values = new Map<string, { value: T; weight: number }>();

  constructor(
    readonly maxEntries: number,
    readonly maxWeight: number,
  ) {}

  get(key: string): T | undefined {
    const found = this.#values.get(key);
    if (!found) return undefined;
    this.#values.delete(key);
    this.#values.set(key, found);
    return found.value;
  }

  set(key: string, value: T, weight: number): void {
    this.#values.delete(key);
    this.#values.set(key, { value, weight });
    let sum = 0;
    for (const entry of this.#values.values()) sum += entry.weight;
    for (const [oldest, entry] of this.#values) {
      if (oldest === key || (this.#values.size <= this.maxEntries && sum <= this.maxWeight)) return;
      this.#values.delete(oldest);
      sum -= entry.weight;
    }
  }
}
