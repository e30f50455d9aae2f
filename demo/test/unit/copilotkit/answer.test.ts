import { EventType } from "@ag-ui/core";
import { expect, test } from "vitest";
import { inputOf, user } from "../../../../test/unit/runner/kit.js";
import { answer } from "../../../copilotkit/agent/answer.js";

/** What the demo's agent says. */
async function saidTo(text: string): Promise<string> {
  let said = "";
  const { signal } = new AbortController();
  for await (const event of answer(inputOf("t", "r", [user("u", text)]), { signal })) {
    if (event.type === EventType.TEXT_MESSAGE_CONTENT) said += event.delta;
  }
  return said;
}

test.each(["constructor", "toString", "__proto__", "nothing that it knows"])("“%s” is no command", async (text) => {
  expect(await saidTo(text)).toContain(`You said: ${text}. Try one of: markdown`);
});
