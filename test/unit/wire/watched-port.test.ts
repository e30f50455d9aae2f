import { expect, test, vi } from "vitest";
import { untilEnd } from "../../../src/wire/watched-port.js";

test.each([
  ["goes", (gone: AbortController) => queueMicrotask(() => gone.abort())],
  ["has gone before the call is answered", (gone: AbortController) => gone.abort()],
])("a port of a tab that %s is closed", async (_when, go) => {
  const { port1, port2 } = new MessageChannel();
  const closed = vi.fn();
  port2.addEventListener("close", closed);
  port2.start();
  const gone = new AbortController();
  go(gone);
  const ended = untilEnd(port1, gone.signal);
  await vi.waitFor(() => expect(closed).toHaveBeenCalled());
  expect(ended.aborted).toBe(true);
});
