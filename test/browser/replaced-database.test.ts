import { testReplacedDatabase } from "../unit/encryption/replaced-database.suite.js";

testReplacedDatabase("a database that is deleted amid a write, in the browser");
