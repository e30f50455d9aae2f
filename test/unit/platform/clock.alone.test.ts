import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";

test("a wait that is longer than the platform's timers is as long as it says", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let over = false;
  void systemClock.after(2 ** 31 + 10).then(() => (over = true));
  await vi.advanceTimersByTimeAsync(2 ** 31 + 9);
  expect(over).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(over).toBe(true);
});
