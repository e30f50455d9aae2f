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

/** The `code` of a RUN_ERROR of an `aiAgent`, whose message says what to do. */
export type ModelErrorCode =
  /** No API key, or one that the model's server refuses. Ask for another one. */
  | "AUTHENTICATION"
  /** The server does not know the model, or the address is wrong. */
  | "MODEL_NOT_FOUND"
  /** The conversation is longer than the model can read. */
  | "CONTEXT_LENGTH"
  /** Too many requests, or a quota is used up, also after the SDK's own retries. */
  | "RATE_LIMITED"
  /** The server failed, could not be reached (also: does not allow the page's origin), or fell silent in the middle. */
  | "PROVIDER_UNAVAILABLE"
  /** The server refused the request for another reason. */
  | "INVALID_REQUEST"
  /** What the server sent is no answer of a model, or calls none of the tools that `toolChoice` demands. */
  | "INVALID_RESPONSE"
  /** The answer does not match the schema of `output`. */
  | "INVALID_OUTPUT"
  /** The model called tools after its last step. */
  | "STEP_LIMIT";

const RETRYABLE: ReadonlySet<string> = new Set(["RATE_LIMITED", "PROVIDER_UNAVAILABLE"] satisfies ModelErrorCode[]);

/** The same request may succeed later. False where there is no code, or an unknown one. */
export const isRetryable = (code: string | undefined): boolean => code !== undefined && RETRYABLE.has(code);
