import { DEFAULT_MEMORY_NAME } from "../platform/names.js";
import { InMemoryAgentRunner, type InMemoryAgentRunnerOptions } from "./in-memory-agent-runner.js";

type SharedOptions = Pick<
  InMemoryAgentRunnerOptions,
  "dbName" | "user" | "stopGraceMs" | "maxRunMs" | "limits" | "eventLimits" | "recordInput" | "logger"
>;

/** An in-memory runner, usable until it is released. */
export interface SharedRunner {
  readonly runner: InMemoryAgentRunner;
  /** Closes the runner when its last user releases it. */
  release(): Promise<void>;
}

interface Entry {
  readonly runner: InMemoryAgentRunner;
  readonly key: string;
  readonly logger: SharedOptions["logger"];
  users: number;
}

const entries = new Set<Entry>();

/**
 * One runner for all callers with the same store and options: a server that makes a runtime for each request and closes
 * none has one runner.
 *
 * @throws RunnerError `invalid-input`
 */
export function sharedMemoryRunner(options: SharedOptions): SharedRunner {
  // All other options count too: none of one runtime may apply to another.
  const { logger, dbName = DEFAULT_MEMORY_NAME, limits = {}, eventLimits = {}, ...others } = options;
  const key = keyOf([{ dbName, ...others }, limits, eventLimits]);
  let entry = [...entries].find((known) => known.key === key && known.logger === logger);
  if (entry === undefined) {
    entry = { runner: new InMemoryAgentRunner(options), key, logger, users: 0 };
    entries.add(entry);
  }
  const shared = entry;
  shared.users++;
  return {
    runner: shared.runner,
    release: async () => {
      if (--shared.users > 0) return;
      entries.delete(shared);
      await shared.runner.close();
    },
  };
}

/** Equal for equal values in any order. Values become strings because JSON has no `Infinity`. */
const keyOf = (parts: readonly object[]): string =>
  JSON.stringify(
    parts.map((part) =>
      Object.entries(part)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => [name, String(value)])
        .toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
    ),
  );
