import { expect, test } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { RunnerError } from "../../../src/run/errors.js";
import { Passes } from "../../../src/storage/encryption/passes.js";
import { DrivenClock } from "../lock/driven-clock.js";

const MINUTE = 60_000;

/** Passes whose n-th one ends so: it left something, or it fails. The last one is repeated. */
function passesThat(...ends: (boolean | Error)[]) {
  const clock = new DrivenClock();
  const closed = new AbortController();
  const begun: number[] = [];
  const passes = new Passes(
    async () => {
      const end = ends[Math.min(begun.length, ends.length - 1)];
      begun.push(clock.elapsed());
      if (end instanceof Error) throw end;
      return end === true;
    },
    clock,
    closed.signal,
  );
  /** Lets time pass, in small steps. */
  const run = async (ms: number): Promise<void> => {
    for (let left = ms; ; left -= MINUTE / 2) {
      await nextTask();
      if (left <= 0) return;
      clock.pass(MINUTE / 2);
    }
  };
  return { run, closed, passes, begun };
}

const pauses = (times: readonly number[]): number[] => times.slice(1).map((at, n) => at - times[n]!);

test("a pass that left something is repeated after a pause, which grows to an hour, until nothing is left", async () => {
  const { run, passes, begun } = passesThat(...Array<boolean>(12).fill(true), false);
  passes.begin();
  await run(24 * 60 * MINUTE);
  expect(begun).toHaveLength(13);
  expect(pauses(begun).slice(0, 3)).toEqual([MINUTE / 2, MINUTE, 2 * MINUTE]);
  expect(Math.max(...pauses(begun))).toBe(60 * MINUTE);
});

test("what kept a pass from something may have ended: it is repeated at once, and not where nothing is left", async () => {
  const { run, passes, begun } = passesThat(true, false);
  passes.begin();
  await run(0);
  passes.again();
  passes.again();
  await run(0);
  expect(begun).toEqual([0, 0]);
  passes.again();
  await run(24 * 60 * MINUTE);
  expect(begun).toEqual([0, 0]);
});

test("where something falls behind again and again, each pass waits longer", async () => {
  const { run, passes, begun } = passesThat(false);
  passes.begin();
  for (let n = 0; n < 6; n++) {
    await run(0);
    passes.soon();
    passes.soon();
    await run(16 * MINUTE);
  }
  expect(begun).toHaveLength(7);
  expect(begun.map((at, n) => at - Math.max(0, n - 1) * 16 * MINUTE)).toEqual(
    [0, 0.5, 1, 2, 4, 8, 16].map((minutes) => minutes * MINUTE),
  );
  passes.begin();
  await run(0);
  expect(begun).toHaveLength(8);
});

test("one that fails is repeated, unless the key is missing: then the next key begins it", async () => {
  const { run, passes, begun } = passesThat(
    new RunnerError("quota-exceeded"),
    new RunnerError("locked"),
    new RunnerError("wrong-key"),
    false,
  );
  passes.begin();
  await run(MINUTE);
  expect(begun).toHaveLength(2);
  await run(24 * 60 * MINUTE);
  passes.again();
  await run(0);
  expect(begun).toHaveLength(2);
  passes.begin();
  await run(0);
  passes.begin();
  await run(24 * 60 * MINUTE);
  expect(begun).toHaveLength(4);
});

test("nothing is repeated after the end", async () => {
  const { run, closed, passes, begun } = passesThat(true);
  passes.begin();
  await run(0);
  closed.abort();
  passes.again();
  passes.begin();
  await run(24 * 60 * MINUTE);
  expect(begun).toHaveLength(1);
});
