import type { Browser as PuppeteerBrowser, CDPSession, Page as PuppeteerPage, Target } from "puppeteer-core";

/** What ends, hinders or measures a browser's parts, by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/tot/). */
export interface BrowserFaults {
  endSharedWorkers(nameHas: string): Promise<number>;
  setQuota(origin: string, bytes: number | undefined): Promise<void>;
  heapOf(workerHas: string): Promise<number>;
  /** Takes the network from a SharedWorker until what this resolves with is called. */
  takeOffline(workerHas: string): Promise<() => Promise<void>>;
  clearSiteData(origin: string): Promise<void>;
}

/** A session of its own for one piece of work. */
async function withSession<T>(target: Target, work: (session: CDPSession) => Promise<T>): Promise<T> {
  const session = await target.createCDPSession();
  try {
    return await work(session);
  } finally {
    await session.detach();
  }
}

export function browserFaults(browser: PuppeteerBrowser): BrowserFaults {
  let storage: Promise<CDPSession> | undefined;
  /** What the browser's own session refuses, on the page that it opened with. A quota is in force as long as this lives. */
  const ofPage = (): Promise<CDPSession> =>
    (storage ??= browser.pages().then(([first]) => {
      if (!first) throw new Error("the browser has no page");
      return first.createCDPSession();
    }));
  return {
    endSharedWorkers: (nameHas) =>
      withSession(browser.target(), async (session) => {
        const workers = async () => {
          const { targetInfos } = await session.send("Target.getTargets", { filter: [{ type: "shared_worker" }] });
          return targetInfos;
        };
        // A worker's title is its name.
        const ending = (await workers()).filter(({ title }) => title.includes(nameHas)).map(({ targetId }) => targetId);
        for (const targetId of ending) await session.send("Target.closeTarget", { targetId });
        while ((await workers()).some(({ targetId }) => ending.includes(targetId))) continue;
        return ending.length;
      }),
    heapOf: (workerHas) =>
      withSession(browser.target(), async (session) => {
        const { targetInfos } = await session.send("Target.getTargets", { filter: [{ type: "shared_worker" }] });
        const found = targetInfos.filter(({ title }) => title.includes(workerHas));
        if (found.length !== 1) throw new Error(`${found.length} workers are called ${workerHas}`);
        const { targetId } = found[0]!;
        const { sessionId } = await session.send("Target.attachToTarget", { targetId, flatten: true });
        const worker = session.connection()?.session(sessionId);
        if (!worker) throw new Error(`no session of ${workerHas}`);
        try {
          await worker.send("HeapProfiler.collectGarbage");
          return (await worker.send("Runtime.getHeapUsage")).usedSize;
        } finally {
          await session.send("Target.detachFromTarget", { sessionId });
        }
      }),
    async takeOffline(workerHas) {
      const session = await browser.target().createCDPSession();
      const { targetInfos } = await session.send("Target.getTargets", { filter: [{ type: "shared_worker" }] });
      const found = targetInfos.find(({ title }) => title.includes(workerHas));
      if (!found) throw new Error(`no worker is called ${workerHas}`);
      const { targetId } = found;
      const { sessionId } = await session.send("Target.attachToTarget", { targetId, flatten: true });
      const worker = session.connection()?.session(sessionId);
      if (!worker) throw new Error(`no session of ${workerHas}`);
      const emulate = (offline: boolean) =>
        worker.send("Network.emulateNetworkConditions", {
          offline,
          latency: 0,
          downloadThroughput: -1,
          uploadThroughput: -1,
        });
      await worker.send("Network.enable");
      await emulate(true);
      return async () => {
        await emulate(false);
        await session.detach();
      };
    },
    async clearSiteData(origin) {
      const session = await ofPage();
      await session.send("Storage.clearDataForOrigin", {
        origin,
        storageTypes: "indexeddb,local_storage,cache_storage",
      });
    },
    async setQuota(origin, bytes) {
      const session = await ofPage();
      await session.send("Storage.overrideQuotaForOrigin", {
        origin,
        ...(bytes !== undefined && { quotaSize: bytes }),
      });
    },
  };
}

/** What befalls one page. */
export interface PageFaults {
  crash(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
}

export function pageFaults(page: PuppeteerPage): PageFaults {
  let session: Promise<CDPSession> | undefined;
  const setState = async (state: "frozen" | "active"): Promise<void> => {
    session ??= page.createCDPSession();
    await (await session).send("Page.setWebLifecycleState", { state });
  };
  return {
    crash: () =>
      withSession(page.target(), async (crashing) => {
        // Never answered: who would answer is gone.
        const gone = new Promise<void>((resolve) => page.once("error", () => resolve()));
        crashing.send("Page.crash").catch(() => undefined);
        await gone;
      }),
    freeze: () => setState("frozen"),
    thaw: () => setState("active"),
  };
}
