import "fake-indexeddb/auto";
import { describeGraphs } from "./graphs.suite.js";

describeGraphs("graphs over IndexedDBSaver, on fake-indexeddb");
