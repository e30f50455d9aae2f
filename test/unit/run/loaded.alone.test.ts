import { expect, onTestFinished, test, vi } from "vitest";
import { loaded } from "../../../src/run/loaded.js";

test("code that does not come is told as outdated, with what to do (L13)", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const failed = expect(loaded(new Promise(() => undefined))).rejects.toMatchObject({
    code: "outdated",
    message: expect.stringContaining("try again") as string,
  });
  await vi.advanceTimersByTimeAsync(10_000);
  await failed;
});

test("code that comes leaves no timer behind", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  expect(await loaded(Promise.resolve("code"))).toBe("code");
  await Promise.resolve();
  expect(vi.getTimerCount()).toBe(0);
});
