import "fake-indexeddb/auto";
import { describe } from "vitest";
import { encryption } from "../encryption/fast-key.js";
import { openWith } from "./kit.js";
import { describeSaver } from "./saver.suite.js";

describeSaver("IndexedDBSaver, on fake-indexeddb");

describe("encrypted", () => {
  openWith({ encryption });
  describeSaver("IndexedDBSaver, on fake-indexeddb");
});
