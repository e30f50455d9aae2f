import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { useBrowser } from "./driver/scripted.js";
import { hammer, openAll, SLICE_MS } from "./hammer-drive.js";
import { OTHER_BUILD } from "./driver/test-pages.js";
import { HostTabs } from "./hammer-hosts.js";

const HOSTS = ["source", "built", "dedicated"];
/** As much hammering as there is time for: `PROPERTY_FACTOR=30` makes ten minutes of it. */
const SLICES = Math.ceil(inject("propertyFactor"));
/** `PROPERTY_SEED` repeats it as far as real time allows. */
const SEED = inject("propertySeed");

const given = useBrowser();
let tabs: HostTabs;
beforeEach(() => {
  tabs = new HostTabs(given, { built: { script: OTHER_BUILD }, dedicated: "dedicated" });
});
afterEach(() => tabs.close());

describe("two builds and a worker of a tab on one database", () => {
  test("are three hosts", async () => {
    const status = await Promise.all((await openAll(tabs, HOSTS)).map((tab) => tab.status()));
    expect(status).toMatchObject([{ host: "shared-worker" }, { host: "shared-worker" }, { host: "worker" }]);
    const connected = status.filter((it) => it.is === "connected" && it.dbName === tabs.dbName && it.tabs === 1);
    expect(connected).toHaveLength(3);
  });

  test(
    "hammer the same threads: no run overlaps another or is executed twice, everybody shows the same (L2, L3, L5, L7)",
    { timeout: 600_000 + SLICES * 2 * SLICE_MS },
    async () => {
      const threads = ["north", "east", "south", "west", "middle"];
      const faults = await hammer(tabs, HOSTS, { seed: SEED, threads, slices: SLICES });
      expect(faults, `PROPERTY_SEED=${SEED}`).toEqual([]);
    },
  );

  test("the loser of a thread is told while the winner runs, whatever host it asks (L5)", async () => {
    const all = await openAll(tabs, HOSTS);
    for (const [index, winner] of all.entries()) {
      const threadId = `${HOSTS[index]} runs`;
      await winner.follow("count", threadId);
      await winner.start(threadId, { n: 10_000, everyMs: 10 }, "winner");
      await winner.counted(threadId, 1);
      for (const loser of all) {
        expect(await loser.runUnseen("count", threadId)).toEqual({
          ok: false,
          name: "RunnerError",
          code: "thread-busy",
          message: "Thread already running",
          runId: "winner",
        });
      }
      expect((await winner.view(threadId)).run).toMatchObject({ is: "running", runId: "winner" });
      await winner.stop(threadId);
      await winner.settled(threadId);
    }
  });
});
