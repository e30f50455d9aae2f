export const LEFT_OUT: readonly string[];
/** Paths from the repository's root; undefined: all of the project. */
export const gateFiles: (project: string) => readonly string[] | undefined;
