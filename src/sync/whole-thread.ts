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
 * The entries of a thread that are there now, each once, also where the connection is lost meanwhile.
 *
 * @param thread `upTo`: the seq of the last entry that is known to be there, since a server may be behind another. `after`: of
 *   the entry behind which they begin, 0: all
 */
export async function* wholeThread(
  { space, parts }: Context,
  { key, upTo, after }: { readonly key: string; readonly upTo: number; readonly after: number },
  signal: AbortSignal,
): AsyncGenerator<SpaceEntry, void> {
  let last = after;
  for (let short = 0; !signal.aborted;) {
    try {
      for await (const entry of space.entries(key, signal, last)) {
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
