/**
 * A host's log. `error`: needs attention; `warn`: something was dropped, or a guarantee is weaker than requested;
 * `info`: a state changed. `console` is one.
 */
export interface Logger {
  error(message: string, ...details: readonly unknown[]): void;
  warn(message: string, ...details: readonly unknown[]): void;
  info?(message: string, ...details: readonly unknown[]): void;
}

/** Logs errors and warnings. */
export const consoleLogger: Logger = {
  error: (message, ...details) => console.error(message, ...details),
  warn: (message, ...details) => console.warn(message, ...details),
};

/** Ignores the logger's own failures (a throw, a rejected promise). */
export function safeLogger(logger: Logger): Required<Logger> {
  const level =
    (name: keyof Logger): Logger["error"] =>
    (message, ...details) => {
      try {
        // A method may be async.
        const said: unknown = logger[name]?.(message, ...details);
        if (said instanceof Promise) said.catch(() => undefined);
      } catch {
        // A faulty logger must not fail a run.
      }
    };
  return { error: level("error"), warn: level("warn"), info: level("info") };
}

/** Logs each message once. */
export function warnOnce({ warn }: Logger): Logger["warn"] {
  const told = new Set<string>();
  return (message, ...details) => {
    if (told.has(message)) return;
    told.add(message);
    warn(message, ...details);
  };
}

/** The maximum number of causes logged with an error. */
const MAX_CAUSES = 5;

/** The loggable part of an error: name, message, stack and causes. Other fields may hold a request's headers. */
export function loggable(thrown: unknown, causes = MAX_CAUSES): unknown {
  try {
    if (!(thrown instanceof Error)) return typeof thrown === "object" ? Object.prototype.toString.call(thrown) : thrown;
    const { name, message, stack, cause } = thrown;
    const hasCause = cause !== undefined && causes > 0;
    const error = new Error(message, hasCause ? { cause: loggable(cause, causes - 1) } : undefined);
    Object.defineProperty(error, "name", { value: name, configurable: true });
    Object.defineProperty(error, "stack", { value: stack, configurable: true });
    return error;
  } catch {
    return "Something was thrown that cannot be read";
  }
}
