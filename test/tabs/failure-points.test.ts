import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import type { FailurePoint } from "../../src/run/failure-points.js";
import type { RunTransition } from "../../src/run/life.js";
import { type LabTab, LabTabs, numbers, useBrowser } from "./driver/scripted.js";

const engine = inject("engine");
const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

/** The points around each transition of the state machine: before it and after it, as far as there are both. */
const POINTS_OF: Readonly<Record<RunTransition["to"], readonly FailurePoint[]>> = {
  wait: ["claiming.queued"],
  turn: ["claiming.queued", "claiming.locked"],
  claimed: ["claiming.locked", "claiming.read", "claiming.fenced", "claiming.told"],
  refuse: ["claiming.refused"],
  stop: ["stopping.requested", "stopping.heard", "stopping.aborted", "stopping.stolen"],
  settle: ["appending.packed", "appending.committed", "appending.published", "settling.decided"],
  decide: ["settling.drained", "settling.overruled"],
  settled: ["settling.drained", "settling.committed", "settling.released", "settling.published"],
  lose: ["losing.lost", "recovering.locked", "recovering.settled"],
};

/** The host that ends itself, and the one that lives on. */
const VICTIM = "ends-at-point";
const OTHER = "other";
const THREAD = "thread";

interface Scene {
  /** A tab of the victim. It follows the thread. */
  readonly victim: LabTab;
  /** One of the other host, likewise. */
  readonly other: LabTab;
}

interface Case {
  readonly agent?: string;
  /** The host of the tab `victim`. */
  readonly host?: string;
  /** Which time the point is reached that counts. Default 1. */
  readonly nth?: number;
  /** What leads to the point; what is started before the victim is armed stands in `before`. */
  readonly before?: (scene: Scene) => Promise<void>;
  readonly act: (scene: Scene) => Promise<void>;
  /** The tab of the victim has started a run: it must be told how that ended. */
  readonly asked?: boolean;
  /** The other host is started after the victim's end. */
  readonly alone?: boolean;
}

const NUMBERS = { n: 40, everyMs: 10 };
const ENDLESS = { n: 100_000, everyMs: 10 };

/** A run of the victim's that comes to its own end. */
const runs: Case = { asked: true, act: ({ victim }) => victim.start(THREAD, NUMBERS, "run") };

/** One that writes as often as it takes. */
const goesOn: Case = { ...runs, act: ({ victim }) => victim.start(THREAD, ENDLESS, "run"), nth: 5 };

/** In a page: the head row of the thread asks its holder to stop. */
const isAskedToStop = (dbName: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const opening = indexedDB.open(dbName);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const reading = opening.result.transaction("heads").objectStore("heads").get("thread");
      opening.result.close();
      reading.onerror = () => reject(reading.error);
      reading.onsuccess = () => resolve((reading.result as { stop?: unknown } | undefined)?.stop !== undefined);
    };
  });

/** A run of the victim's that the other host asks to stop. */
const isStopped: Case = {
  asked: true,
  before: async ({ victim, other }) => {
    await victim.start(THREAD, ENDLESS, "run");
    await other.counted(THREAD, 2);
  },
  act: ({ other }) => other.stop(THREAD),
};

/** The victim asks for the end of the other host's run. */
const stops: Case = {
  before: async ({ victim, other }) => {
    await other.start(THREAD, ENDLESS, "run");
    await victim.counted(THREAD, 2);
  },
  act: ({ victim }) => victim.stop(THREAD),
};

/** The lock of the victim's run is taken. */
const isRobbed: Case = {
  asked: true,
  before: async ({ victim, other }) => {
    await victim.start(THREAD, ENDLESS, "run");
    await other.counted(THREAD, 2);
  },
  act: ({ other }) =>
    other.tab.evaluate(async () => {
      const { held = [] } = await navigator.locks.query();
      const name = held.map((lock) => lock.name ?? "").find((it) => it.endsWith(":thread:thread"));
      await navigator.locks.request(name!, { steal: true }, () => undefined);
    }),
};

/** A third host dies in the middle of a run, and the victim is the only one to settle it. */
const recovers: Case = {
  alone: true,
  before: async ({ victim }) => {
    const third = await (await tabs.open("third")).takePart("noted", THREAD);
    await third.start(THREAD, ENDLESS, "run");
    await victim.counted(THREAD, 2);
  },
  act: async ({ victim }) => {
    await tabs.endHost(victim, "third");
  },
};

const CASES: Readonly<Record<FailurePoint, Case>> = {
  "claiming.queued": {
    host: `${VICTIM} queues`,
    before: async ({ other }) => {
      await other.start(THREAD, ENDLESS, "first");
      await other.counted(THREAD, 2);
    },
    // The tab knows of the live run and would refuse it itself.
    act: ({ victim }) => victim.tab.evaluate((thread) => void window.lab.runUnseen("noted", thread, {}), THREAD),
  },
  "claiming.refused": {
    before: async ({ other }) => {
      await other.start(THREAD, ENDLESS, "first");
      await other.counted(THREAD, 2);
    },
    act: ({ victim }) => victim.tab.evaluate((thread) => void window.lab.runUnseen("noted", thread, {}), THREAD),
  },
  "claiming.locked": runs,
  "claiming.read": runs,
  "claiming.fenced": runs,
  "claiming.told": runs,
  "appending.packed": goesOn,
  "appending.committed": goesOn,
  "appending.published": goesOn,
  "stopping.requested": stops,
  "stopping.heard": isStopped,
  "stopping.aborted": isStopped,
  "stopping.stolen": {
    ...stops,
    act: async ({ victim }) => {
      // The holder hears nothing until the victim has waited for it.
      await tabs.blockHost(victim, OTHER);
      await victim.stop(THREAD);
      await victim.tab.waitFor(() => window.lab.hasReached("stopping.stolen"));
      await tabs.letHostGoOn(OTHER);
    },
  },
  "settling.decided": runs,
  "settling.drained": runs,
  "settling.overruled": {
    agent: "late",
    asked: true,
    host: `${VICTIM} deaf`,
    before: async ({ victim, other }) => {
      await other.hold(THREAD);
      await victim.start(THREAD, {}, "run");
      await other.tab.waitFor(() => window.lab.view("thread").text === "soon");
    },
    act: async ({ other }) => {
      await other.stop(THREAD);
      await other.tab.waitFor(isAskedToStop, tabs.workerName("").slice(0, -1));
      // It ends before it looks.
      await other.letGo(THREAD);
    },
  },
  "settling.committed": runs,
  "settling.released": runs,
  "settling.published": runs,
  "losing.lost": isRobbed,
  "recovering.locked": recovers,
  "recovering.settled": recovers,
};

/** In Firefox, where a worker that ended itself is slow to be replaced, one of each kind. */
const IN_FIREFOX: ReadonlySet<string> = new Set<FailurePoint>([
  "claiming.locked",
  "claiming.fenced",
  "appending.committed",
  "stopping.heard",
  "settling.drained",
  "settling.committed",
  "recovering.locked",
]);
const points = (Object.entries(CASES) as [FailurePoint, Case][]).filter(
  ([point]) => engine === "chromium" || IN_FIREFOX.has(point),
);

const met = new Set<FailurePoint>();

describe("a host that ends between two steps leaves a thread that works (L1, L5, L7, L8, L9, L13)", () => {
  for (const [point, it] of points) {
    const { agent = "noted", host = VICTIM, nth = 1, asked = false, alone = false, before, act } = it;
    test(point, async () => {
      const open = async (): Promise<LabTab> => (await tabs.open(OTHER)).follow(agent, THREAD);
      const victim = await (await tabs.open(host)).follow(agent, THREAD);
      const scene = { victim, other: alone ? victim : await open() };
      await before?.(scene);
      // A worker that is only just starting does not hear what it is told.
      await victim.tab.waitFor(() => window.lab.status.is === "connected");
      const worker = tabs.workerName(host);
      await victim.tab.evaluate((name, at, times) => window.lab.endAt(name, at, times), worker, point, nth);
      const { text } = await victim.view(THREAD);
      await act(scene);
      await victim.tab.waitFor((at) => window.lab.hasReached(at), point);
      met.add(point);

      const survivor = alone ? await open() : scene.other;
      // L13: whoever asked for a run is told how it ended, and whoever follows sees the end of every run.
      for (const { tab } of [survivor, victim]) await tab.waitFor(() => window.lab.status.is === "connected");
      await survivor.stop(THREAD);
      if (asked) await victim.tab.waitFor(() => window.lab.view("thread").outcomes.length > 0);
      for (const { tab } of [survivor, victim]) {
        await tab.waitFor(() => window.lab.view("thread").run.is === "idle");
        // L7, L9: the thread takes the next run.
        await tab.waitFor(async () => (await window.lab.runUnseen("noted", "thread", { n: 3 })).ok);
      }

      // L2: everybody sees the same; L8: with what was shown before.
      const fresh = await open();
      await fresh.tab.waitFor((last) => window.lab.view("thread").text === last, numbers(3));
      const { messages } = await fresh.view(THREAD);
      expect(messages.join("\n")).toContain(text);
      for (const { tab } of [survivor, victim]) {
        await tab.waitFor(
          (all) => JSON.stringify(window.lab.view("thread").messages) === all,
          JSON.stringify(messages),
        );
      }
      // L3: a pipeline that is handed what it does not accept says so.
      expect([...fresh.tab.errors]).toEqual([]);
      // L5, L13: no run was executed twice.
      const started = (await survivor.notes()).filter(({ is }) => is === "started").map(({ runId }) => runId);
      expect(started).toEqual([...new Set(started)]);
    });
  }

  test.runIf(engine === "chromium")("every transition of the state machine is surrounded by such points", () => {
    const all = Object.values(POINTS_OF).flat();
    expect([...met].sort()).toEqual([...new Set(all)].sort());
    expect(
      Object.keys(POINTS_OF).filter((transition) => POINTS_OF[transition as keyof typeof POINTS_OF].length === 0),
    ).toEqual([]);
  });
});
