/**
 * Where a host writes what somebody has to know. `error`: somebody must look; `warn`: something was dropped or is weaker
 * than asked for; `info`: a state changed. `console` is one.
 */
export interface Logger {
  error(message: string, ...details: readonly unknown[]): void;
  warn(message: string, ...details: readonly unknown[]): void;
  info?(message: string, ...details: readonly unknown[]): void;
}

/** Silent but for what somebody must look at. */
export const consoleLogger: Logger = {
  error: (message, ...details) => console.error(message, ...details),
  warn: (message, ...details) => console.warn(message, ...details),
};
