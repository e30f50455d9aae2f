import "fake-indexeddb/auto";
import { expect, test } from "vitest";
import { InMemoryCheckpointStore } from "../../../src/checkpoint/memory/in-memory-checkpoint-store.js";
import { systemClock } from "../../../src/platform/clock.js";
import { encryption } from "../encryption/fast-key.js";
import { describeCheckpointStore } from "./checkpoint-store.suite.js";
import { checkpoint, freshName, openedStore } from "./kit.js";

describeCheckpointStore("InMemoryCheckpointStore", () => new InMemoryCheckpointStore());
describeCheckpointStore("IndexedDBCheckpointStore, on fake-indexeddb", () => openedStore());
describeCheckpointStore("IndexedDBCheckpointStore, encrypted, on fake-indexeddb", () =>
  openedStore(freshName(), { encryption }),
);

test.each([
  ["id", { ids: () => "" }],
  ["timestamp", { clock: { ...systemClock, now: () => NaN } }],
])("a fork with a wrong %s is refused, and nothing is written", async (field, options) => {
  for (const store of [new InMemoryCheckpointStore(options), openedStore(undefined, options)]) {
    await store.save(checkpoint("a"));
    const refused = { code: "invalid-input", details: { field: `checkpoint.${field}` } };
    await expect(store.fork("a")).rejects.toMatchObject(refused);
    expect(await store.list("graph")).toHaveLength(1);
  }
});
