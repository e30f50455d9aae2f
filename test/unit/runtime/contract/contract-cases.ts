import { CLIENT_CASES } from "./client-cases.js";
import type { ContractCase } from "./contract-bench.js";
import { ROUTE_CASES } from "./route-cases.js";
import { STOP_CASES } from "./stop-cases.js";
import { STREAM_CASES } from "./stream-cases.js";
import { SUGGESTION_CASES } from "./suggestion-cases.js";
import { THREAD_CASES } from "./thread-cases.js";
import { TRANSCRIBE_CASES } from "./transcribe-cases.js";

/** All that holds for each way into a runtime. */
export const CONTRACT_CASES: readonly ContractCase[] = [
  ...ROUTE_CASES,
  ...STREAM_CASES,
  ...STOP_CASES,
  ...SUGGESTION_CASES,
  ...THREAD_CASES,
  ...TRANSCRIBE_CASES,
  ...CLIENT_CASES,
];
