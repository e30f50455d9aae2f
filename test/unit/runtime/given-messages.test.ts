import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test } from "vitest";
import { GivenMessages } from "../../../src/runtime/given-messages.js";
import { user } from "../runner/kit.js";

const snapshot = (ids: readonly string[]): BaseEvent => ({
  type: EventType.MESSAGES_SNAPSHOT,
  messages: ids.map((id) => user(id)),
});
const begun = (messageId: string): BaseEvent => ({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" });

test("what a page does not send of what it has, it has cut; each page by itself, thread by thread", () => {
  const given = new GivenMessages();
  given.noting("p", "t")(snapshot(["a", "b"]));
  given.noting("p", "t")(begun("c"));
  expect(given.cutOf("p", "t", [user("a")])).toEqual(["b", "c"]);
  expect(given.cutOf("p", "t", [user("a"), user("b"), user("c"), user("n")])).toEqual([]);
  expect(given.cutOf("p", "other", [user("a")])).toBeUndefined();
  expect(given.cutOf("q", "t", [user("a")])).toBeUndefined();
});

test("a page that sends nothing of what it has sends only what is new", () => {
  const given = new GivenMessages();
  given.noting("p", "t")(snapshot(["a", "b"]));
  expect(given.cutOf("p", "t", [user("n")])).toEqual([]);
  given.sent("p", "t", [user("n")]);
  expect(given.cutOf("p", "t", [user("b"), user("n")])).toEqual(["a"]);
});

test("what a page has cut, or a snapshot does not have, it has no more", () => {
  const given = new GivenMessages();
  given.noting("p", "t")(snapshot(["a", "b"]));
  given.sent("p", "t", [user("a"), user("n")]);
  expect(given.cutOf("p", "t", [user("a")])).toEqual(["n"]);
  given.noting("p", "t")(snapshot(["a", "x"]));
  expect(given.cutOf("p", "t", [user("a")])).toEqual(["x"]);
});

test("what is kept is bounded: the threads that were used last (L14)", () => {
  const given = new GivenMessages();
  const many = (thread: string, count: number): void =>
    given.noting("p", thread)(snapshot(Array.from({ length: count }, (_, n) => `${thread}-${n}`)));
  many("one", 60_000);
  many("two", 30_000);
  many("three", 30_000);
  expect(given.cutOf("p", "one", [user("one-0")])).toBeUndefined();
  expect(given.cutOf("p", "two", [user("two-0")])).toHaveLength(29_999);
  many("huge", 100_001);
  for (const thread of ["two", "three", "huge"]) expect(given.cutOf("p", thread, [])).toBeUndefined();
});
