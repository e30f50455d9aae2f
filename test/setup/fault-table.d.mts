/** What each file of test/tabs brings about; undefined where it is about no fault. */
export const FAULTS: Readonly<Record<string, string | undefined>>;
