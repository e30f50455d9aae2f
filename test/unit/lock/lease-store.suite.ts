import { describe, expect, test } from "vitest";
import type { LeaseStore } from "../../../src/storage/indexeddb/leases.js";

/** The law of every LeaseStore. `create` makes a function that opens stores over the same leases; there are none yet. */
export function describeLeaseStore(name: string, create: () => () => LeaseStore): void {
  /** Two stores over the same leases. */
  function two(): [LeaseStore, LeaseStore] {
    const open = create();
    return [open(), open()];
  }
  const standing = async (store: LeaseStore, lease: string) => (await store.all()).get(lease);

  describe(name, () => {
    test("of many who take a free lease at once, one has it; the others are shown it (L5)", async () => {
      const [one, other] = two();
      const owners = Array.from({ length: 20 }, (_, n) => `owner-${n}`);
      const answers = await Promise.all(owners.map((owner, n) => (n % 2 === 0 ? one : other).take("t", owner)));
      const takers = owners.filter((_, n) => answers[n] === undefined);
      expect(takers).toHaveLength(1);
      expect(answers.filter((answer) => answer !== undefined)).toEqual(
        Array.from({ length: 19 }, () => ({ owner: takers[0], beat: 0 })),
      );
    });

    test("of many who take over the same stale lease at once, one has it (L5)", async () => {
      const [one, other] = two();
      await one.take("t", "old");
      await one.beat(new Map([["t", "old"]]));
      const seen = (await standing(other, "t"))!;
      const owners = Array.from({ length: 20 }, (_, n) => `owner-${n}`);
      const answers = await Promise.all(owners.map((owner, n) => (n % 2 === 0 ? one : other).take("t", owner, seen)));
      expect(answers.filter((answer) => answer === undefined)).toHaveLength(1);
      expect(await one.beat(new Map([["t", "old"]]))).toEqual(["t"]);
    });

    test("a lease is not taken over when it was raised, or has another owner, since it was seen (L5)", async () => {
      const [one, other] = two();
      await one.take("t", "a");
      const seen = (await standing(other, "t"))!;
      await one.beat(new Map([["t", "a"]]));
      expect(await other.take("t", "b", seen)).toEqual({ owner: "a", beat: 1 });
      await one.remove("t", "a");
      await one.take("t", "c");
      expect(await other.take("t", "b", seen)).toEqual({ owner: "c", beat: 0 });
    });

    test("a beat raises all that are still their owner's, and no other (L6)", async () => {
      const [one, other] = two();
      for (const lease of ["mine", "lost", "gone"]) await one.take(lease, `a-${lease}`);
      await other.replace("lost", "b");
      await one.remove("gone", "a-gone");
      const owned = new Map(["mine", "lost", "gone"].map((lease) => [lease, `a-${lease}`]));
      expect((await one.beat(owned)).sort()).toEqual(["gone", "lost"]);
      expect(Object.fromEntries(await other.all())).toEqual({
        mine: { owner: "a-mine", beat: 1 },
        lost: { owner: "b", beat: 0 },
      });
    });

    test("who is not the owner any more removes nothing (L6)", async () => {
      const [one, other] = two();
      await one.take("t", "a");
      await other.replace("t", "b");
      await one.remove("t", "a");
      expect(await standing(one, "t")).toEqual({ owner: "b", beat: 0 });
      await other.remove("t", "b");
      await other.remove("t", "b");
      expect(await standing(one, "t")).toBeUndefined();
    });

    test("a repeated take comes to the same", async () => {
      const [one] = two();
      expect(await one.take("t", "a")).toBeUndefined();
      expect(await one.take("t", "a")).toBeUndefined();
      expect(await standing(one, "t")).toMatchObject({ owner: "a" });
    });

    test("closed, it refuses; the other one goes on", async () => {
      const [one, other] = two();
      await one.take("t", "a");
      await one.close();
      await expect(one.all()).rejects.toMatchObject({ code: "closed" });
      expect(await other.take("t", "b")).toMatchObject({ owner: "a" });
    });
  });
}
