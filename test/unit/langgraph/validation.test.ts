import "fake-indexeddb/auto";
import { describeValidation } from "./validation.suite.js";

describeValidation("IndexedDBSaver, on fake-indexeddb");
