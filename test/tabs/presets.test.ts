import { afterEach, beforeEach, expect, test } from "vitest";
import { LabTab, numbers, useBrowser } from "./driver/scripted.js";
import { HostTabs, workerSource, type MadeOf } from "./hammer-hosts.js";

const PRESETS: Readonly<Record<string, { readonly madeOf?: MadeOf; readonly durability: "durable" | "memory" }>> = {
  "of-options": { durability: "durable" },
  indexeddb: { durability: "durable" },
  "indexeddb-own-locks": { durability: "durable" },
  "in-memory": { durability: "memory" },
  "in-memory-named": { durability: "memory" },
  "in-memory-isolated": { durability: "memory" },
  subclass: { durability: "memory" },
  "in-memory-no-locks": { madeOf: workerSource("no-locks-presets"), durability: "memory" },
  "fallback-to-memory": { madeOf: workerSource("no-storage"), durability: "memory" },
};

const given = useBrowser();
let tabs: HostTabs;
beforeEach(() => {
  const source = workerSource("presets");
  const hosts = Object.entries(PRESETS).map(([name, { madeOf = source }]) => [name, madeOf]);
  tabs = new HostTabs(given, { ...Object.fromEntries(hosts), foreign: source });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ tab }) => tab.close()));
  await tabs.close();
});

const open: LabTab[] = [];
async function openTab(url: string): Promise<LabTab> {
  const tab = new LabTab(await given.browser.newTab(url));
  open.push(tab);
  return tab.follow("count", "thread");
}

test.each(Object.entries(PRESETS))(
  "tabs are served by a runner %s, stay connected, and hear of its end",
  async (preset, { durability }) => {
    const url = tabs.url(preset).replace("hosts.html", preset.endsWith("no-locks") ? "no-locks.html" : "hosts.html");
    const [a, b] = [await openTab(url), await openTab(url)];
    for (const tab of [a, b]) {
      await tab.tab.waitFor(() => window.lab.status.is === "connected");
    }
    const before = await a.status();
    expect(before).toMatchObject({ host: "shared-worker", durability });
    await a.start("thread", { n: 10_000, everyMs: 10 });
    await b.counted("thread", 10);
    await b.tab.reload();
    await b.follow("count", "thread");
    await b.counted("thread", 30);
    await b.stop("thread");
    const [seen, other] = [await a.settled("thread"), await b.settled("thread")];
    expect(seen).toMatchObject({ run: { is: "idle", last: { status: "stopped" } } });
    expect(other.text).toBe(seen.text);
    expect(seen.text).toBe(numbers(seen.text.split(" ").length));
    // The same host all the while.
    expect(await a.status()).toMatchObject({ is: "connected", bootId: (before as { bootId: string }).bootId });

    await tabs.endHost(a, preset);
    await a.tab.waitFor(
      (boot) => window.lab.status.is === "connected" && window.lab.status.bootId !== boot,
      (before as { bootId: string }).bootId,
    );
  },
);

test("a runner of another make cannot serve tabs, and each is told so", async () => {
  const tab = await (await tabs.open("foreign")).follow("count", "thread");
  await tab.tab.waitFor(() => window.lab.status.is === "failed");
  const told = { code: "invalid-input", message: expect.stringContaining("createRuntimeHandler") as string };
  expect(await tab.status()).toMatchObject({ error: told });
  expect(await tab.runUnseen("count", "other")).toMatchObject({ ok: false, name: "RunnerError", ...told });
});
