/**
 * Epochs count up over a whole database. Those of one database share their upper part, which is drawn when it is made, so
 * that a reader of a database that was deleted and begun anew does not take one for the other.
 */
const SPAN = 2 ** 32;
/** How many upper parts there are; with the lower part it stays a safe integer. */
const DATABASES = 2 ** 20;

/** The epoch before the first of a new database. @param random 0 to 1 */
export const epochBefore = (random: number): number => Math.floor(random * DATABASES) * SPAN;

export const isSameDatabase = (one: number, other: number): boolean =>
  Math.floor(one / SPAN) === Math.floor(other / SPAN);
