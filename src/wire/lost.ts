import { warnOnce, type Logger } from "../platform/log.js";

/** Called with what a downgrade loses for a reader: AG-UI requires a warning. */
export type Lost = (what: string) => void;

/** Logs one warning per kind of loss. */
export function lostTo(logger: Logger): Lost {
  const warn = warnOnce(logger);
  return (what) => warn(`A reader before AG-UI 1.0 cannot be given ${what}. Upgrade its @ag-ui/client`);
}
