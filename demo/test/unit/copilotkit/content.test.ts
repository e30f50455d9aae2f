import { expect, test } from "vitest";
import { textOf, withText } from "../../../copilotkit/content.js";

const file = { type: "image", source: { type: "data", value: "eA==", mimeType: "image/png" } } as const;
const text = (said: string) => ({ type: "text", text: said }) as const;

test("a question is edited by its words, and keeps its files", () => {
  expect(textOf("What?")).toBe("What?");
  expect(withText("What?", "Who?")).toBe("Who?");
  const parts = [text("What"), file, text("is it?")];
  expect(textOf(parts)).toBe("What\nis it?");
  expect(withText(parts, "Who is it?")).toEqual([text("Who is it?"), file]);
  expect(textOf([file])).toBe("");
});
