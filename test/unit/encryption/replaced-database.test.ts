import "fake-indexeddb/auto";
import { testReplacedDatabase } from "./replaced-database.suite.js";

testReplacedDatabase("a database that is deleted amid a write, in fake-indexeddb");
