import type { AgentRunner } from "../run/contract.js";
import type { Durability, RunnerErrorData } from "../wire/shapes.js";

/** A runtime's health. */
export type RuntimeHealth =
  | {
      readonly status: "ok";
      /** Threads with a live run now. */
      readonly liveThreads: number;
      /** Present for a runner of this library. */
      readonly durability?: Durability;
      readonly dbName?: string;
      readonly hostId?: string;
    }
  | { readonly status: "failed"; readonly error: RunnerErrorData };

/** A runtime, as its callbacks see it. */
export interface Runtime {
  /** The open runner, made at its first use. Errors: RunnerError, why there is none. */
  runner(): Promise<AgentRunner>;
  /** Whether it can run agents now, and how many threads it does. Never rejects. */
  health(): Promise<RuntimeHealth>;
}
