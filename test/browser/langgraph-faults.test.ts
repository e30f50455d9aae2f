import { expect, test } from "vitest";
import type { Order } from "./langgraph-writer.worker.js";
import { checkpointOf, freshName, listOf, opened, put, threadConfig, valuesOf } from "../unit/langgraph/kit.js";
import { LARGE, smallDisk } from "./small-disk.js";

test("on a full disk a save is refused whole, and what was saved is read (L10)", async () => {
  const disk = await smallDisk();
  const saver = opened();
  const first = await put(saver, threadConfig("t"), checkpointOf({ text: "small" }));
  const large = checkpointOf({ text: LARGE }, 2);
  await expect(put(saver, first, large)).rejects.toMatchObject({ code: "quota-exceeded" });
  await expect(saver.putWrites(first, [["text", LARGE]], "task")).rejects.toMatchObject({
    code: "quota-exceeded",
  });
  const left = await saver.getTuple(threadConfig("t"));
  expect([left?.config, valuesOf(left), left?.pendingWrites]).toEqual([first, { text: "small" }, []]);
  await disk.free();
  await put(saver, first, large);
});

/** Ends a worker where it has got to. @returns false where what it does has no such point */
async function endedAt(order: Order): Promise<boolean> {
  const worker = new Worker(new URL("./langgraph-writer.worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.onmessage = ({ data }: MessageEvent<number | undefined>) => resolve(data !== undefined);
      worker.postMessage(order);
    });
  } finally {
    worker.terminate();
  }
}

/** All that a saver finds. */
const foundIn = async (dbName: string): Promise<unknown[]> =>
  (await listOf(opened(dbName).list({}))).map((tuple) => [tuple.metadata?.step, valuesOf(tuple), tuple.pendingWrites]);

const BEFORE = [
  [2, { step: 2, text: "xx" }, [["task", "step", 2]]],
  [1, { step: 1, text: "x" }, [["task", "step", 1]]],
];

const PENDING = [
  ["late", "step", 3],
  ["late", "text", "three"],
  ["task", "step", 2],
];

test.each<[Order["act"], points: number, after: unknown[]]>([
  ["put", 5, [[3, { step: 3, text: "three" }, []], ...BEFORE]],
  ["putWrites", 4, [[2, { step: 2, text: "xx" }, PENDING], BEFORE[1]]],
  ["deleteThread", 5, []],
])("a worker that is ended anywhere in a %s leaves the old or the new", async (act, points, after) => {
  // At once: a browser takes its time to end a worker that is busy.
  const endings = Array.from({ length: points - 1 }, async (_, n) => {
    const dbName = freshName();
    expect(await endedAt({ dbName, act, point: n + 1 })).toBe(true);
    expect(await foundIn(dbName)).toEqual(BEFORE);
  });
  await Promise.all(endings);
  // The browser was asked to commit: it may have done so.
  const dbName = freshName();
  expect(await endedAt({ dbName, act, point: points })).toBe(true);
  expect([BEFORE, after]).toContainEqual(await foundIn(dbName));
  const whole = freshName();
  expect(await endedAt({ dbName: whole, act, point: points + 1 })).toBe(false);
  expect(await foundIn(whole)).toEqual(after);
});
