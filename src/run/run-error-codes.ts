/**
 * The `code` of a RUN_ERROR that the runner writes. A RUN_ERROR of the agent itself is kept as it is, with its own code
 * or none. Whatever the code, everything that the run delivered before is kept.
 */
export type RunErrorCode =
  /**
   * The agent's stream ended, or its connection broke, without RUN_FINISHED or RUN_ERROR. Nothing is known of the rest:
   * no tool result is made up. Run it again.
   */
  | "INCOMPLETE_STREAM"
  /** The stream broke the protocol, or holds what cannot be stored. The message names the event: the agent has a fault. */
  | "INVALID_STREAM"
  /** An event, or all of the run, is larger than `eventLimits` allow. The message names the limit. */
  | "EVENT_LIMIT"
  /** The agent threw. The message is that of what it threw. */
  | "AGENT_FAILED"
  /** The run took longer than `maxRunMs`. */
  | "RUN_TIMEOUT"
  /** The host of the run ended. Run it again. */
  | "RUN_BROKEN";
