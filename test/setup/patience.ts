import { vi } from "vitest";

/**
 * How long tests wait for a condition, in ms. Vitest's own default, a second, is over on a busy machine before what must
 * come has come. No test is slower for it: it waits no longer than until the condition holds.
 */
const PATIENCE_MS = 60_000;

type Options = Parameters<typeof vi.waitFor>[1];

const patient = (options: Options): Options =>
  typeof options === "number" ? Math.max(options, PATIENCE_MS) : { timeout: PATIENCE_MS, ...options };

const { waitFor, waitUntil } = vi;
vi.waitFor = (callback, options) => waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
