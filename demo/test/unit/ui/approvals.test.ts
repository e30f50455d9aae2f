import { expect, test } from "vitest";
import type { App } from "../../../ui/app.js";
import { approvals } from "../../../ui/view/approvals.js";
import { markupOf } from "./markup.js";

test("a person who is asked for permission is shown the arguments to their end", () => {
  const args = { note: "x".repeat(30_000), to: "somebody else" };
  const app = {
    agent: { name: "Model" },
    chat: {
      now: { interrupts: [{ id: "i", reason: "approval", toolCallId: "c" }] },
      callOf: () => ({ id: "c", type: "function", function: { name: "send", arguments: JSON.stringify(args) } }),
      decisions: new Map(),
      isFree: true,
    },
  } as unknown as App;
  const shown = markupOf(approvals(app));
  expect(shown).toContain("Model asks for permission</strong> to call <code>send</code>");
  expect(shown).toContain(JSON.stringify(args, null, 2));
});
