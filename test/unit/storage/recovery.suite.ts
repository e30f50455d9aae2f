import { expect, test } from "vitest";
import type { RecoveryNote } from "../../../src/run/recovery.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { claimed, foreignEnd } from "./kit.js";
import { recovery, waiting } from "./waiting.suite.js";

const NOTE: RecoveryNote = { is: "ask", why: "tools-started", tools: ["pay"] };

/** A thread whose run `r0` broke, and what goes on with it waits. */
async function broken(store: RunStore): Promise<void> {
  await claimed(store, "t", "r0");
  await store.settleForeign("t", "r0", "broken", 5, foreignEnd, () => recovery("r0"));
}

/** The law of recoveries, part of the law of every RunStore. */
export function describeRecoveries(create: () => RunStore): void {
  test("a recovery that does not go on leaves its reason in the broken run's row, once (issue 16, L1)", async () => {
    const store = create();
    await broken(store);
    await store.addWaiting(waiting("next"), 10);
    expect(await store.endRecovery(recovery("r0"), NOTE)).toBe(true);
    expect(await store.run("t", 0)).toMatchObject({ runId: "r0", status: "broken", recovery: NOTE });
    expect((await store.waitingRuns("t")).map(({ runId }) => runId)).toEqual(["next"]);
    // Another host, or the same one again: what was decided stays.
    expect(await store.endRecovery(recovery("r0"), { is: "gave-up", why: "cancelled", attempts: 1 })).toBe(false);
    expect(await store.run("t", 0)).toMatchObject({ recovery: NOTE });
  });

  test("one of a thread that went on only goes", async () => {
    const store = create();
    await broken(store);
    expect(await store.endRecovery(recovery("r0"), undefined)).toBe(true);
    expect(await store.waitingRuns("t")).toEqual([]);
    expect((await store.run("t", 0))?.recovery).toBeUndefined();
  });

  test("a note never reaches another run than the one that it is about", async () => {
    const store = create();
    await broken(store);
    await store.endRecovery({ ...recovery("r0"), of: "another" }, NOTE);
    expect((await store.run("t", 0))?.recovery).toBeUndefined();
  });

  test("a broken run's row says where its end begins, and an attempt's what it goes on with", async () => {
    const store = create();
    await broken(store);
    expect(await store.run("t", 0)).toMatchObject({ closedFrom: 0 });
    const { epoch = 0 } = (await store.head("t")) ?? {};
    const attempt = { of: "r0", number: 2 };
    await claimed(store, "t", "r0-again", {
      base: { activeRunIndex: 0, epoch },
      prevRunIndex: 0,
      waiting: true,
      attempt,
    });
    expect(await store.run("t", 1)).toMatchObject({ runId: "r0-again", attempt });
    expect(await store.waitingRuns("t")).toEqual([]);
  });
}
