import type { AgentRunner } from "../run/contract.js";
import type { Durability, RunnerErrorData } from "../wire/shapes.js";

/** How a runtime is. */
export type RuntimeHealth =
  | {
      readonly status: "ok";
      /** Threads that it is running now. */
      readonly liveThreads: number;
      /** Of a runner of this library. */
      readonly durability?: Durability;
      readonly dbName?: string;
      readonly hostId?: string;
    }
  | { readonly status: "failed"; readonly error: RunnerErrorData };

/** A runtime, for those that it calls. */
export interface Runtime {
  /** The open runner, made at its first use. Errors: RunnerError, why there is none. */
  runner(): Promise<AgentRunner>;
  /** Whether it can run agents now, and how many threads it does. Never rejects. */
  health(): Promise<RuntimeHealth>;
}
