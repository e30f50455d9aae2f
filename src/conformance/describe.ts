import type { BaseEvent } from "@ag-ui/client";
import type { Observable } from "rxjs";
import { LONGEST_MS } from "../platform/clock.js";
import type { AgentRunner, AgentRunnerRunRequest } from "../run/contract.js";
import { Bench, type RunnerUnderTest } from "./bench.js";
import type { Level, RunnableCase } from "./case.js";
import { RUNNABLE_CASES, type CaseId } from "./cases.js";
import { messageOf } from "../run/errors.js";
import { checkNames, FUNCTION, OBJECT, TIMEOUT, type Names } from "../run/options.js";
import { ConformanceError } from "./expect.js";
import { Patience } from "./patience.js";

type It = (name: string, body: () => Promise<void>, timeoutMs?: number) => unknown;

/** The functions of a test framework; vitest, jest, mocha and node:test have them. */
export interface TestFramework {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: It & { readonly skip?: It };
}

/** The runner under test, and which cases run. */
export interface DescribeAgentRunnerOptions {
  /** A new, empty runner; called once per case. */
  readonly create: () => AgentRunner | Promise<AgentRunner>;
  /** Releases a runner of `create` or `reopen` at the end of a case. */
  readonly destroy?: (runner: AgentRunner) => void | Promise<void>;
  /**
   * A second runner on the store of this one, which may be destroyed already. Cases that need it are skipped without
   * it.
   */
  readonly reopen?: (runner: AgentRunner) => AgentRunner | Promise<AgentRunner>;
  /** Ends a runner as the death of its process would. Default: `destroy`. */
  readonly crash?: (runner: AgentRunner) => void | Promise<void>;
  /** How a run is started if not by `runner.run(request)`, for example on a remote runner. */
  readonly run?: (runner: AgentRunner, request: AgentRunnerRunRequest) => Observable<BaseEvent>;
  /** Default "full". */
  readonly level?: Level;
  /** Cases to skip, each with the reason. */
  readonly skip?: Readonly<Partial<Record<CaseId, string>>>;
  /** How long one wait may take, in ms. Default 10,000. */
  readonly patienceMs?: number;
  /** Default: the globals `describe` and `it`. */
  readonly framework?: TestFramework;
}

const NAMES: Names<DescribeAgentRunnerOptions> = {
  create: FUNCTION,
  destroy: FUNCTION,
  reopen: FUNCTION,
  crash: FUNCTION,
  run: FUNCTION,
  level: [(given) => given === "core" || given === "full", '"core" or "full"'],
  skip: OBJECT,
  patienceMs: TIMEOUT,
  framework: ["describe", "it"],
};
const PATIENCE_MS = 10_000;
/** A case has several waits, one after the other. */
const WAITS_PER_CASE = 6;

function globalFramework(): TestFramework {
  // Checked below.
  const { describe, it } = globalThis as unknown as Partial<TestFramework>;
  if (describe === undefined || it === undefined) {
    throw new Error("There are no globals describe and it: hand them over as options.framework");
  }
  return { describe, it };
}

function checkSkips(skip: Readonly<Partial<Record<string, string>>>): void {
  const known = new Set<string>(RUNNABLE_CASES.map(({ id }) => id));
  for (const [id, reason] of Object.entries(skip)) {
    if (!known.has(id)) throw new Error(`skip names "${id}", which is no case`);
    if (typeof reason !== "string" || reason.trim() === "") throw new Error(`skip of "${id}" needs a reason`);
  }
}

/** Runs one case against a fresh runner. */
async function runCase({ id, says, check }: RunnableCase, subject: RunnerUnderTest, patienceMs: number): Promise<void> {
  const bench = await Bench.open(subject, new Patience(patienceMs));
  try {
    await check(bench);
  } catch (error) {
    // Its end often fails with it, and says less.
    await bench.close().catch(() => undefined);
    throw new ConformanceError(`${id}: ${says}\n  ${messageOf(error)}`, { cause: error });
  }
  await bench.close();
}

/**
 * Describes a runner: one test for each case of {@link CONFORMANCE_CASES} of its level. Skipped cases are in the report
 * with the reason.
 *
 * @param name of the runner in the report
 * @throws Error for a skip without a reason or of an unknown case; RunnerError `invalid-input` for an unknown option
 */
export function describeAgentRunner(name: string, options: DescribeAgentRunnerOptions): void {
  checkNames(options, NAMES, { of: "describeAgentRunner", isRequired: true });
  const { level = "full", skip = {}, patienceMs = PATIENCE_MS, framework = globalFramework(), ...subject } = options;
  const { describe, it } = framework;
  checkSkips(skip);
  const timeoutMs = Math.min(WAITS_PER_CASE * patienceMs, LONGEST_MS);
  const reasons: Readonly<Partial<Record<string, string>>> = skip;

  describe(`${name} is an AgentRunner (${level})`, () => {
    for (const one of RUNNABLE_CASES) {
      if (level === "core" && one.level === "full") continue;
      const title = `${one.id}: ${one.title}`;
      const noReopen = one.needs === "reopen" && subject.reopen === undefined ? "no option reopen" : undefined;
      const reason = reasons[one.id] ?? noReopen;
      if (reason !== undefined) {
        const skipped = `${title} (skipped: ${reason})`;
        if (it.skip === undefined) it(skipped, async () => {});
        else it.skip(skipped, async () => {});
        continue;
      }
      it(
        title,
        // Not an arrow function: mocha passes its time limit as `this`.
        function test(this: unknown) {
          const { timeout } = (this ?? {}) as { readonly timeout?: unknown };
          if (typeof timeout === "function") timeout.call(this, timeoutMs);
          return runCase(one, subject, patienceMs);
        },
        timeoutMs,
      );
    }
  });
}
