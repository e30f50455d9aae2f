import { beforeAll, vi } from "vitest";

/**
 * In this file keys are derived from passphrases in a few rounds: tests that are not about how many there are need not wait
 * for half a million of them.
 */
export function cheapPassphrases(): void {
  beforeAll(() => {
    const { subtle } = crypto;
    const { deriveKey } = subtle;
    const cheap = vi
      .spyOn(subtle, "deriveKey")
      .mockImplementation((how, ...rest) =>
        deriveKey.call(subtle, { ...(how as Pbkdf2Params), iterations: 10 }, ...rest),
      );
    return () => cheap.mockRestore();
  });
}
