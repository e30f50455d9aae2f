import { testKeptDatabase } from "../unit/storage/kept-database.suite.js";

testKeptDatabase("in the browser");
