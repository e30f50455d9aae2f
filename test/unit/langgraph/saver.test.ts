import "fake-indexeddb/auto";
import { describeSaver } from "./saver.suite.js";

describeSaver("IndexedDBSaver, on fake-indexeddb");
