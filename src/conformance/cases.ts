import { branchCases } from "./branch-cases.js";
import type { ConformanceCase } from "./case.js";
import { connectCases } from "./connect-cases.js";
import { extendedConnectCases } from "./extended-connect-cases.js";
import { limitCases } from "./limit-cases.js";
import { misbehavingCases, ownEndCases } from "./misbehaving-cases.js";
import { otherHostCases } from "./other-host-cases.js";
import { readsCases } from "./reads-cases.js";
import { runCases } from "./run-cases.js";
import { stopCases } from "./stop-cases.js";
import { truthCases } from "./truth-cases.js";

/** All cases with their code, in the order in which they run. */
export const RUNNABLE_CASES = [
  ...runCases,
  ...connectCases,
  ...extendedConnectCases,
  ...stopCases,
  ...misbehavingCases,
  ...ownEndCases,
  ...limitCases,
  ...otherHostCases,
  ...truthCases,
  ...branchCases,
  ...readsCases,
];

/** The id of a case. */
export type CaseId = (typeof RUNNABLE_CASES)[number]["id"];

/** All cases, for lists in docs. */
export const CONFORMANCE_CASES: readonly ConformanceCase<CaseId>[] = RUNNABLE_CASES.map(
  ({ id, level, title, says, needs }) => ({ id, level, title, says, ...(needs !== undefined && { needs }) }),
);
