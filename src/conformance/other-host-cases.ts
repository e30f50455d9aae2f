import { freshId } from "./bench.js";
import { cases } from "./case.js";
import { expectThat, shown } from "./expect.js";
import { answering, FIRST_PART, held, SECOND_PART } from "./good-agents.js";
import { heldRun, mustBeRefused, mustHaveRebuilt, mustTakeAnother, untilHeld } from "./steps.js";
import { Tab } from "./tab.js";
import { hasText, mustBeOneRun } from "./view.js";

const needs = "reopen" as const;
export const otherHostCases = cases([
  {
    id: "store.replay",
    level: "core",
    needs,
    title: "another runner of the same store has the same threads",
    says: "What one runner recorded another runner of the store must replay, and must go on with.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one"), "first");
      await tab.turn(answering("two"), "second");
      const other = tab.thread.through(await bench.reopen());
      await tab.mustBeOnReplay(other, "the replay of the other runner");
      const input = tab.ask("third");
      await tab.take(await other.run(answering("three"), input).all());
      await tab.mustBeOnReplay(other, "the replay of the other runner, with its own run");
      await tab.mustBeOnReplay(tab.thread, "the replay of the first runner, with the other's run");
    },
  },
  {
    id: "store.live-run",
    level: "core",
    needs,
    title: "another runner follows a live run",
    says: "connect() and isRunning() of another runner of the store must see a live run while it runs, and its end.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one"), "first");
      const other = tab.thread.through(await bench.reopen());
      const { agent, goOn } = held();
      const run = tab.thread.run(agent, tab.ask("second"));
      await untilHeld(run);
      await other.mustBeRunning();
      const connection = other.connect("a connection to the other runner");
      await connection.saw(hasText(FIRST_PART), "what the live run has said, while it runs");
      goOn.open();
      await tab.take(await run.all());
      await mustHaveRebuilt(connection, tab);
      await bench.patience.until(async () => !(await other.isRunning()), "the other runner sees the end of the run");
    },
  },
  {
    id: "store.busy-thread",
    level: "core",
    needs,
    title: "a thread that runs in one runner is busy in the other",
    says: 'A run of a thread that another runner of the store runs must be refused with "Thread already running".',
    async check(bench) {
      const tab = new Tab(bench.thread());
      const other = tab.thread.through(await bench.reopen());
      const [first, second] = [held(), held()];
      const run = tab.thread.run(first.agent, tab.ask("hello"));
      await untilHeld(run);
      await mustBeRefused(other.run(second.agent, tab.inputOf([])), second.called);
      first.goOn.open();
      const events = await run.all();
      expectThat(events.some(hasText(SECOND_PART)), "the live run must come to its own end", run.account());
      await mustTakeAnother(other);
    },
  },
  {
    id: "store.one-of-many",
    level: "core",
    needs,
    title: "of runs asked of several runners at once one is started",
    says: "The claim of a thread must be one step over all runners of the store.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const threads = [tab.thread];
      for (let n = 0; n < 3; n++) threads.push(tab.thread.through(await bench.reopen()));
      const agents = threads.map(() => held());
      const runs = threads.map((thread, n) =>
        thread.run(agents[n]!.agent, tab.inputOf([], { runId: freshId(`run${n}`) })),
      );
      await bench.patience.until(() => agents.some(({ called }) => called.isOpen), "one of the runs starts");
      for (const { goOn } of agents) goOn.open();
      const ends = await Promise.all(runs.map((run) => run.whenEnded()));
      const won = ends.filter((end) => end.is === "completed").length;
      // A request after the winner has ended is not a second live run.
      expectThat(won >= 1, "one of the runs must complete", `${won} did`);
      const started = agents.filter(({ called }) => called.isOpen).length;
      expectThat(
        started === won,
        "only the agents of the runs that complete may be started",
        `${started} were, ${won} completed`,
      );
      const starts = (await tab.thread.replay()).filter((event) => event.type === "RUN_STARTED").length;
      expectThat(starts === won, "the replay must have just these runs", `it has ${starts}`);
    },
  },
  {
    id: "store.stop",
    level: "core",
    needs,
    title: "a stop of another runner reaches the run",
    says: "stop() of any runner of the store must end the live run, also where another runner runs it.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const other = tab.thread.through(await bench.reopen());
      const input = tab.ask("hello");
      const { agent, aborted } = held();
      const run = tab.thread.run(agent, input);
      await untilHeld(run);
      const answer = await other.stop(input.runId);
      expectThat(answer !== false, "stop() of a live run must not answer false", `it answered ${shown(answer)}`);
      await bench.patience.within(aborted.opened, "the agent's abortRun() is called");
      mustBeOneRun("the stopped run", await run.all(), input);
      await mustTakeAnother(other);
    },
  },
  {
    id: "store.host-gone",
    level: "core",
    needs,
    title: "a thread whose runner goes away in the middle of a run is free, and keeps what was shown",
    says: "When the runner of a live run goes away, another runner must find the run ended, with all that was handed out before, valid and closed, and the thread must take a next run.",
    async check(bench) {
      const { tab, input } = await heldRun(bench);
      await bench.crash(bench.runner);
      const other = tab.thread.through(await bench.reopen());
      await bench.patience.until(async () => !(await other.isRunning()), "the run of the runner that is gone ends");
      const events = await other.replay();
      mustBeOneRun("the run that was cut off, on replay", events, input);
      expectThat(events.some(hasText(FIRST_PART)), "what was handed out must be on replay", shown(events));
      await mustTakeAnother(other);
    },
  },
]);
