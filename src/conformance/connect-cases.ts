import { cases } from "./case.js";
import { expectSame, expectThat } from "./expect.js";
import { answering, answerId, FIRST_PART, held, say, SECOND_PART } from "./good-agents.js";
import { Gate } from "./patience.js";
import { heldRun, mustHaveRebuilt, untilHeld } from "./steps.js";
import { scriptedAgent } from "./scripted-agent.js";
import { Tab } from "./tab.js";
import { hasText, mustBeValid, textOf } from "./view.js";

export const connectCases = cases([
  {
    id: "connect.unknown-thread",
    level: "core",
    title: "connect of an unknown thread completes without an event",
    says: "connect() of a thread that nobody has used must complete at once, without an event and without an error.",
    async check(bench) {
      expectSame(await bench.thread().connect().all(), [], "an unknown thread must have no events");
    },
  },
  {
    id: "connect.after",
    level: "core",
    title: "connect after the runs gives all of them, then completes",
    says: "connect() of an idle thread must hand out all its runs in order, as verifyEvents accepts them, then complete.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one"), "first");
      await tab.turn(answering("two"), "second");
      await tab.mustBeOnReplay();
      await tab.mustBeOnReplay(tab.thread, "a second replay");
    },
  },
  {
    id: "connect.during",
    level: "core",
    title: "connect during a run gives the history, then the live run, then completes",
    says: "connect() of a thread with a live run must hand out the runs before it, what the run has emitted, what it goes on to emit, and complete with it.",
    async check(bench) {
      const { tab, run, goOn } = await heldRun(bench, "one");
      const connection = tab.thread.connect("a connection during the run");
      await connection.saw(hasText(FIRST_PART), "what the live run has said so far, while it runs");
      expectThat(connection.end === undefined, "connect() must not complete before the live run ends");
      goOn.open();
      await tab.take(await run.all());
      await mustHaveRebuilt(connection, tab);
    },
  },
  {
    id: "connect.at-any-event",
    level: "core",
    title: "whoever connects after whichever event of a run rebuilds the same",
    says: "Between history and live run no event may be lost, doubled or reordered, at whichever event a reader connects.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one"), "first");
      const input = tab.ask("second");
      const id = answerId(input);
      const steps = Array.from({ length: 6 }, () => new Gate());
      const agent = scriptedAgent(async ({ emit }) => {
        emit(say.started(input), say.textStart(id));
        for (const [n, step] of steps.entries()) {
          emit(say.text(id, `step ${n}; `));
          await step.opened;
        }
        emit(say.textEnd(id), say.state({ steps: steps.length }), say.finished(input));
      });
      const run = tab.thread.run(agent, input);
      const connections = [tab.thread.connect("a connection at the start")];
      for (const [n, step] of steps.entries()) {
        await run.saw(hasText(`step ${n}; `), `step ${n}`);
        connections.push(tab.thread.connect(`a connection after step ${n}`));
        step.open();
        connections.push(tab.thread.connect(`a connection as step ${n} ends`));
      }
      await tab.take(await run.all());
      // The first connection may have come before the run: then it has the thread up to there.
      const [first, ...others] = connections;
      mustBeValid(first!.name, await first!.all());
      for (const connection of others) await mustHaveRebuilt(connection, tab);
    },
  },
  {
    id: "connect.unsubscribe-stops-nothing",
    level: "core",
    title: "a connection that is given up stops nothing",
    says: "A run must go on when a reader of connect() unsubscribes.",
    async check(bench) {
      const { tab, goOn, run } = await heldRun(bench);
      const connection = tab.thread.connect();
      await connection.saw(hasText(FIRST_PART), "what the live run has said so far");
      connection.unsubscribe();
      await tab.thread.mustStayRunning("a run must go on when a reader of connect() leaves");
      goOn.open();
      const events = await run.all();
      expectThat(events.some(hasText(SECOND_PART)), "the run must come to its own end", run.account());
      await tab.take(events);
      await tab.mustBeOnReplay();
    },
  },
  {
    id: "connect.live-run-reuses-message-id",
    level: "core",
    title: "a live run that goes on with a message of the history loses nothing for who connects",
    says: "connect() must hand out events of the live run also where their message id is one of the history.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const first = tab.ask("first");
      await tab.take(await tab.thread.run(answering("one, "), first).all());
      const messageId = answerId(first);
      const { agent, goOn } = held({ messageId });
      const run = tab.thread.run(agent, tab.ask("second"));
      await untilHeld(run);
      const connection = tab.thread.connect("a connection during the run");
      await connection.saw(hasText(FIRST_PART), "what the live run has added to a message of the history");
      goOn.open();
      await tab.take(await run.all());
      await mustHaveRebuilt(connection, tab);
      const view = await tab.mustBeOnReplay();
      const text = textOf(view, messageId);
      expectSame(text, `one, ${FIRST_PART}${SECOND_PART}`, "the message must hold what both runs said");
    },
  },
  {
    id: "is-running.follows-the-run",
    level: "core",
    title: "isRunning is true from the call of run to its end, and false before and after",
    says: "isRunning() must be false for an unknown thread, true while a run is live, and false when run() has completed.",
    async check(bench) {
      const thread = bench.thread();
      expectThat(!(await thread.isRunning()), "isRunning() must be false for an unknown thread");
      const { agent, goOn } = held();
      const run = thread.run(agent, new Tab(thread).ask("hello"));
      await untilHeld(run);
      expectThat(await thread.isRunning(), "isRunning() must be true while the run is live");
      expectThat(!(await bench.thread().isRunning()), "isRunning() must be false for another thread");
      goOn.open();
      await run.all();
      await thread.mustBeFree("when run() has completed");
    },
  },
]);
