import { EventType } from "@ag-ui/core";
import { mergeMap, tap } from "rxjs";
import type { Cursor } from "../run/types.js";
import type { ThreadConnectRequest } from "../run/contract.js";
import type { Bench } from "./bench.js";
import { cases } from "./case.js";
import { expectSame, expectThat, shown } from "./expect.js";
import { having } from "./full-runner.js";
import { answering, FIRST_PART, held, SECOND_PART } from "./good-agents.js";
import type { Recording } from "./recording.js";
import { heldRun, mustHaveRebuilt, untilHeld } from "./steps.js";
import { Tab } from "./tab.js";
import { hasText, isTerminal, joined, mustAgree, mustBeOneRun, mustBeValid, rebuild } from "./view.js";

/** Records a connect with options beyond the contract. */
function connecting(bench: Bench, name: string, request: ThreadConnectRequest): Recording {
  having(bench, "connectWithCursor");
  const { runner } = bench;
  return bench.record(name, () => runner.connect(request));
}

export const extendedConnectCases = cases([
  {
    id: "connect.snapshot",
    level: "full",
    title: "connect with replay snapshot gives messages and state whole, then the live run",
    says: 'connect({ replay: "snapshot" }) must rebuild the thread by a MESSAGES_SNAPSHOT, without the deltas of settled runs, and go on with the live run.',
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one"), "first");
      const { threadId } = tab.thread;
      const name = "a snapshot";
      const idle = connecting(bench, name, { threadId, replay: "snapshot" });
      await mustHaveRebuilt(idle, tab);
      const types = idle.events.map(({ type }) => type);
      expectThat(types.includes(EventType.MESSAGES_SNAPSHOT), `${name} must have one`, `it is ${shown(types)}`);
      expectThat(
        !types.includes(EventType.TEXT_MESSAGE_CONTENT),
        `${name} must have no deltas`,
        `it is ${shown(types)}`,
      );
      const { agent, goOn } = held();
      const run = tab.thread.run(agent, tab.ask("second"));
      await untilHeld(run);
      const live = connecting(bench, "a snapshot during the run", { threadId, replay: "snapshot" });
      await live.saw(({ type }) => type === EventType.MESSAGES_SNAPSHOT, "the messages so far");
      goOn.open();
      await tab.take(await run.all());
      await mustHaveRebuilt(live, tab);
    },
  },
  {
    id: "connect.last-run",
    level: "full",
    title: "connect with replay last-run gives that run's events and nothing before",
    says: 'connect({ replay: "last-run" }) must hand out the last run from its first event to its end, live or settled, and no other.',
    async check(bench) {
      const { tab, input, run, goOn } = await heldRun(bench, "one");
      const { threadId } = tab.thread;
      const live = connecting(bench, "the live last run", { threadId, replay: "last-run" });
      await live.saw(hasText(FIRST_PART), "what the run has said so far");
      goOn.open();
      const own = joined(await run.all());
      const settled = connecting(bench, "the settled last run", { threadId, replay: "last-run" });
      for (const recording of [live, settled]) {
        const events = await recording.all();
        mustBeOneRun(recording.name, events, input);
        expectSame(joined(events), own, `${recording.name} must be the run's own events`);
      }
    },
  },
  {
    id: "connect.from-cursor",
    level: "full",
    title: "connect from a cursor gives what comes after it, no more and no less",
    says: "connect({ after }) with a cursor of connectWithCursor() must go on right behind what was handed out with it, also in the middle of a run.",
    async check(bench) {
      const runner = having(bench, "connectWithCursor");
      const { tab, run, goOn } = await heldRun(bench, "one");
      const { threadId } = tab.thread;
      let cursor: Cursor | undefined;
      const before = bench.record("a connection with cursors", () =>
        runner.connectWithCursor({ threadId }).pipe(
          tap((part) => (cursor = part.cursor)),
          mergeMap(({ events }) => events),
        ),
      );
      await before.saw(hasText(FIRST_PART), "what the run has said so far");
      before.unsubscribe();
      expectThat(cursor !== undefined, "each part must have the cursor behind it");
      goOn.open();
      await tab.take(await run.all());
      const rest = await connecting(bench, "the connection from the cursor", { threadId, after: cursor }).all();
      const name = "what was handed out before the cursor and after it";
      expectThat(rest.some(hasText(SECOND_PART)), "what came after the cursor must be handed out");
      mustBeValid(name, [...before.events, ...rest]);
      mustAgree(name, await rebuild(name, [...before.events, ...rest]), tab.view);
    },
  },
  {
    id: "connect.follow",
    level: "full",
    title: "connect with follow goes on with each later run",
    says: "connect({ follow: true }) must not complete, and must hand out each later run from its first event to its end, in order.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const following = connecting(bench, "a follower", { threadId: tab.thread.threadId, follow: true });
      for (const text of ["first", "second", "third"]) {
        const end = (await tab.turn(answering(`${text}!`), text)).at(-1)!;
        await following.saw((event) => isTerminal(event) && event["runId"] === end["runId"], `the run asked "${text}"`);
      }
      expectThat(following.end === undefined, "a follower must not complete by itself");
      following.unsubscribe();
      mustBeValid(following.name, following.events);
      mustAgree(following.name, await rebuild(following.name, following.events), tab.view);
    },
  },
]);
