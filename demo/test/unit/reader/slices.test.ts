import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { RecentlyUsed } from "../../../reader/cache.js";
import { createSlices, pieces } from "../../../reader/slices.js";

afterEach(() => vi.unstubAllGlobals());

describe("slices", () => {
  test("are due when their time is over, and begin anew after a pause", async () => {
    let now = 0;
    const slices = createSlices(new AbortController().signal, { sliceMs: 5, now: () => now });
    now = 4;
    expect(slices.due()).toBe(false);
    now = 5;
    expect(slices.due()).toBe(true);
    await slices.pause();
    expect(slices.due()).toBe(false);
    slices.close();
  });

  test.each(["setImmediate", "MessageChannel"])("let timers run, by %s", async (means) => {
    if (means === "MessageChannel") vi.stubGlobal("setImmediate", undefined);
    const slices = createSlices(new AbortController().signal);
    const timer = { ran: false };
    setTimeout(() => (timer.ran = true), 0);
    while (!timer.ran) await slices.pause();
    slices.close();
  });

  test("are due at once when the signal aborts, and the pause throws its reason", async () => {
    const controller = new AbortController();
    const slices = createSlices(controller.signal, { now: () => 0 });
    const waiting = slices.wait(2 ** 30);
    controller.abort(new Error("stop"));
    await expect(waiting).rejects.toThrow("stop");
    expect(slices.due()).toBe(true);
    await expect(slices.pause()).rejects.toThrow("stop");
    await expect(slices.wait(0)).rejects.toThrow("stop");
    slices.close();
  });
});

describe("pieces", () => {
  test("put together are the text, and no pair is cut", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", " ", "\n", "😀", "ü", "-"), maxLength: 300 }), (text) => {
        const parts = [...pieces(text)];
        expect(parts.join("")).toBe(text);
        for (const part of parts) {
          expect(part).not.toBe("");
          expect(part.isWellFormed()).toBe(true);
        }
      }),
    );
  });

  test("are a few words each", () => {
    expect([...pieces("one two three four five\n\nsix seven")]).toEqual([
      "one two three",
      " four five\n\nsix",
      " seven",
    ]);
  });
});

describe("the cache", () => {
  test("forgets what was used longest ago", () => {
    const cache = new RecentlyUsed<string>(2, 100);
    cache.set("a", "A", 1);
    cache.set("b", "B", 1);
    cache.get("a");
    cache.set("c", "C", 1);
    expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual(["A", undefined, "C"]);
  });

  test("keeps what was set last, whatever it weighs", () => {
    const cache = new RecentlyUsed<string>(5, 10);
    cache.set("a", "A", 8);
    cache.set("b", "B", 20);
    expect([cache.get("a"), cache.get("b")]).toEqual([undefined, "B"]);
  });
});
