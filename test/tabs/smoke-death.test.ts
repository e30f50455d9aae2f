import { afterEach, beforeEach, expect, test } from "vitest";
import { LabTabs, numbers, useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

test("two tabs see a run broken by its host's death alike, keep what it said, and run the next (L8, L9)", async () => {
  const both = [await tabs.open(), await tabs.open()];
  for (const tab of both) await tab.follow("count", "thread");
  await both[0]!.start("thread", { n: 100_000, everyMs: 10 }, "doomed");
  for (const tab of both) await tab.counted("thread", 10);
  const shown = await Promise.all(both.map((tab) => tab.view("thread")));
  await tabs.endHost(both[0]!);
  const views = await Promise.all(both.map((tab) => tab.settled("thread")));
  for (const view of views) {
    expect(view.run).toMatchObject({
      is: "idle",
      last: { runId: "doomed", status: "broken", error: { code: "RUN_BROKEN" } },
    });
    expect(view.ends).toMatchObject([{ type: "RUN_ERROR", code: "RUN_BROKEN" }]);
    expect(view.messages).toEqual(views[0]!.messages);
    for (const { text } of shown) expect(view.text.startsWith(text)).toBe(true);
  }
  expect(await both[1]!.run("thread", { n: 5 })).toEqual({ ok: true });
  for (const tab of both) await tab.shows("thread", 5);
});

// Nobody follows in the host that ends: WebKit can leave a database locked where a worker ends while a read of it waits for
// another worker's write (https://bugs.webkit.org/show_bug.cgi?id=324094). death.test.ts ends hosts that read.
test("a host that runs nothing dies, and the run of the other goes on (L5)", async () => {
  const holder = await (await tabs.open("one")).follow("count", "thread");
  const other = await (await tabs.open("two")).takePart("count", "other thread");
  await other.tab.waitFor(() => window.lab.status.is === "connected");
  await holder.hold("thread");
  await holder.start("thread", { n: 150, everyMs: 10, heldAt: 100 });
  await holder.counted("thread", 5);
  await tabs.endHost(other, "two");
  await holder.letGo("thread");
  await other.follow("count", "thread");
  for (const tab of [holder, other]) {
    expect(await tab.settled("thread")).toMatchObject({ text: numbers(150), ends: [{ type: "RUN_FINISHED" }] });
  }
});
