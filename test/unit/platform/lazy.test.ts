import { expect, test, vi } from "vitest";
import { Lazy } from "../../../src/platform/lazy.js";

test("is loaded at the first use, once", async () => {
  const load = vi.fn(async () => ({ n: 1 }));
  const lazy = new Lazy(load);
  expect([load.mock.calls.length, lazy.made]).toEqual([0, undefined]);
  const [first, second] = await Promise.all([lazy.get(), lazy.get()]);
  expect(first).toBe(second);
  expect(lazy.made).toBe(first);
  expect(await lazy.get()).toBe(first);
  expect(load).toHaveBeenCalledTimes(1);
});

test("is loaded anew where that failed", async () => {
  const load = vi.fn(async () => "code");
  load.mockRejectedValueOnce(new TypeError("Failed to fetch dynamically imported module"));
  const lazy = new Lazy(load);
  await expect(Promise.all([lazy.get(), lazy.get()])).rejects.toThrow(TypeError);
  expect(lazy.made).toBeUndefined();
  expect(await lazy.get()).toBe("code");
  expect(load).toHaveBeenCalledTimes(2);
});
