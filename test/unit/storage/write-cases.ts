import { EventType } from "@ag-ui/client";
import type { Claim, RunStore } from "../../../src/storage/run-store.js";
import { brokenHere, placed } from "./devices.suite.js";
import { baseAt, chunkOf, claimed, delta, foreignEnd, leaving, request, runOn, settlement, withRuns } from "./kit.js";
import { recovery, waiting } from "./waiting.suite.js";

/** A write, the stores of its transaction, and what stands in the log before it. Both give the same whenever they are done. */
export interface Write {
  readonly name: string;
  readonly stores: readonly string[];
  readonly before: (store: RunStore) => Promise<unknown>;
  readonly write: (store: RunStore) => Promise<unknown>;
  /** It finds out that there is nothing to write. */
  readonly inVain?: true;
}

/** The run that is live after {@link live}. */
export const claim: Claim = { threadId: "t", runIndex: 1, runId: "r1", epoch: 2, holder: "host-1" };
export const closing = {
  runStarted: { type: EventType.RUN_STARTED },
  customs: [],
  terminal: { type: EventType.RUN_ERROR },
};

export const idle = (store: RunStore) => withRuns(store, "t", ["r0"]);
export const live = async (store: RunStore): Promise<void> => {
  const head = await idle(store);
  await claimed(store, "t", "r1", { base: head, prevRunIndex: 0 });
  await store.append(claim, chunkOf(claim, 0, [delta("a"), delta("b")]));
};
const asked = async (store: RunStore): Promise<void> => {
  await live(store);
  await store.requestStop("t", "r1", 5);
};
const broken = async (store: RunStore): Promise<void> => {
  await live(store);
  await store.settleForeign("t", "r1", "broken", 4_000, foreignEnd);
};

const queued = async (store: RunStore): Promise<void> => {
  await idle(store);
  await queuedAlone(store);
};
const queuedAlone = async (store: RunStore): Promise<void> => {
  for (const runId of ["w1", "w2", "w3"]) await store.addWaiting(waiting(runId), 10);
};

export const SETTLE = ["heads", "threads", "runs", "chunks", "messages", "states"];

const ALL = [...SETTLE, "meta"];

export const WRITES: readonly Write[] = [
  {
    name: "a claim",
    stores: ["heads", "threads", "runs", "meta"],
    before: idle,
    write: (store) => store.claim(request("t", "r1", { base: { activeRunIndex: 0, epoch: 1 }, prevRunIndex: 0 })),
  },
  {
    name: "an append",
    stores: ["heads", "chunks"],
    before: asked,
    write: (store) => store.append(claim, chunkOf(claim, 2, [delta("c")])),
  },
  {
    name: "a settlement",
    stores: SETTLE,
    before: live,
    write: (store) => store.settle(claim, settlement(claim, 2)),
  },
  {
    name: "a settlement that a stop request overrules",
    inVain: true,
    stores: SETTLE,
    before: asked,
    write: (store) => store.settle(claim, settlement(claim, 2, { ownTerminal: false })),
  },
  {
    name: "a foreign end",
    stores: ["heads", "threads", "runs", "chunks", "meta"],
    before: live,
    write: (store) => store.settleForeign("t", "r1", "broken", 4_000, foreignEnd),
  },
  {
    name: "a derivation",
    stores: ["heads", "runs", "messages", "states", "meta"],
    before: broken,
    write: (store) => store.derive("t", 1, closing, leaving("a", "derived", { n: 1 })),
  },
  {
    name: "a first stop request",
    stores: ["heads"],
    before: live,
    write: (store) => store.requestStop("t", "r1", 5),
  },
  {
    name: "a later stop request",
    stores: ["heads"],
    before: asked,
    write: (store) => store.requestStop("t", "r1", 6, "superseded"),
  },
  {
    name: "an update of a thread",
    stores: ["threads", "meta"],
    before: live,
    write: (store) => store.updateThread("t", { title: "named", archived: true, pinned: true }),
  },
  {
    name: "an update of a thread that is not there",
    inVain: true,
    stores: ["threads", "meta"],
    before: live,
    write: (store) => store.updateThread("nowhere", { title: "named" }),
  },
  {
    name: "a deletion",
    stores: ["heads", "threads", "meta", "waiting"],
    before: idle,
    write: (store) => store.deleteThread("t"),
  },
  {
    name: "a piece of a deletion",
    stores: ["chunks"],
    before: idle,
    write: (store) => store.deleteThread("t"),
  },
  {
    name: "the end of a deletion",
    stores: ["meta"],
    before: idle,
    write: (store) => store.deleteThread("t"),
  },
  {
    name: "the deletion of a thread that only has waiting runs",
    stores: ["heads", "threads", "runs", "meta", "waiting"],
    before: queuedAlone,
    write: (store) => store.deleteThread("t"),
  },
  {
    name: "an addition to those that wait",
    stores: ["heads", "runs", "waiting", "meta"],
    before: idle,
    write: (store) => store.addWaiting(waiting("w1"), 10),
  },
  {
    name: "a move",
    stores: ["waiting", "meta"],
    before: queued,
    write: (store) => store.moveWaiting("t", "w3", "w1"),
  },
  {
    name: "the removal of a waiting run",
    stores: ["waiting"],
    before: queued,
    write: (store) => store.removeWaiting("t", "w1"),
  },
  {
    name: "the removal of all waiting runs",
    stores: ["waiting"],
    before: queued,
    write: (store) => store.clearWaiting("t"),
  },
  {
    name: "an update of a waiting run",
    stores: ["waiting"],
    before: queued,
    write: (store) => store.updateWaiting("t", "w1", { notBefore: 9_000 }),
  },
  {
    name: "a claim of a waiting run",
    stores: ["heads", "threads", "runs", "meta", "waiting"],
    before: queued,
    write: (store) =>
      store.claim(request("t", "w1", { base: { activeRunIndex: 0, epoch: 1 }, prevRunIndex: 0, waiting: true })),
  },
  {
    name: "a foreign end that a run goes on with",
    stores: ["heads", "threads", "runs", "chunks", "meta", "waiting"],
    before: live,
    write: (store) => store.settleForeign("t", "r1", "broken", 4_000, foreignEnd, () => recovery("r1")),
  },
  {
    name: "a broken end that a run goes on with",
    stores: [...SETTLE, "waiting"],
    before: live,
    write: (store) => store.settle(claim, settlement(claim, 2, { status: "broken", recovery: recovery("r1") })),
  },
  {
    name: "a cut",
    stores: ["heads", "threads", "runs", "messages", "states", "meta"],
    before: (store) => withRuns(store, "t", ["r0", "r1", "r2"]),
    write: (store) => store.cut("t", 3, baseAt(1)),
  },
  {
    name: "a broken run that goes on",
    stores: ALL,
    before: brokenHere,
    write: (store) => store.reopen("t", 1, "host-2"),
  },
  {
    name: "a whole run of another device",
    stores: ALL,
    before: idle,
    write: (store) => store.placeRun(placed("r1", { prevRunIndex: 0 })),
  },
  {
    name: "a whole run beside the path",
    stores: ALL,
    before: live,
    write: (store) => store.placeRun(placed("r2", { prevRunIndex: 0, activates: false })),
  },
  {
    name: "the replacement of a broken run",
    stores: ALL,
    before: async (store) => {
      await brokenHere(store);
      await runOn(store, "t", "r2", 1);
    },
    write: (store) => store.placeRun(placed("r1", { prevRunIndex: 0 })),
  },
  {
    name: "another end of the path",
    stores: ["heads", "runs", "meta"],
    before: (store) => withRuns(store, "t", ["r0", "r1"]),
    write: (store) => store.activate("t", 0),
  },
];
