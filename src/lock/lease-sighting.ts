import { isSameLease, type Lease } from "../storage/indexeddb/leases.js";

/** A holder that has not raised its lease for so many of a contender's ticks has lost it to whoever asks next. */
const STALE_TICKS = 6;

/** A lease of somebody else, as a contender has seen it stand unchanged. */
export interface Sighting {
  readonly lease: Lease;
  /** For how many of the contender's own ticks. Its clock is compared with nobody's. */
  readonly ticks: number;
}

/**
 * What is known of a lease after another look, one tick later.
 *
 * @param late the contender slept before this tick, as its holder may have: it counts for nothing
 * @returns undefined where it was raised, released or taken: its holder lives, and nothing is known against it
 */
export function lookedAgain(seen: Sighting, now: Lease | undefined, late: boolean): Sighting | undefined {
  if (now === undefined || !isSameLease(seen.lease, now)) return undefined;
  return late ? seen : { lease: seen.lease, ticks: seen.ticks + 1 };
}

/** The lease that may be taken over, if it still stands as it was seen. */
export function mayTake(seen: Sighting | undefined): Lease | undefined {
  return seen !== undefined && seen.ticks >= STALE_TICKS ? seen.lease : undefined;
}
