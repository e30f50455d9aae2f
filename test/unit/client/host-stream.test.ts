import { firstValueFrom, type Observable } from "rxjs";
import { expect, test, vi } from "vitest";
import type { RuntimeConnection } from "../../../src/client/connect-runtime.js";
import { defineAgent } from "../../../src/worker/index.js";
import { hostOf } from "../waiting/kit.js";

/** What is watched, and what it begins with after something may have been missed. */
const WATCHES: readonly [name: string, watch: (runtime: RuntimeConnection) => Observable<unknown>, first: unknown][] = [
  ["threads", ({ threads }) => threads.watch(), { type: "anew" }],
  ["toolCalls", ({ toolCalls }) => toolCalls.watch("t"), { calls: [] }],
  ["waiting", ({ waiting }) => waiting.watch("t"), []],
];

test.each(WATCHES)("%s.watch(): a host that does not answer in time is asked again (L13)", async (_, watch, first) => {
  let isSilent = false;
  let asked = 0;
  const { connect } = hostOf({
    agents: { none: defineAgent(async function* () {}) },
    beforeRequestMiddleware: async () => {
      asked++;
      if (isSilent) await new Promise(() => undefined);
    },
  });
  const runtime = connect({ callTimeoutMs: 500 });
  await vi.waitFor(() => runtime.threads.list());
  isSilent = true;
  const before = asked;
  const watched = firstValueFrom(watch(runtime));
  await vi.waitFor(() => expect(asked).toBe(before + 1));
  isSilent = false;
  expect(await watched).toMatchObject(first as object);
});
