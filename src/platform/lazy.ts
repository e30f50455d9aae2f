/** What is made or loaded at its first use, once for all who ask meanwhile. Where that failed, anew at the next. */
export class Lazy<T> {
  #making: Promise<T> | undefined;
  #made: T | undefined;

  /** @param make a dynamic `import()`, for example: it rejects without a network, or where a newer build was deployed */
  constructor(private readonly make: () => T | Promise<T>) {}

  /** What {@link get} has begun; undefined where nobody has used it, or the last try failed. */
  get begun(): Promise<T> | undefined {
    return this.#making;
  }

  /** Undefined until it is there. */
  get made(): T | undefined {
    return this.#made;
  }

  /** Errors: what making it threw. */
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
