import { checkNames, type Names } from "../../run/options.js";
import { checkOption } from "../checks.js";

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

const LIMITS: Names<MemoryLimits> = { maxThreads: true, maxRunsPerThread: true, maxBytes: true };

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
export function checkLimits(limits: MemoryLimits = {}): void {
  checkNames(limits, LIMITS, { of: "The runner", within: "limits" });
  const { maxThreads, maxRunsPerThread, maxBytes } = limits;
  checkOption("limits.maxThreads", maxThreads, { least: 1, endless: true });
  checkOption("limits.maxRunsPerThread", maxRunsPerThread, { least: 1, endless: true });
  checkOption("limits.maxBytes", maxBytes, { least: 1, endless: true });
}

/** Whether anything is ever removed. */
export const areLimits = ({ maxThreads, maxRunsPerThread, maxBytes }: MemoryLimits): boolean =>
  [maxThreads, maxRunsPerThread, maxBytes].some((most = Infinity) => most < Infinity);
