/** An entry of a stream: id `n`, counted from 1, and one field. */
export interface StreamEntry {
  readonly id: number;
  readonly value: string;
}

interface Expiring {
  readonly value: string;
  readonly timer?: ReturnType<typeof setInterval>;
}

const TICK_MS = 20;

/** A turn of the event loop: what a round trip to a server costs at least. */
const roundTrip = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The few commands of Redis that a runner needs, in this process. Each command is one step, as there. */
export class FakeRedis {
  private readonly strings = new Map<string, Expiring>();
  private readonly lists = new Map<string, string[]>();
  private readonly streams = new Map<string, StreamEntry[]>();
  private readonly waiting = new Map<string, Set<() => void>>();
  private readonly channels = new Map<string, Set<(message: string) => void>>();

  /** SET key value [NX] [PX ms]. @returns false where NX and the key is there */
  async set(key: string, value: string, { nx = false, px }: { nx?: boolean; px?: number } = {}): Promise<boolean> {
    await roundTrip();
    if (nx && this.strings.has(key)) return false;
    this.put(key, value, px);
    return true;
  }

  async get(key: string): Promise<string | undefined> {
    await roundTrip();
    return this.strings.get(key)?.value;
  }

  async lpush(key: string, value: string): Promise<void> {
    await roundTrip();
    this.lists.set(key, [value, ...(this.lists.get(key) ?? [])]);
  }

  async lrange(key: string): Promise<readonly string[]> {
    await roundTrip();
    return [...(this.lists.get(key) ?? [])];
  }

  async xrange(key: string, after = 0): Promise<readonly StreamEntry[]> {
    await roundTrip();
    return (this.streams.get(key) ?? []).slice(after);
  }

  /** XREAD BLOCK ms: what comes after `after`; empty when nothing came in that time. */
  async xread(key: string, after: number, blockMs: number): Promise<readonly StreamEntry[]> {
    const found = await this.xrange(key, after);
    if (found.length > 0) return found;
    const waiting = this.waiting.get(key) ?? new Set();
    this.waiting.set(key, waiting);
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, blockMs);
      waiting.add(wake);
    });
    return this.xrange(key, after);
  }

  async publish(channel: string, message: string): Promise<void> {
    await roundTrip();
    for (const hear of this.channels.get(channel) ?? []) hear(message);
  }

  /** @returns ends the subscription */
  subscribe(channel: string, hear: (message: string) => void): () => void {
    const hearers = this.channels.get(channel) ?? new Set();
    this.channels.set(channel, hearers.add(hear));
    return () => hearers.delete(hear);
  }

  /**
   * What a Lua script of a few lines does in one step: where `key` holds `value`, appends to a stream, and then lets the
   * key go or lengthens its life. @returns false where it does not hold it
   */
  async whileHeld(
    key: string,
    value: string,
    then: { readonly xadd?: { readonly key: string; readonly values: readonly string[] }; readonly px?: number },
  ): Promise<boolean> {
    await roundTrip();
    if (this.strings.get(key)?.value !== value) return false;
    if (then.px === undefined) this.drop(key);
    else this.put(key, value, then.px);
    if (then.xadd !== undefined) this.append(then.xadd.key, then.xadd.values);
    return true;
  }

  private append(key: string, values: readonly string[]): void {
    const stream = this.streams.get(key) ?? [];
    this.streams.set(key, stream);
    for (const value of values) stream.push({ id: stream.length + 1, value });
    for (const wake of this.waiting.get(key) ?? []) wake();
  }

  private put(key: string, value: string, px: number | undefined): void {
    this.drop(key);
    // In ticks: a server's clock goes on when this process is held up, but so do the commands that would reach it.
    let ticks = Math.ceil((px ?? 0) / TICK_MS);
    const timer = px === undefined ? undefined : setInterval(() => --ticks <= 0 && this.drop(key), TICK_MS);
    this.strings.set(key, { value, ...(timer !== undefined && { timer }) });
  }

  private drop(key: string): void {
    clearInterval(this.strings.get(key)?.timer);
    this.strings.delete(key);
  }
}
