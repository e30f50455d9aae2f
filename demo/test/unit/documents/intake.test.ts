import { describe, expect, test } from "vitest";
import {
  IntakeError,
  MAX_FILE_BYTES,
  type ReadableFile,
  readTextFile,
  typeOfPaste,
} from "../../../documents/intake.js";

function fileOf(name: string, content: string | Uint8Array<ArrayBuffer>, type = ""): ReadableFile {
  return new File([content], name, { type });
}

async function refusal(file: ReadableFile): Promise<IntakeError> {
  const error: unknown = await readTextFile(file).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof IntakeError)) throw new Error("Not refused");
  return error;
}

describe("what is taken", () => {
  test.each([
    ["a.txt", "text/plain"],
    ["A.MD", "text/markdown"],
    ["a.csv", "text/csv"],
    ["a.tsv", "text/tab-separated-values"],
  ])("%s is %s, whatever the browser says", async (name, type) => {
    expect(await readTextFile(fileOf(name, "some text", "application/vnd.ms-excel"))).toEqual({
      name,
      type,
      text: "some text",
    });
  });

  test("a name that says nothing goes by the browser's type", async () => {
    expect((await readTextFile(fileOf("README", "x", "text/markdown; charset=utf-8"))).type).toBe("text/markdown");
  });

  test("the byte order mark of UTF-8 is not text", async () => {
    expect((await readTextFile(fileOf("a.csv", new Uint8Array([0xef, 0xbb, 0xbf, 0x61])))).text).toBe("a");
  });

  test.each([
    ["little", [0xff, 0xfe, 0xfc, 0x00, 0x62, 0x00]],
    ["big", [0xfe, 0xff, 0x00, 0xfc, 0x00, 0x62]],
  ])("UTF-16 with a mark, %s end first", async (_end, bytes) => {
    expect((await readTextFile(fileOf("a.txt", new Uint8Array(bytes)))).text).toBe("üb");
  });

  test("a path is no part of the name", async () => {
    expect((await readTextFile(fileOf("C:\\docs\\a\u202e.txt", "x"))).name).toBe("a.txt");
  });
});

describe("what is refused", () => {
  test("a type that is not text", async () => {
    expect(await refusal(fileOf("photo.png", "x", "image/png"))).toMatchObject({
      code: "unsupported-type",
      message: expect.stringContaining("Drop a text, Markdown, CSV or TSV file") as string,
    });
  });

  test("more than 5 MB, without reading it", async () => {
    const file: ReadableFile = {
      name: "big.csv",
      type: "",
      size: MAX_FILE_BYTES + 1,
      arrayBuffer: () => Promise.reject(new Error("was read")),
    };
    expect(await refusal(file)).toMatchObject({
      code: "too-large",
      message: expect.stringContaining("Split it") as string,
    });
  });

  test.each([
    ["no bytes", ""],
    ["white space only", " \n\t\n"],
    ["a mark only", new Uint8Array([0xef, 0xbb, 0xbf])],
  ])("nothing in it: %s", async (_what, content) => {
    expect(await refusal(fileOf("a.txt", content))).toMatchObject({ code: "empty" });
  });

  test.each([
    ["NUL bytes", [0x61, 0x00, 0x62]],
    ["no UTF-8", [0x4d, 0xfc, 0x6c, 0x6c]],
    ["half a surrogate pair of UTF-16", [0xff, 0xfe, 0x3d, 0xd8]],
  ])("not text: %s", async (_what, bytes) => {
    expect(await refusal(fileOf("a.txt", new Uint8Array(bytes)))).toMatchObject({
      code: "not-text",
      message: expect.stringContaining("UTF-8") as string,
    });
  });

  test("what the browser cannot read, with its reason", async () => {
    const cause = new DOMException("gone", "NotFoundError");
    const file: ReadableFile = { name: "a.txt", type: "", size: 1, arrayBuffer: () => Promise.reject(cause) };
    expect(await refusal(file)).toMatchObject({ code: "unreadable", cause });
  });
});

describe("the type of a pasted text", () => {
  test.each([
    ["text/csv", "a,b\n1,2\n3,4\n"],
    ["text/csv", 'a;b\n"x;y";2\n3;4\n'],
    ["text/tab-separated-values", "a\tb\n1\t2\n3\t4"],
    ["text/markdown", "# Title\n\nText."],
    ["text/plain", "One, two.\nThree, four.\nAnd then he said, come in and sit down.\n"],
  ])("%s", (type, text) => {
    expect(typeOfPaste(text)).toBe(type);
  });
});
