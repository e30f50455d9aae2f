import { describe, expect, test } from "vitest";
import { loseCommitOver, type Loss } from "./idb-spy.js";
import { baseAt, chunkOf, claimed, delta, foreignEnd, request, runOn, settlement, withRuns } from "./kit.js";
import { dumpOf, rawOf } from "./raw.js";
import { eventsOf, freshName, opened, twoHosts } from "./stores.js";
import { claim, idle, live, SETTLE, WRITES } from "./write-cases.js";

const LOSSES: readonly Loss[] = ["committed", "aborted"];

/** What a store does when its connection falls in a write, on whichever IndexedDB is there. */
export function describeLostCommits(name: string): void {
  describe(name, () => {
    for (const { name: what, stores, before, write } of WRITES) {
      test.each(LOSSES)(
        `${what} whose commit is lost (%s) stands in the log once, and is told as done (L8)`,
        async (how) => {
          const [dbName, faultless] = [freshName(), freshName()];
          const [store, control] = [opened(dbName), opened(faultless)];
          await before(store);
          await before(control);
          const wanted = await write(control);
          const falling = loseCommitOver(stores, how);
          expect(await write(store)).toEqual(wanted);
          expect(falling.lost()).toBe(true);
          expect(await dumpOf(await rawOf(dbName))).toEqual(await dumpOf(await rawOf(faultless)));
        },
      );
    }

    test.each(LOSSES)(
      "an append that is lost (%s) before a takeover shows nobody two events of one seq (L6)",
      async (how) => {
        const { store, other } = twoHosts();
        await live(store);
        await other.head("t");
        let ending: Promise<unknown> | undefined;
        loseCommitOver(["heads", "chunks"], how, () => {
          ending = other.settleForeign("t", "r1", "broken", 4_000, foreignEnd);
        });
        const late = store.append(claim, chunkOf(claim, 2, [delta("c"), delta("d")]));
        await expect(late).rejects.toMatchObject({ code: "fenced" });
        expect(await ending).toMatchObject({ status: "broken" });
        const end = how === "committed" ? ["2 c", "3 d", "4 RUN_ERROR"] : ["2 RUN_ERROR"];
        for (const host of [store, other]) expect(await eventsOf(host, 1)).toEqual(["0 a", "1 b", ...end]);
      },
    );

    test("an append puts its chunk before it knows that it was fenced: nothing of it stays (L6)", async () => {
      const { store, other } = twoHosts();
      await live(store);
      await other.settleForeign("t", "r1", "broken", 4_000, foreignEnd);
      // The closing events stand where it would put its own.
      const late = () => store.append(claim, chunkOf(claim, 2, [delta("late")]));
      const tries = await Promise.allSettled([late(), late(), late()]);
      expect(tries.map((tried) => tried.status === "rejected" && tried.reason.code)).toEqual(Array(3).fill("fenced"));
      expect(await eventsOf(other, 1)).toEqual(["0 a", "1 b", "2 RUN_ERROR"]);
    });

    test("a settlement that is lost before a takeover ends nothing a second time (L7)", async () => {
      const { store, other } = twoHosts();
      await live(store);
      await other.head("t");
      let ending: Promise<unknown> | undefined;
      loseCommitOver(SETTLE, "aborted", () => {
        ending = other.settleForeign("t", "r1", "stopped", 4_000, foreignEnd);
      });
      await expect(store.settle(claim, settlement(claim, 2))).rejects.toMatchObject({ code: "fenced" });
      await ending;
      expect(await store.run("t", 1)).toMatchObject({ status: "stopped", epoch: 3 });
      expect(await eventsOf(store, 1)).toEqual(["0 a", "1 b", "2 RUN_ERROR"]);
      expect(await store.stateAfter("t", 1)).toBeUndefined();
    });

    test("a claim that is lost before its run is stopped says what became of the run (L8)", async () => {
      const { store, other } = twoHosts();
      await other.head("t");
      let ending: Promise<unknown> | undefined;
      loseCommitOver(["heads", "threads", "runs", "meta"], "committed", () => {
        ending = other.settleForeign("t", "r", "stopped", 4_000, foreignEnd);
      });
      expect(await store.claim(request("t", "r"))).toMatchObject({ is: "exists", run: { status: "stopped" } });
      expect(await ending).toMatchObject({ runId: "r" });
    });

    test("a claim that is lost before another's is told that the thread went on (L5)", async () => {
      const { store, other } = twoHosts();
      await other.head("t");
      let theirs: Promise<unknown> | undefined;
      loseCommitOver(["heads", "threads", "runs", "meta"], "aborted", () => {
        theirs = other.claim(request("t", "theirs", { holder: "host-2" }));
      });
      expect(await store.claim(request("t", "r"))).toEqual({ is: "moved" });
      expect(await theirs).toMatchObject({ is: "claimed", claim: { runIndex: 0, epoch: 1 } });
      expect((await store.runs("t")).map(({ runId }) => runId)).toEqual(["theirs"]);
    });

    test("a foreign end that is lost before another's is that one's (L9)", async () => {
      const { store, other } = twoHosts();
      await live(store);
      await other.head("t");
      let ending: Promise<unknown> | undefined;
      loseCommitOver(["heads", "threads", "runs", "chunks", "meta"], "aborted", () => {
        ending = other.settleForeign("t", "r1", "stopped", 4_000, foreignEnd);
      });
      expect(await store.settleForeign("t", "r1", "broken", 4_000, foreignEnd)).toBeUndefined();
      expect(await ending).toMatchObject({ status: "stopped" });
      expect(await eventsOf(store, 1)).toEqual(["0 a", "1 b", "2 RUN_ERROR"]);
    });

    test("a stop request that is lost before another's is not the first (L11)", async () => {
      const { store, other } = twoHosts();
      await live(store);
      await other.head("t");
      let theirs: Promise<unknown> | undefined;
      loseCommitOver(["heads"], "aborted", () => {
        theirs = other.requestStop("t", "r1", 7);
      });
      expect(await store.requestStop("t", "r1", 5)).toMatchObject({ first: false });
      expect(await theirs).toMatchObject({ first: true });
      expect((await store.head("t"))?.stop).toMatchObject({ at: 7 });
    });

    test("a cut that is lost before a run begins is not done, and not told as done (L1)", async () => {
      const { store, other } = twoHosts();
      const head = await withRuns(store, "t", ["r0", "r1", "r2"]);
      await other.head("t");
      let begun: Promise<unknown> | undefined;
      // The run gets the very epoch that the cut had.
      loseCommitOver(["heads", "threads", "runs", "messages", "states", "meta"], "aborted", () => {
        begun = other.claim(request("t", "r3", { base: head, prevRunIndex: 2 }));
      });
      expect(await store.cut("t", head.epoch, baseAt(1))).toBeUndefined();
      expect(await begun).toMatchObject({ is: "claimed", claim: { epoch: head.epoch + 1 } });
      expect((await store.runs("t")).map(({ runId }) => runId)).toEqual(["r0", "r1", "r2", "r3"]);
    });

    test("a deletion that is lost before a run begins deletes nothing (L1)", async () => {
      const { store, other } = twoHosts();
      const head = await idle(store);
      await other.head("t");
      let begun: Promise<unknown> | undefined;
      loseCommitOver(["heads", "threads", "meta", "waiting"], "aborted", () => {
        begun = other.claim(request("t", "r1", { base: head, prevRunIndex: 0 }));
      });
      expect(await store.deleteThread("t")).toBe(false);
      expect(await begun).toMatchObject({ is: "claimed" });
      expect((await store.runs("t")).map(({ runId }) => runId)).toEqual(["r0", "r1"]);
    });

    test.each(LOSSES)(
      "an update that is lost (%s) before another host's undoes nothing of that one (L1)",
      async (how) => {
        const { store, other } = twoHosts();
        await live(store);
        await other.head("t");
        let theirs: Promise<unknown> | undefined;
        loseCommitOver(["threads", "meta"], how, () => {
          theirs = other.updateThread("t", { archived: true });
        });
        expect(await store.updateThread("t", { title: "named" })).toMatchObject({ title: "named", archived: true });
        expect(await theirs).toMatchObject({ archived: true });
        expect(await other.thread("t")).toMatchObject({ title: "named", archived: true, pinned: false });
      },
    );

    test("an update that is lost before the thread is deleted brings nothing of it back (L1)", async () => {
      const { store, other } = twoHosts();
      await idle(store);
      // What deletes is loaded: the deletion comes before the update is repeated.
      expect(await other.deleteThread("none")).toBe(false);
      let deleting: Promise<unknown> | undefined;
      loseCommitOver(["threads", "meta"], "aborted", () => {
        deleting = other.deleteThread("t");
      });
      // The update may be repeated before the deletion, which a browser loads in its own time.
      const updated = await store.updateThread("t", { title: "named" });
      expect(updated ?? { title: "named" }).toMatchObject({ title: "named" });
      expect(await deleting).toBe(true);
      expect(await store.thread("t")).toBeUndefined();
    });

    test("epochs grow over all threads, connections and deletions, and none is given twice (L6)", async () => {
      const { store, other } = twoHosts();
      const epochs: number[] = [];
      for (let round = 0; round < 5; round++) {
        const hosts = [store, other, store, other, store, other];
        const claims = await Promise.all(hosts.map((host, n) => claimed(host, `t${n}`, `r${round}`)));
        const drawn = claims.map(({ epoch }) => epoch);
        expect(new Set(drawn).size).toBe(drawn.length);
        expect(Math.min(...drawn)).toBeGreaterThan(Math.max(0, ...epochs));
        epochs.push(...drawn);
        await Promise.all(claims.map((own, n) => hosts[n]!.settle(own, settlement(own, 0))));
        await Promise.all(claims.map(({ threadId }, n) => hosts[5 - n]!.deleteThread(threadId)));
      }
      expect(new Set(epochs).size).toBe(30);
      expect((await store.head("t0"))!.epoch).toBeGreaterThan(Math.max(...epochs.slice(0, -6)));
    });

    test("whoever read a thread before it was deleted cannot go on with it (L1)", async () => {
      const { store, other } = twoHosts();
      const head = await idle(store);
      await other.deleteThread("t");
      expect(await store.claim(request("t", "r1", { base: head, prevRunIndex: 0 }))).toEqual({ is: "moved" });
      const again = await runOn(other, "t", "r1", null);
      expect(again.runIndex).toBe(1);
      expect(await store.claim(request("t", "r2", { base: head, prevRunIndex: 0 }))).toEqual({ is: "moved" });
      const base = { activeRunIndex: head.activeRunIndex, epoch: again.epoch };
      expect(await store.claim(request("t", "r2", { base, prevRunIndex: 0 }))).toEqual({ is: "moved" });
    });
  });
}
