import "fake-indexeddb/auto";
import { describe, expect, test } from "vitest";
import { encryption } from "../encryption/fast-key.js";
import { brokenHere, placed } from "./devices.suite.js";
import { describeLostConnection } from "./lost-connection.suite.js";
import { describeMessagePages } from "./message-page.suite.js";
import { describeOpening } from "./opening.suite.js";
import { describeRunStore } from "./run-store.suite.js";
import { freshName, opened, openWith } from "./stores.js";

describeRunStore("IndexedDB run store, encrypted", () => opened(freshName(), { encryption }));
describeMessagePages("IndexedDB run store, encrypted", () => opened(freshName(), { encryption }), 30);

describe("encrypted", () => {
  openWith({ encryption });
  describeLostConnection("A connection that falls");
  describeOpening("Opening and giving way");
});

test("a host without the key places no run of another device in an encrypted database, reopens none and takes up no branch", async () => {
  const dbName = freshName();
  const store = opened(dbName, { encryption });
  await brokenHere(store);
  const keyless = opened(dbName);
  await expect(keyless.placeRun(placed("r2", { prevRunIndex: 0 }))).rejects.toMatchObject({ code: "locked" });
  await expect(keyless.placeRun(placed("r1", { prevRunIndex: 0 }))).rejects.toMatchObject({ code: "locked" });
  await expect(keyless.reopen("t", 1, "h")).rejects.toMatchObject({ code: "locked" });
  await expect(keyless.activate("t", 0)).rejects.toMatchObject({ code: "locked" });
  expect(await store.run("t", 1)).toMatchObject({ status: "broken" });
});
