import { describe, expect, test } from "vitest";
import { LONG, secondsUntil, settled, type LivesWorld, type LivesWorldContext } from "./kit.js";

/** The law of every `Lives`. `create` makes a world of contexts in which nothing is held. */
export function describeLives(name: string, create: () => LivesWorld): void {
  const never = new AbortController().signal;

  /** The contexts of a fresh world. */
  function contexts(count: number): {
    readonly world: LivesWorld;
    readonly all: readonly LivesWorldContext[];
    readonly first: LivesWorldContext;
  } {
    const world = create();
    const all = Array.from({ length: count }, () => world.context());
    return { world, all, first: all[0]! };
  }

  describe(name, () => {
    test("a life is watched to its release, by others and by its own context", async () => {
      const { world, all, first } = contexts(3);
      const life = await first.lives.hold("life");
      const freed = all.map(({ lives }) => lives.whenFree("life", never));
      const heard = freed.map(settled);
      for (let seconds = 0; seconds < LONG; seconds++) await world.second();
      expect(heard.map((is) => is())).toEqual([false, false, false]);
      await life.release();
      await life.gone;
      expect(await Promise.all(freed)).toEqual([true, true, true]);
    });

    test("a life is watched to its death (L9)", async () => {
      const { world, all, first } = contexts(3);
      await first.lives.hold("life");
      const freed = all.slice(1).map(({ lives }) => lives.whenFree("life", never));
      await world.second();
      await first.die();
      expect(await secondsUntil(world, settled(Promise.all(freed)))).toBeLessThan(LONG);
      expect(await Promise.all(freed)).toEqual([true, true]);
    });

    test("a life that was released can be held again; the old lock has nothing to do with it", async () => {
      const { world, all, first } = contexts(2);
      const old = await first.lives.hold("life");
      await old.release();
      // Where ends are told by messages, this one is heard by then.
      await world.second();
      const anew = await first.lives.hold("life");
      const freed = all[1]!.lives.whenFree("life", never);
      const over = [settled(anew.gone), settled(freed)];
      await old.release();
      for (let seconds = 0; seconds < LONG; seconds++) await world.second();
      expect(over.map((is) => is())).toEqual([false, false]);
      await anew.release();
      expect(await freed).toBe(true);
    });

    test("a life that nobody holds has ended (L9)", async () => {
      const { world, first } = contexts(2);
      const freed = first.lives.whenFree("nobody", never);
      expect(await secondsUntil(world, settled(freed))).toBeLessThan(LONG);
      expect(await freed).toBe(true);
    });

    test("who gives up watching is told so at once", async () => {
      const { all, first } = contexts(2);
      await first.lives.hold("life");
      const given = new AbortController();
      const freed = all[1]!.lives.whenFree("life", given.signal);
      given.abort();
      expect(await freed).toBe(false);
      expect(await all[1]!.lives.whenFree("life", given.signal)).toBe(false);
    });
  });
}
