/** What a process of the bench is asked. */
export interface Call {
  readonly method: string;
  readonly args: readonly unknown[];
}
export type Answer = { readonly value: unknown } | { readonly error: string };

/** Answers the calls of the process that started this one, and says that it can. */
export function serveCalls(api: object): void {
  process.on("message", ({ method, args }: Call) => {
    // The caller's proxy is typed by the same interface.
    const called = (api as Record<string, (...all: readonly unknown[]) => Promise<unknown>>)[method]!;
    called(...args).then(
      (value) => process.send!({ value } satisfies Answer),
      (error: unknown) =>
        process.send!({ error: error instanceof Error ? String(error.stack) : String(error) } satisfies Answer),
    );
  });
  process.send!("ready");
}
