import { warnOnce, type Logger } from "../platform/log.js";

/** Called with what a reader cannot be given: AG-UI wants a warning of what a downgrade loses. */
export type Lost = (what: string) => void;

/** Warns once of each thing that is lost. */
export function lostTo(logger: Logger): Lost {
  const warn = warnOnce(logger);
  return (what) => warn(`A reader before AG-UI 1.0 cannot be given ${what}. Upgrade its @ag-ui/client`);
}
