import { UserMessageSchema } from "@ag-ui/core/schemas";
import type { Message } from "@ag-ui/core";
import { expect, test } from "vitest";
import { fileMessage, fileRefOf, PASTE_LIMIT, requestOf, splitPaste } from "../../../documents/message.js";

const REF = { id: "a".repeat(64), name: "a.csv", type: "text/csv", size: 12 };
const user = (content: Message["content"]): Message => ({ id: "u", role: "user", content }) as Message;

test("a message with a file is a valid user message that gives the file back", () => {
  const content = fileMessage("Look", REF);
  expect(UserMessageSchema.parse({ id: "m", role: "user", content }).content).toEqual(content);
  expect(content.map(fileRefOf)).toEqual([undefined, REF]);
});

test("a message without text has no text part", () => {
  expect(fileMessage(" ", [REF, REF])).toHaveLength(2);
});

test.each([
  ["another scheme", { type: "document", source: { type: "url", value: "https://example.org/a" } }],
  ["no hash", { type: "document", source: { type: "url", value: "reader-file:__proto__" } }],
  ["no document", { type: "image", source: { type: "url", value: `reader-file:${REF.id}` } }],
] as const)("no file: %s", (_what, part) => {
  expect(fileRefOf(part)).toBeUndefined();
});

test("metadata of a stranger is not trusted", () => {
  const source = { type: "url", value: `reader-file:${REF.id}` } as const;
  expect(fileRefOf({ type: "document", source, metadata: { name: 7, size: "x" } })).toEqual({
    id: REF.id,
    name: "Unnamed file",
    type: "text/plain",
    size: 0,
  });
});

test("documents after the last answer are fresh, older ones are known", async () => {
  const other = { ...REF, id: "b".repeat(64) };
  const request = await requestOf([
    user(fileMessage("", REF)),
    { id: "a", role: "assistant", content: "read" },
    user(fileMessage("And?", other)),
  ]);
  expect(request.documents.map(({ id }) => id)).toEqual([REF.id, other.id]);
  expect(request.fresh.map(({ id }) => id)).toEqual([other.id]);
  expect(request.question).toBe("And?");
});

test("a long text is a document, a question before or after it stays a question", async () => {
  const text = "Many words.\n\n".repeat(PASTE_LIMIT / 10).trim();
  expect(splitPaste(text)).toEqual({ question: "", text });
  expect(splitPaste(`What is it?\n\n${text}`)).toEqual({ question: "What is it?", text });
  expect(splitPaste(`${text}\n\nWhat is it?`)).toEqual({ question: "What is it?", text });
  const { fresh } = await requestOf([user(text)]);
  expect(fresh).toMatchObject([{ name: "Pasted text", text }]);
});
