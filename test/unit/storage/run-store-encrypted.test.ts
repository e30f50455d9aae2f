import "fake-indexeddb/auto";
import { describe } from "vitest";
import { encryption } from "../encryption/fast-key.js";
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
