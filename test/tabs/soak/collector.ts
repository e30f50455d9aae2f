import { startReceiver } from "../driver/receiver.js";
import type { Report } from "../pages/soak-report.js";
import type { Piece, Seen } from "./check.js";

/** Keeps what pages were told outside of the browser, where no kill reaches it. */
export interface Collector {
  /** Where pages post their reports. */
  readonly url: string;
  /** What was reported so far. */
  seen(): Seen[];
  /** Drops what was reported so far. */
  forget(): void;
  /** How many pieces were reported, dropped ones too. */
  readonly pieces: number;
  close(): Promise<void>;
}

export async function startCollector(): Promise<Collector> {
  const loads = new Map<string, Seen & { readonly pieces: Piece[] }>();
  let pieces = 0;
  const take = ({ load, threadId, piece }: Report): void => {
    const key = `${load} ${threadId}`;
    const of = loads.get(key) ?? { load, threadId, pieces: [] };
    of.pieces.push(piece);
    loads.set(key, of);
    pieces++;
  };
  const { url, close } = await startReceiver((reports) => {
    // As pages write them.
    for (const report of reports as Report[]) take(report);
  });
  return {
    url,
    close,
    seen: () => [...loads.values()],
    forget: () => loads.clear(),
    get pieces() {
      return pieces;
    },
  };
}
