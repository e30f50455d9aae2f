import { inTime } from "../platform/clock.js";
import { RunnerError } from "./errors.js";

/**
 * How long it may take, in ms: a server that does not answer would leave it pending for good. Shorter than what a tab's
 * calls wait (`callTimeoutMs`), so that the tab is told why.
 */
const LOAD_MS = 10_000;

/** What an `import()` of the package's own code gives. Errors: RunnerError `outdated`, with what to do. */
export const loaded = <T>(loading: Promise<T>): Promise<T> =>
  inTime(loading, LOAD_MS).catch((cause: unknown) => {
    const message =
      "Part of the code could not be loaded: try again when there is a network, or close all tabs of the site and open it anew";
    throw new RunnerError("outdated", {}, { message, cause });
  });
