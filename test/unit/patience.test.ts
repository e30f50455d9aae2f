import { expect, onTestFinished, test, vi } from "vitest";

test("what a test waits for may come later than after vitest's default of a second", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const look = vi.fn();
  // Each look is 50 ms after the one before.
  await vi.waitFor(() => (look(), expect(look.mock.calls.length).toBeGreaterThan(25)));
});
