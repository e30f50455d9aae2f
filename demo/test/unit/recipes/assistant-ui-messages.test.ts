import type { Message } from "@ag-ui/core";
import { describe, expect, test } from "vitest";
import { endOf, lastTurn, messagesToRun, onlyAsks, shownMessages } from "../../../recipes/assistant-ui-messages.js";

const user = (id: string, content = id): Message => ({ id, role: "user", content });
const assistant = (id: string, ...calls: string[]): Message => ({
  id,
  role: "assistant",
  content: id,
  ...(calls.length > 0 && {
    toolCalls: calls.map((call) => ({ id: call, type: "function", function: { name: "look", arguments: "{}" } })),
  }),
});
const result = (id: string, toolCallId: string): Message => ({ id, role: "tool", toolCallId, content: "seen" });

const ids = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);
const idle = { is: "idle" } as const;
const ended = (status: "finished" | "errored" | "stopped" | "broken", message?: string) =>
  ({ is: "idle", last: { runId: "r", status, ...(message !== undefined && { error: { message } }) } }) as const;

describe("what a run begins with, of what assistant-ui sends", () => {
  const path = [user("u1"), assistant("a1"), user("u2"), assistant("a2")];
  const all = new Set(ids(path));
  /** As assistant-ui has it: with ids of its own for answers. */
  const own = (id: string): Message => assistant(`own ${id}`);

  test("a question goes behind the path, whatever ids the answers have", () => {
    const wanted = [user("u1"), own("a1"), user("u2"), own("a2"), user("n")];
    expect(ids(messagesToRun(path, all, wanted))).toEqual(["u1", "a1", "u2", "a2", "n"]);
    expect(ids(messagesToRun([], new Set(), [user("n")]))).toEqual(["n"]);
  });

  test("a question whose turn is known is answered anew, and what came behind it leaves", () => {
    expect(ids(messagesToRun(path, all, [user("u1"), own("a1"), user("u2")]))).toEqual(["u1", "a1", "u2"]);
    expect(ids(messagesToRun(path, all, [user("u1")]))).toEqual(["u1"]);
  });

  test("a question in the place of another one cuts that one", () => {
    expect(ids(messagesToRun(path, all, [user("u1"), own("a1"), user("n")]))).toEqual(["u1", "a1", "n"]);
    expect(ids(messagesToRun(path, all, [user("n")]))).toEqual(["n"]);
  });

  test("turns that the page has not shown stay (L20)", () => {
    const wanted = [user("u1"), own("a1"), user("n")];
    expect(ids(messagesToRun(path, new Set(["u1", "a1"]), wanted))).toEqual(["u1", "a1", "u2", "a2", "n"]);
    expect(ids(messagesToRun(path, new Set(), [user("n")]))).toEqual(["u1", "a1", "u2", "a2", "n"]);
  });

  test("a result goes to a call that has none, once, and before the next question", () => {
    const calling = [user("u1"), assistant("a1", "c1", "c2"), result("t1", "c1")];
    const seen = new Set(["u1"]);
    const wanted = [user("u1"), own("a1"), result("own t1", "c1"), result("own t2", "c2"), result("t3", "other")];
    expect(ids(messagesToRun(calling, seen, wanted))).toEqual(["u1", "a1", "t1", "own t2"]);
    expect(ids(messagesToRun(calling, seen, [...wanted, user("n")]))).toEqual(["u1", "a1", "t1", "own t2", "n"]);
  });

  test("only a question behind the path can wait for another run: no edit, no regeneration, no result", () => {
    const asks = (...wanted: Message[]): boolean => onlyAsks(path, messagesToRun(path, all, wanted));
    expect(asks(user("u1"), own("a1"), user("u2"), own("a2"), user("n"))).toBe(true);
    expect(asks(user("u1"), own("a1"), user("n"))).toBe(false);
    expect(asks(user("u1"), own("a1"), user("u2"))).toBe(false);
    expect(asks(user("u1"), own("a1"), user("u2"), own("a2"))).toBe(false);
    const calling = [user("u1"), assistant("a1", "c1")];
    expect(onlyAsks(calling, messagesToRun(calling, all, [user("u1"), own("a1"), result("t1", "c1")]))).toBe(false);
  });

  test("an answer to an interrupt begins with the whole path", () => {
    expect(messagesToRun(path, all, [user("u1"), own("a1"), user("u2"), own("a2")])).toEqual(path);
  });
});

describe("what assistant-ui shows of a thread", () => {
  const interrupts = [{ id: "i", reason: "confirmation" }];

  test("the last turn begins with the last question", () => {
    const { asked, answer } = lastTurn([user("u1"), assistant("a1"), user("u2"), assistant("a2"), result("t", "c")]);
    expect([ids(asked), ids(answer)]).toEqual([
      ["u1", "a1", "u2"],
      ["a2", "t"],
    ]);
    expect(lastTurn([assistant("a")])).toEqual({ asked: [], answer: [assistant("a")] });
  });

  test("open interrupts are with the last answer", () => {
    const messages = [user("u1"), assistant("a1"), user("u2"), assistant("a2")];
    expect(shownMessages({ messages, interrupts: [], run: idle })).toEqual(messages);
    const shown = shownMessages({ messages, interrupts, run: ended("finished") });
    expect(shown.slice(0, 3)).toEqual(messages.slice(0, 3));
    expect(shown[3]).toEqual({ ...messages[3], metadata: { custom: { agui: { interrupts } } } });
  });

  test("an interrupt, or an end, before the first answer has an empty one", () => {
    const messages = [user("u1"), assistant("a1"), user("u2")];
    const asked = shownMessages({ messages, interrupts, run: ended("finished") });
    expect(asked[3]).toEqual({
      id: "u2-end",
      role: "assistant",
      content: "",
      metadata: { custom: { agui: { interrupts } } },
    });
    expect(ids(shownMessages({ messages, interrupts: [], run: ended("errored", "no") }))).toEqual([
      "u1",
      "a1",
      "u2",
      "u2-end",
    ]);
    expect(shownMessages({ messages, interrupts: [], run: ended("finished") })).toEqual(messages);
    expect(shownMessages({ messages: [], interrupts: [], run: ended("stopped") })).toEqual([]);
  });

  test("a stop is no error (L12)", () => {
    expect(endOf(idle)).toBeUndefined();
    expect(endOf(ended("finished"))).toBeUndefined();
    expect(endOf({ is: "running", runId: "r", runIndex: 0 })).toBeUndefined();
    expect(endOf(ended("stopped"))).toEqual({ type: "incomplete", reason: "cancelled" });
    expect(endOf(ended("errored", "no"))).toEqual({ type: "incomplete", reason: "error", error: "no" });
    expect(endOf(ended("broken"))).toEqual({ type: "incomplete", reason: "error", error: "broken" });
  });
});
