import "fake-indexeddb/auto";
import { existsSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "vitest";
import { makeDatabase } from "./fixtures/make-database.js";
import { everythingIn, restored, testKeptDatabase, textOf } from "./kept-database.suite.js";

testKeptDatabase("in fake-indexeddb");

/** `MAKE_DATABASE=database-v4 npm test -- unit`, by hand, for a new version: what is kept already is never made again. */
const name = process.env["MAKE_DATABASE"];
const fileOf = (ending: string): string => fileURLToPath(new URL(`fixtures/${name}.${ending}`, import.meta.url));

test.runIf(name !== undefined && !existsSync(fileOf("dump")))("a database is made and kept", async () => {
  const dump = await makeDatabase();
  writeFileSync(fileOf("dump"), textOf(dump));
  writeFileSync(fileOf("expected.json"), JSON.stringify(await everythingIn(await restored(dump)), undefined, 2));
});
