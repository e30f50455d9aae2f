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

/** The same logger, whose own failures (a throw, a rejected promise) reach nobody. */
export function safeLogger(logger: Logger): Required<Logger> {
  const level =
    (name: keyof Logger): Logger["error"] =>
    (message, ...details) => {
      try {
        // An async function is a Logger's method too.
        const said: unknown = logger[name]?.(message, ...details);
        if (said instanceof Promise) said.catch(() => undefined);
      } catch {
        // Its owner's fault must not be that of the run.
      }
    };
  return { error: level("error"), warn: level("warn"), info: level("info") };
}

/** Warns of each thing once. */
export function warnOnce({ warn }: Logger): Logger["warn"] {
  const told = new Set<string>();
  return (message, ...details) => {
    if (told.has(message)) return;
    told.add(message);
    warn(message, ...details);
  };
}

/** How many causes of an error are told. */
const MAX_CAUSES = 5;

/** An error as it may be logged: name, message, stack and causes. Its own fields may hold a request's headers. */
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
