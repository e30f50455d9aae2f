import type { Message } from "@ag-ui/client";
import { cases } from "./case.js";
import { expectSame } from "./expect.js";
import { answering } from "./good-agents.js";
import { Tab } from "./tab.js";
import { rebuild, type View } from "./view.js";

/** Two turns: one, one!, two, two! */
async function twoTurns(tab: Tab): Promise<void> {
  await tab.turn(answering("one!"), "one");
  await tab.turn(answering("two!"), "two");
}

const contentsOf = ({ messages }: View): unknown[] => messages.map((message) => message.content);

/** The replay must show these messages and no others. */
async function mustShow(tab: Tab, contents: readonly string[], must: string): Promise<void> {
  expectSame(contentsOf(await rebuild("the replay", await tab.thread.replay())), contents, must);
}

/** A run whose sender has exactly these messages. */
async function runWith(tab: Tab, messages: readonly Message[], answer: string): Promise<void> {
  await tab.thread.run(answering(answer), tab.inputOf(messages)).all();
}

/** The first three messages of {@link twoTurns}, the last of them edited. */
function edited(messages: readonly Message[], content: string): Message[] {
  const kept = structuredClone(messages.slice(0, 3));
  const last = kept[2];
  if (last?.role === "user") last.content = content;
  return kept;
}

export const branchCases = cases([
  {
    id: "branch.edit",
    level: "full",
    title: "an edited user message starts a branch, and only the branch is on replay",
    says: "A run whose input changes a user message must continue what stood before it; the replay must show the branch alone.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await twoTurns(tab);
      await runWith(tab, edited(tab.view.messages, "two, better"), "better!");
      await mustShow(tab, ["one", "one!", "two, better", "better!"], "the replay must show the branch alone");
    },
  },
  {
    id: "branch.regenerate",
    level: "full",
    title: "an answer that is asked for again replaces the old one on replay",
    says: "A run whose input ends at an earlier user message must continue from there; the replay must not show the old answer.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await twoTurns(tab);
      await runWith(tab, tab.view.messages.slice(0, 3), "another two!");
      await mustShow(tab, ["one", "one!", "two", "another two!"], "the replay must show the new answer alone");
    },
  },
  {
    id: "branch.stale",
    level: "full",
    title: "a sender that has not seen the newest turn adds to the thread",
    says: "A run whose sender merely lacks messages, and sends a new one, must continue the path: nothing may leave it.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one!"), "one");
      const other = new Tab(tab.thread);
      other.view = tab.view;
      await other.turn(answering("two!"), "two");
      await tab.thread.run(answering("three!"), tab.ask("three")).all();
      const path = ["one", "one!", "two", "two!", "three", "three!"];
      await mustShow(tab, path, "a message that a sender merely lacks must stay");
    },
  },
  {
    id: "branch.left",
    level: "full",
    title: "a sender that has an answer that was replaced adds to the thread what it says, and nothing else",
    says: "Messages that stand on another branch alone must not be recorded again where a sender sends them in front of a new one.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await twoTurns(tab);
      await runWith(tab, tab.view.messages.slice(0, 3), "another two!");
      await tab.thread.run(answering("three!"), tab.ask("three")).all();
      const path = ["one", "one!", "two", "another two!", "three", "three!"];
      await mustShow(tab, path, "the replaced answer must not come back");
    },
  },
  {
    id: "branch.goes-on",
    level: "full",
    title: "a run after a branch continues the branch",
    says: "A run whose sender has the branch's messages must continue the branch, on replay too.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await twoTurns(tab);
      await runWith(tab, edited(tab.view.messages, "two, better"), "better!");
      tab.view = await rebuild("the replay", await tab.thread.replay());
      await tab.turn(answering("three!"), "three");
      const path = ["one", "one!", "two, better", "better!", "three", "three!"];
      await mustShow(tab, path, "the replay must show the branch and what continues it");
      await tab.mustBeOnReplay();
    },
  },
]);
