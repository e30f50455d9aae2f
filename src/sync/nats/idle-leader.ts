import type { Clock } from "../../platform/clock.js";

/** How long nobody may take an entry while one leader leads, in ms: an election takes up to 9 s. */
const IDLE_MS = 10_000;
/** What failed as long ago says nothing of now, in ms: whoever has something to send tries again within half a minute. */
const PAST_MS = 60_000;
/** Not all devices ask at once: within so many ms. */
const SPREAD_MS = 5_000;

/** A replicated stream. */
export interface LedStream {
  /** Aborts when the connection has ended. */
  readonly signal: AbortSignal;
  /** The name of the server that leads it; undefined: none. Errors: nobody answers */
  leader(): Promise<string | undefined>;
  /** Another server is to lead it. Errors: nobody answers */
  stepDown(): Promise<void>;
}

/**
 * Finds a leader that leads and takes nothing, and has another one elected. With 2.9.10, where a stream was made anew, its leader
 * killed under load and started again before the others have elected one, every second time nobody takes what is published, for
 * ever, while all servers say that they are well.
 */
export class IdleLeader {
  private idle: { readonly leader: string; readonly since: number; last: number } | undefined;

  constructor(private readonly clock: Pick<Clock, "after" | "elapsed">) {}

  /** An entry was taken. */
  taken(): void {
    this.idle = undefined;
  }

  /** Nobody was there to take one. Errors: nobody answers */
  async notTaken(stream: LedStream): Promise<void> {
    const leader = await stream.leader();
    if (leader === undefined) return this.taken();
    const now = this.clock.elapsed();
    const before = this.idle;
    const isOn = before !== undefined && before.leader === leader && now - before.last < PAST_MS;
    const idle = isOn ? before : { leader, since: now, last: now };
    idle.last = now;
    this.idle = idle;
    if (now - idle.since < IDLE_MS) return;
    await this.clock.after(Math.random() * SPREAD_MS, stream.signal);
    if (this.idle !== idle) return;
    const leads = await stream.leader();
    // Something was taken meanwhile, or another entry was not, and it was asked for that.
    if (leads !== leader || this.idle !== idle) return;
    this.taken();
    await stream.stepDown();
  }
}
