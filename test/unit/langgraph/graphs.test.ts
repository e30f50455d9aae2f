import "fake-indexeddb/auto";
import { describe } from "vitest";
import { encryption } from "../encryption/fast-key.js";
import { describeGraphs } from "./graphs.suite.js";
import { openWith } from "./kit.js";

describeGraphs("graphs over IndexedDBSaver, on fake-indexeddb");

describe("encrypted", () => {
  openWith({ encryption });
  describeGraphs("graphs over IndexedDBSaver, on fake-indexeddb");
});
