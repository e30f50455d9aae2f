import {
  chai,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
  getState,
  GLOBAL_EXPECT,
} from "@vitest/expect";

/*
 * As much of vitest as a suite needs that runs in a page of a browser which vitest itself does not drive: the page's
 * server gives it this in place of "vitest".
 */

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);

const matchers = (value: unknown, message?: string): unknown => {
  setState({ assertionCalls: getState(expect as never).assertionCalls + 1 }, expect as never);
  return chai.expect(value, message);
};
export const expect: unknown = Object.assign(matchers, chai.expect);
setState({ assertionCalls: 0, isExpectingAssertions: false, expectedAssertionsNumber: null }, expect as never);
Object.defineProperty(globalThis, GLOBAL_EXPECT, { value: expect, configurable: true });

type Body = (...args: never[]) => unknown;

const names: string[] = [];
const tests: { readonly name: string; readonly run: () => unknown }[] = [];
let finishers: (() => unknown)[] = [];

export function describe(name: string, body: () => void): void {
  names.push(name);
  body();
  names.pop();
}

export const test = Object.assign(
  (name: string, run: () => unknown): void => void tests.push({ name: [...names, name].join(" > "), run }),
  {
    each:
      (rows: readonly unknown[]) =>
      (name: string, run: Body): void =>
        rows.forEach((row, n) => {
          const args = (Array.isArray(row) ? row : [row]) as never[];
          test(`${name} (${n})`, () => run(...args));
        }),
  },
);

export const onTestFinished = (finish: () => unknown): void => void finishers.push(finish);

/** What a test failed with, by its name. */
export interface Outcome {
  readonly passed: number;
  readonly failed: readonly string[];
}

export async function runTests(): Promise<Outcome> {
  const failed: string[] = [];
  for (const { name, run } of tests) {
    finishers = [];
    try {
      await run();
    } catch (error) {
      failed.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    for (const finish of finishers.toReversed()) await finish();
  }
  return { passed: tests.length - failed.length, failed };
}
