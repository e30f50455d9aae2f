/** A value made or loaded at its first use, once for all concurrent callers; after a failure, again at the next use. */
export class Lazy<T> {
  #making: Promise<T> | undefined;
  #made: T | undefined;

  /** @param make for example a dynamic `import()`, which rejects offline or after a new deployment */
  constructor(private readonly make: () => T | Promise<T>) {}

  /** The promise of {@link get}; undefined before the first use, and after a failure. */
  get begun(): Promise<T> | undefined {
    return this.#making;
  }

  /** Undefined until made. */
  get made(): T | undefined {
    return this.#made;
  }

  /** Errors: those of `make`. */
  get(): Promise<T> {
    return (this.#making ??= Promise.resolve()
      .then(this.make)
      .then(
        (made) => (this.#made = made),
        (error: unknown) => {
          this.#making = undefined;
          throw error;
        },
      ));
  }
}
