import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { pieces, Slices } from "../../../documents/slices.js";

afterEach(() => vi.restoreAllMocks());

describe("slices", () => {
  test("are due when their time is over, and begin anew after a pause", async () => {
    let now = 0;
    vi.spyOn(performance, "now").mockImplementation(() => now);
    const slices = new Slices(new AbortController().signal);
    now = 6;
    expect(slices.due()).toBe(false);
    now = 7;
    expect(slices.due()).toBe(true);
    await slices.pause();
    expect(slices.due()).toBe(false);
  });

  test("let timers run", async () => {
    const slices = new Slices(new AbortController().signal);
    const timer = { ran: false };
    setTimeout(() => (timer.ran = true), 0);
    while (!timer.ran) await slices.pause();
  });

  test("are due at once when the signal aborts, and the pause throws its reason", async () => {
    const controller = new AbortController();
    const slices = new Slices(controller.signal);
    const waiting = slices.wait(2 ** 30);
    controller.abort(new Error("stop"));
    await expect(waiting).rejects.toThrow("stop");
    expect(slices.due()).toBe(true);
    await expect(slices.pause()).rejects.toThrow("stop");
    await expect(slices.wait(0)).rejects.toThrow("stop");
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
