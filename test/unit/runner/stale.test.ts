import type { Message, RunAgentInput } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { countReads } from "../storage/idb-reads.js";
import { agentOf, collect, counter, inputOf, makeRunner, user } from "./kit.js";

type Runner = ReturnType<typeof makeRunner>;
type Case = [what: string, sent: readonly Message[], shown: readonly string[], asked?: Asked];
type Asked = Partial<RunAgentInput> & { readonly branchBefore?: string };

const answer = (id: string): Message => ({ id, role: "assistant", content: "" });
const ids = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);

async function run(runner: Runner, runId: string, messages: readonly Message[], asked: Asked = {}): Promise<void> {
  const { branchBefore, ...fields } = asked;
  const input = { ...inputOf("t", runId, [...messages]), ...fields };
  const agent = agentOf(counter(1));
  await collect(runner.run({ threadId: "t", agent, input, ...(branchBefore !== undefined && { branchBefore }) }));
}

/** A thread of two turns: u1, r1-a, u2, r2-a. */
async function twoTurns(): Promise<Runner> {
  const runner = makeRunner();
  await run(runner, "r1", [user("u1")]);
  await run(runner, "r2", [user("u2")]);
  return runner;
}

const [u1, a1, u2, a2] = [user("u1"), answer("r1-a"), user("u2"), answer("r2-a")];
const tool = (id: string): Message => ({ id, role: "tool", toolCallId: "call", content: "done" });
const system = (id: string): Message => ({ id, role: "system", content: "be brief" });
const whole = ["u1", "r1-a", "u2", "r2-a"];

describe("what a sender merely lacks stays (L20)", () => {
  test.each<Case>([
    ["the newest turn", [u1, a1, user("n")], ["n"]],
    ["all but the first message", [u1, user("n")], ["n"]],
    ["all", [user("n")], ["n"]],
    ["an answer that it never had", [u1, u2, user("n")], ["n"]],
    ["what stands in the middle", [u1, a2, user("n")], ["n"]],
    ["what stands in the middle, and adds nothing", [u1, a2], []],
    ["the beginning", [u2, a2, user("n")], ["n"]],
    ["the order", [u2, a2, u1, a1, user("n")], ["n"]],
    ["the order, and adds nothing", [a2, u2, a1, u1], []],
    ["the newest turn, and has a message of its own before an answer", [u1, user("n"), a1], ["n"]],
    ["the newest turn, and answers a tool call", [u1, a1, tool("n")], ["n"]],
    ["the newest turn, and adds a system message behind", [u1, a1, system("n")], ["n"]],
    ["the newest turn, and sends one message twice", [u1, u1, a1, user("n")], ["n"]],
    ["the newest turn, and resumes", [u1, a1], [], { resume: [{ interruptId: "i", status: "resolved" }] }],
    ["the newest turn, and resumes as CopilotKit does", [u1, a1], [], { forwardedProps: { command: { resume: 1 } } }],
  ])("%s", async (_what, sent, added, asked) => {
    const runner = await twoTurns();
    await run(runner, "n", sent, asked);
    expect(ids(await runner.getThreadMessages("t"))).toEqual([...whole, ...added, "n-a"]);
  });
});

describe("a message that somebody else edited", () => {
  /** A thread whose first message was edited: u1 with other words, e-a. */
  async function edited(): Promise<Runner> {
    const runner = await twoTurns();
    await run(runner, "e", [user("u1", "other")]);
    return runner;
  }

  test("is no edit of a sender that has it as it was, and adds something (L20)", async () => {
    const runner = await edited();
    await run(runner, "n", [u1, user("n")]);
    expect(await runner.getThreadMessages("t")).toMatchObject([{ content: "other" }, { id: "e-a" }, user("n"), {}]);
  });

  test("keeps no other message from being edited", async () => {
    const runner = await edited();
    await run(runner, "m", [user("m")]);
    await run(runner, "n", [u1, user("m", "better")]);
    expect(ids(await runner.getThreadMessages("t"))).toEqual(["u1", "e-a", "m", "n-a"]);
  });

  test("is edited back where it is the last that a sender sends", async () => {
    const runner = await edited();
    await run(runner, "n", [u1]);
    expect(await runner.getThreadMessages("t")).toMatchObject([u1, { id: "n-a" }]);
  });
});

test("a question of a left branch is asked anew where a sender has it twice (L20)", async () => {
  const runner = await twoTurns();
  await run(runner, "e", [u1]);
  await run(runner, "n", [u1, u2, a2, u2]);
  const path = ids(await runner.getThreadMessages("t"));
  expect([...new Set(path)]).toEqual(["u1", "e-a", "u2", "n-a"]);
});

test("what only has the id of a message of a left branch is new (L20)", async () => {
  const runner = await twoTurns();
  await run(runner, "r3", [u1, a1, u2, a2, system("s"), user("u3")]);
  await run(runner, "e", [u1]);
  const [rules, question] = [{ ...system("s"), content: "be long" } as Message, user("u2", "else")];
  await run(runner, "n", [u1, question, u2, a2, rules, user("u3"), user("n")]);
  const path = await runner.getThreadMessages("t");
  expect(ids(path)).toEqual(["u1", "e-a", "u2", "s", "n", "n-a"]);
  expect(path.slice(2, 4)).toMatchObject([{ content: "else" }, { content: "be long" }]);
});

describe("what is asked for branches (L20)", () => {
  test.each<Case>([
    ["a message replaced by its id", [u1, a1, user("u2", "other")], ["u1", "r1-a", "u2"]],
    ["one of a sender that has nothing else", [user("u2", "other")], ["u1", "r1-a", "u2"]],
    ["the first one", [user("u1", "other")], ["u1"]],
    ["the first one, with what comes after", [user("u1", "other"), a1, u2, a2], whole],
    ["one of a sender that is stale", [user("u1", "other"), a1, user("n")], ["u1", "r1-a", "n"]],
    ["a regeneration of the newest answer", [u1, a1, u2], ["u1", "r1-a", "u2"]],
    ["of an earlier one", [u1], ["u1"]],
    ["of a sender that has that question alone", [u2], ["u1", "r1-a", "u2"]],
    ["with a new system message in front", [system("s"), u1, a1, u2], ["u1", "r1-a", "u2", "s"]],
    ["behind an earlier answer", [u1, a1], ["u1", "r1-a"]],
    ["a named place, with the whole history", [u1, a1, user("n")], ["u1", "r1-a", "n"], { branchBefore: "u2" }],
    ["a named place, with what is new alone", [user("n")], ["u1", "r1-a", "n"], { branchBefore: "u2" }],
    ["a named place at the beginning", [user("n")], ["n"], { branchBefore: "u1" }],
    ["a named answer", [], ["u1", "r1-a", "u2"], { branchBefore: "r2-a" }],
  ])("%s", async (_what, sent, shown, asked) => {
    const runner = await twoTurns();
    await run(runner, "n", sent, asked);
    expect(ids(await runner.getThreadMessages("t"))).toEqual([...shown, "n-a"]);
  });

  test("a branch before a message that the thread does not have is refused, and nothing is run", async () => {
    const runner = await twoTurns();
    const refused = run(runner, "n", [user("n")], { branchBefore: "gone" });
    await expect(refused).rejects.toMatchObject({ code: "invalid-input", details: { field: "branchBefore" } });
    expect(ids(await runner.getThreadMessages("t"))).toEqual(whole);
    await run(runner, "n2", [user("n2")]);
    expect(ids(await runner.getThreadMessages("t"))).toEqual([...whole, "n2", "n2-a"]);
  });

  test("a branch that is asked for again under its run id is that run (L13)", async () => {
    const runner = await twoTurns();
    const other = inputOf("t", "n", [user("n")]);
    const again = () =>
      collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: other, branchBefore: "u2" }));
    expect(await again()).toEqual(await again());
    expect(ids(await runner.getThreadMessages("t"))).toEqual(["u1", "r1-a", "n", "n-a"]);
  });

  test("parts with their fields in another order are the same message", async () => {
    const runner = makeRunner();
    const parts = (text: object): Message => ({ id: "p", role: "user", content: [text] }) as Message;
    await run(runner, "r1", [parts({ type: "text", text: "hi" })]);
    await run(runner, "r2", [parts({ text: "hi", type: "text" }), user("n")]);
    expect(ids(await runner.getThreadMessages("t"))).toEqual(["p", "r1-a", "n", "r2-a"]);
  });
});

describe("what a sender has cut of what it was given leaves, and nothing else (L20)", () => {
  test.each<[what: string, cut: readonly string[], sent: readonly Message[], shown: readonly string[]]>([
    ["nothing of it", [], [u1, a1, user("n")], [...whole, "n"]],
    ["nothing of it, and adds nothing", [], [u1, a1], whole],
    ["the newest turn", ["u2", "r2-a"], [u1, a1, user("n")], ["u1", "r1-a", "n"]],
    ["an answer", ["r2-a"], [u1, a1, u2], ["u1", "r1-a", "u2"]],
    ["an answer, which it asks for otherwise", ["r2-a"], [u1, a1, user("u2", "other")], ["u1", "r1-a", "u2"]],
    ["a turn that is not the newest", ["r1-a"], [u1, user("n")], ["u1", "n"]],
    ["something in the middle", ["r1-a"], [u1, u2, a2, user("n")], [...whole, "n"]],
    ["something in the middle and the end", ["r1-a", "r2-a"], [u1, u2, user("n")], ["u1", "u2", "n"]],
    ["the beginning, of which it shows nothing", ["u1", "r1-a", "r2-a"], [user("u2", "other")], ["u1", "r1-a", "u2"]],
    ["all that it was given of the end", ["u2", "r2-a"], [user("n")], ["u1", "r1-a", "n"]],
    ["what the path has not", ["gone"], [u1, a1, user("n")], [...whole, "n"]],
  ])("%s", async (_what, cut, sent, shown) => {
    const runner = await twoTurns();
    const request = { threadId: "t", agentId: "test", agent: agentOf(counter(1)) };
    await runner.start({ ...request, input: inputOf("t", "n", [...sent]), cut }).ended;
    expect(ids(await runner.getThreadMessages("t"))).toEqual([...shown, "n-a"]);
  });

  test("a turn that it never had stays where what it cut stands behind it", async () => {
    const runner = await twoTurns();
    const request = { threadId: "t", agentId: "test", agent: agentOf(counter(1)) };
    // It was shown its own turn, and nothing of the first one, which another sender made.
    await runner.start({ ...request, input: inputOf("t", "n", [u2]), cut: ["r2-a"] }).ended;
    expect(ids(await runner.getThreadMessages("t"))).toEqual(["u1", "r1-a", "u2", "n-a"]);
  });
});

test("for many messages that the thread does not have, the log is asked for each once, hundreds at a time (L19)", async () => {
  const runner = await twoTurns();
  const strangers = Array.from({ length: 600 }, (_, n) => answer(`stranger-${n}`));
  const reads = countReads();
  await run(runner, "n", [...strangers, user("n")]);
  expect(reads.stop().requests).toBeLessThan(600 + 100);
  expect(await runner.getThreadMessages("t")).toHaveLength(4 + 600 + 2);
});
