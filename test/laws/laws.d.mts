/** A change that breaks a law, and the suite of `npm test` that must then fail. */
export interface Broken {
  readonly law: string;
  /** The source that is changed, from the repository's root. */
  readonly file: string;
  /** Stands once in it. */
  readonly find: string;
  /** What takes its place. */
  readonly put: string;
  /** Fails then; from the repository's root. */
  readonly suite: string;
  /** What the changed code does. */
  readonly says: string;
}

/** One for each law, in their order. */
export const BROKEN: readonly Broken[];
