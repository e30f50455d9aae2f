/** What is loaded at its first use, once. Where that failed it is loaded anew at the next. */
export class Lazy<T> {
  #loading: Promise<T> | undefined;
  #loaded: T | undefined;

  /** @param load usually a dynamic `import()`; rejects where the code cannot be had (no network, a newer build deployed) */
  constructor(private readonly load: () => Promise<T>) {}

  /** What {@link get} has begun; undefined where nobody has used it, or the last try failed. */
  get begun(): Promise<T> | undefined {
    return this.#loading;
  }

  /** Undefined until it is there. */
  get loaded(): T | undefined {
    return this.#loaded;
  }

  /** Errors: as `load`. */
  get(): Promise<T> {
    return (this.#loading ??= this.load().then(
      (loaded) => (this.#loaded = loaded),
      (error: unknown) => {
        this.#loading = undefined;
        throw error;
      },
    ));
  }
}
