import { expect, onTestFinished, test, vi } from "vitest";
import { startHost } from "../../../src/runtime/node.js";
import { natsSpace } from "../../../src/sync/nats/nats-space.js";
import type { SpaceState } from "../../../src/sync/space.js";
import { agentOf, counter } from "../runner/kit.js";
import { until } from "../waiting/kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";

const { connect } = vi.hoisted(() => ({
  connect: vi.fn(async () => {
    throw Object.assign(new Error("Authorization Violation"), { name: "AuthorizationError" });
  }),
}));
vi.mock(import("@nats-io/transport-node"), async (original) => ({ ...(await original()), connect }));

/** Time that passes at once. */
function fakeTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  connect.mockClear();
  onTestFinished(() => void vi.useRealTimers());
}

/** A server, and what it logs. */
async function logging(sync: Parameters<typeof startHost>[0]["sync"]) {
  const lines: string[] = [];
  const line =
    (level: string) =>
    (message: string): void =>
      void lines.push(`${level} ${message}`);
  const logger = { error: line("error"), warn: line("warn"), info: line("info") };
  const host = await startHost({ agents: { heavy: agentOf(counter(1)) }, sync, logger });
  onTestFinished(() => host.close());
  return { host, lines };
}

const credentials = { user: "server", password: "old" };

test("a server that is refused with fixed credentials says so in its log, and connects again", async () => {
  fakeTime();
  const { lines } = await logging({ servers: "nats://127.0.0.1:4222", space: "dev", credentials });
  await until(() => expect(lines).toHaveLength(1));
  await vi.advanceTimersByTimeAsync(31_000);
  await until(() => expect(connect.mock.calls.length).toBeGreaterThan(1));
  expect(connect.mock.calls.length).toBeLessThan(5);
  expect(lines).toEqual([expect.stringMatching(/^error .*refused.*Authorization Violation/)]);
});

test("for a page that is refused with fixed credentials, that is final", async () => {
  fakeTime();
  const space = natsSpace({ servers: "nats://127.0.0.1:4222", space: "dev", credentials, connect });
  onTestFinished(() => space.close());
  const states: SpaceState[] = [];
  space.state$.subscribe((state) => states.push(state));
  await until(() => expect(states.at(-1)).toMatchObject({ is: "refused" }));
  await vi.advanceTimersByTimeAsync(120_000);
  expect(connect).toHaveBeenCalledTimes(1);
});

test("a server logs that it is offline and that it is back, once each, and nothing as it closes", async () => {
  const at = new MemorySpace(new MemoryServer());
  const { host, lines } = await logging({ space: at });
  const told = (count: number) => until(() => expect(lines).toHaveLength(count));
  at.connect(false);
  await told(1);
  at.connect(true);
  await told(2);
  await host.close();
  expect(lines).toEqual([
    "warn [ag-ui-local-runtime] The host is not in its space (offline): the connection is lost",
    "info [ag-ui-local-runtime] The host is in its space again",
  ]);
});
