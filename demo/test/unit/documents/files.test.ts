import "fake-indexeddb/auto";
import { deleteDB } from "idb";
import { afterEach, expect, test } from "vitest";
import { closeFiles, FILES_DB, FileStoreError, getFile, putFile } from "../../../documents/files.js";

afterEach(async () => {
  await closeFiles();
  await deleteDB(FILES_DB);
});

const FILE = { name: "a.txt", type: "text/plain", text: "grüße" };
/** printf 'grüße' | sha256sum */
const ID = "8285d1ad84c6b6e475d3b50dbf90389c8c7a07a278d9ae46d5698cbe872e3834";

test("a file is kept under the hash of its text, with its size in bytes", async () => {
  const ref = await putFile(FILE);
  expect(ref).toEqual({ id: ID, name: "a.txt", type: "text/plain", size: 7 });
  expect(await getFile(ref.id)).toMatchObject({ text: "grüße", name: "a.txt" });
});

test("the same text is kept once, and each reference bears its own name", async () => {
  const first = await putFile(FILE);
  const second = await putFile({ ...FILE, name: "b.txt" });
  expect(second.id).toBe(first.id);
  expect(second.name).toBe("b.txt");
  expect((await getFile(first.id)).name).toBe("a.txt");
});

test("a file that is not there is missing", async () => {
  await expect(getFile("0".repeat(64))).rejects.toMatchObject({ name: "FileStoreError", code: "missing" });
});

test("another context may delete the database, and the next call opens it again", async () => {
  const { id } = await putFile(FILE);
  await deleteDB(FILES_DB);
  await expect(getFile(id)).rejects.toBeInstanceOf(FileStoreError);
  expect((await putFile(FILE)).id).toBe(id);
});

test("a database of a newer version is unavailable", async () => {
  const { openDB } = await import("idb");
  (await openDB(FILES_DB, 99)).close();
  await expect(putFile(FILE)).rejects.toMatchObject({ code: "unavailable" });
});
