import { checkNames, TIMEOUT as ONE_OR_MORE, type Names } from "../../run/options.js";

/** How much history is kept. The oldest goes first; live and pinned threads never go. */
export interface RunnerLimits {
  /** Threads that are kept; the least recently updated go. Default: all; in memory 1,000. */
  readonly maxThreads?: number;
  /**
   * Runs of a thread, on all branches, whose events are kept (the cut is made in advance, so it may be a quarter
   * fewer). Of older runs on the active path, messages and state remain. Default: all; in memory
   * 100.
   */
  readonly maxRunsPerThread?: number;
}

/** The same for history in memory. */
export interface MemoryLimits extends RunnerLimits {
  /**
   * Approximate size of all settled runs, in UTF-16 code units of their JSON. Whole threads go, least recently updated
   * first; the most recently updated one stays, however large. Default: 512 MB (2^29).
   */
  readonly maxBytes?: number;
}

/** In a database the browser's quota bounds the bytes. */
export const LIMITS: Names<RunnerLimits> = { maxThreads: ONE_OR_MORE, maxRunsPerThread: ONE_OR_MORE };
const MEMORY_LIMITS: Names<MemoryLimits> = { ...LIMITS, maxBytes: ONE_OR_MORE };

/** Default limits in memory: those of CopilotKit's runner. */
export function limitsInMemory(limits: MemoryLimits = {}): Required<MemoryLimits> {
  checkLimits(limits);
  const { maxThreads = 1_000, maxRunsPerThread = 100, maxBytes = 512 * 1024 ** 2 } = limits;
  return { maxThreads, maxRunsPerThread, maxBytes };
}

/** What a limit removed. */
export type Eviction =
  | { readonly type: "thread"; readonly threadId: string }
  /** `runs` runs lost their events; messages and state at the cut are kept. */
  | { readonly type: "runs"; readonly threadId: string; readonly runs: number };

/** @throws RunnerError `invalid-input` */
export const checkLimits = (limits: MemoryLimits | undefined): void =>
  checkNames(limits, MEMORY_LIMITS, { of: "The runner", within: "limits" });

/** Whether anything is ever removed. */
export const areLimits = ({ maxThreads, maxRunsPerThread, maxBytes }: MemoryLimits): boolean =>
  [maxThreads, maxRunsPerThread, maxBytes].some((most = Infinity) => most < Infinity);
