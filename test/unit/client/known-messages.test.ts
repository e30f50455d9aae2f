import { EventType, type Message } from "@ag-ui/client";
import { expect, test } from "vitest";
import { KnownMessages } from "../../../src/client/known-messages.js";
import { user } from "../runner/kit.js";

const answer: Message = { id: "a", role: "assistant", content: "yes" };

function shown(): KnownMessages {
  const known = new KnownMessages();
  known.note({ type: EventType.MESSAGES_SNAPSHOT, messages: [user("u"), answer] });
  known.show([user("u"), answer], "all");
  return known;
}

test("only what the thread does not have is sent", () => {
  expect(shown().news([user("u"), answer, user("new")])).toEqual([user("new")]);
});

test("a message that was taken out makes it another history", () => {
  expect(shown().news([user("u"), user("new")])).toBeUndefined();
});

test("a question that was edited under its id makes it another history", () => {
  expect(shown().news([user("u", "edited"), answer])).toBeUndefined();
});

test("what the thread has and the agent never showed is no reason to send everything", () => {
  const known = new KnownMessages();
  known.note({ type: EventType.MESSAGES_SNAPSHOT, messages: [user("u"), answer] });
  expect(known.news([user("new")])).toEqual([user("new")]);
});

test("an activity, which no client sends, is no reason to send everything", () => {
  const activity: Message = { id: "s", role: "activity", activityType: "a2ui-surface", content: {} };
  const known = shown();
  known.note({ type: EventType.ACTIVITY_SNAPSHOT, messageId: "s", activityType: "a2ui-surface", content: {} });
  known.show([user("u"), answer, activity], "all");
  known.load([{ ...activity, id: "earlier" }]);
  expect(known.news([user("u"), answer, user("new")])).toEqual([user("new")]);
});

test("a call whose parent is no assistant message gets one under its own id, which is not sent again (L2)", () => {
  const known = new KnownMessages();
  known.note({ type: EventType.TOOL_CALL_RESULT, messageId: "result", toolCallId: "other", content: "" });
  known.note({ type: EventType.TOOL_CALL_START, toolCallId: "call", toolCallName: "f", parentMessageId: "result" });
  known.note({ type: EventType.TOOL_CALL_START, toolCallId: "orphan", toolCallName: "f", parentMessageId: "" });
  expect(["result", "call", "orphan"].filter((id) => known.isUnsent(id))).toEqual([]);
});

test("what a run takes out of the thread was removed by nobody here: the next message is news alone (L20)", () => {
  const known = shown();
  known.note({ type: EventType.MESSAGES_SNAPSHOT, messages: [user("u")] });
  expect(known.news([user("u"), user("new")])).toEqual([user("new")]);
});
