import { SpaceOffline, type Space, type SpaceEntry } from "./space.js";
import type { RunnerParts } from "../runner/parts.js";

/** Before what could not be read is read again, in ms. */
const AGAIN_MS = 1_000;
/** How often a server may have fewer entries than are known before these count as lost. */
const SHORT_READS = 10;

interface Context {
  readonly space: Pick<Space, "entries">;
  readonly parts: Pick<RunnerParts, "clock">;
}

/**
 * All entries of a thread that are there now. Whenever the connection is lost they begin again with the first one.
 *
 * @param thread `upTo`: the seq of the last entry that is known to be there, since a server may be behind another
 */
export async function* wholeThread(
  { space, parts }: Context,
  { key, upTo }: { readonly key: string; readonly upTo: number },
  signal: AbortSignal,
): AsyncGenerator<SpaceEntry, void> {
  for (let short = 0; !signal.aborted;) {
    let last = 0;
    try {
      for await (const entry of space.entries(key, signal)) {
        yield entry;
        last = entry.seq;
      }
      if (last >= upTo || ++short === SHORT_READS) return;
    } catch (error) {
      if (!(error instanceof SpaceOffline)) throw error;
    }
    await parts.clock.after(AGAIN_MS, signal);
  }
}
