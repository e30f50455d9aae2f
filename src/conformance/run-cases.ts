import { EventType } from "@ag-ui/core";
import { cases } from "./case.js";
import { expectSame, expectThat } from "./expect.js";
import { FOLLOW_UPS, followUps } from "./follow-ups.js";
import { answering, answerId, FIRST_PART, held, say, SECOND_PART } from "./good-agents.js";
import type { Recording } from "./recording.js";
import { scriptedAgent } from "./scripted-agent.js";
import { mustBeRefused, mustTakeAnother, untilHeld, heldRun } from "./steps.js";
import { Tab } from "./tab.js";
import { hasText, joined, mustBeOneRun, textOf } from "./view.js";

export const runCases = cases([
  {
    id: "run.starts-at-the-call",
    level: "core",
    title: "a run starts at the call, whether anybody subscribes or not",
    says: "run() must claim the thread and start the agent at the call; its Observable only hands out.",
    async check(bench) {
      const thread = bench.thread();
      const input = new Tab(thread).ask("hello");
      const { agent, called, goOn } = held();
      thread.start(agent, input);
      await bench.patience.within(called.opened, "the agent of a run that nobody subscribed to is started");
      goOn.open();
      await bench.patience.until(async () => !(await thread.isRunning()), "the run that nobody subscribed to ends");
      mustBeOneRun("the replay", await thread.replay(), input);
    },
  },
  {
    id: "run.from-first-event",
    level: "core",
    title: "each subscriber gets the run from its first event, late ones too",
    says: "Each subscriber of a run must be handed the whole run, whenever it subscribes, also after the end.",
    async check(bench) {
      const thread = bench.thread();
      const input = new Tab(thread).ask("hello");
      const { agent, goOn } = held();
      const events$ = thread.start(agent, input);
      const listen = (name: string): Recording => bench.record(name, () => events$);
      const [first, second] = [listen("the first subscriber"), listen("the second subscriber")];
      await untilHeld(first);
      const during = listen("a subscriber during the run");
      goOn.open();
      const whole = await first.all();
      mustBeOneRun("the run", whole, input);
      for (const other of [second, during, listen("a subscriber after the end")]) {
        expectSame(joined(await other.all()), joined(whole), `${other.name} must be handed the whole run`);
      }
    },
  },
  {
    id: "run.completes-when-settled",
    level: "core",
    title: "a run completes when it is settled: recorded, and the thread free",
    says: "When run() completes, the whole run must be on replay and the thread must be free.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one, two"), "count");
      await tab.thread.mustBeFree("when run() has completed");
      await tab.mustBeOnReplay();
      await mustTakeAnother(tab.thread);
    },
  },
  {
    id: "run.unsubscribe-stops-nothing",
    level: "core",
    title: "unsubscribing stops nothing",
    says: "A run must go on to its own end when all its subscribers leave.",
    async check(bench) {
      const { tab, goOn, input, run } = await heldRun(bench);
      run.unsubscribe();
      await tab.thread.mustStayRunning("a run must go on when nobody listens");
      goOn.open();
      await bench.patience.until(async () => !(await tab.thread.isRunning()), "the run that nobody listens to ends");
      const replay = await tab.thread.replay();
      mustBeOneRun("the replay", replay, input);
      await tab.take(replay);
      const text = textOf(tab.view, answerId(input));
      expectSame(text, FIRST_PART + SECOND_PART, "the replay must hold all that the agent said");
    },
  },
  {
    id: "run.busy-thread",
    level: "core",
    title: "a second run of a busy thread is refused at once",
    says: 'A run of a thread with a live run must be refused (thrown or as an error) with the message "Thread already running", and must leave the live run alone.',
    async check(bench) {
      const { tab, input, run, goOn } = await heldRun(bench);
      const second = held();
      await mustBeRefused(tab.thread.run(second.agent, tab.inputOf([])), second.called);
      await tab.thread.mustBeRunning();
      goOn.open();
      const events = await run.all();
      mustBeOneRun("the first run", events, input);
      await tab.take(events);
      await tab.mustBeOnReplay();
    },
  },
  {
    id: "run.one-of-many",
    level: "core",
    title: "of many runs asked for at once one is started",
    says: "The check that a thread is free and its claim must be one step: of runs asked for at once exactly one may start.",
    async check(bench) {
      const thread = bench.thread();
      const tab = new Tab(thread);
      const agents = Array.from({ length: 5 }, () => held());
      const runs = agents.map(({ agent }) => thread.run(agent, tab.inputOf([])));
      await bench.patience.until(() => agents.some(({ called }) => called.isOpen), "one of the runs starts");
      for (const { goOn } of agents) goOn.open();
      const ends = await Promise.all(runs.map((run) => run.whenEnded()));
      const won = ends.filter((end) => end.is === "completed").length;
      expectThat(won === 1, "exactly one of the runs must complete", `${won} did`);
      const started = agents.filter(({ called }) => called.isOpen).length;
      expectThat(started === 1, "exactly one of the agents must be started", `${started} were`);
    },
  },
  {
    id: "run.same-run-id-live",
    level: "core",
    title: "a live run asked for again is not started a second time",
    says: "A run asked for again under the id of the live run must be refused or joined: one agent works, and the thread stays busy until it ends.",
    async check(bench) {
      const { tab, input, run, goOn } = await heldRun(bench);
      const again = held();
      const second = tab.thread.run(again.agent, structuredClone(input));
      await tab.thread.mustBeRunning();
      goOn.open();
      mustBeOneRun("the first run", await run.all(), input);
      const end = await second.whenEnded();
      if (end.is === "completed") {
        expectSame(joined(second.events), joined(run.events), "who joins a live run must be handed that run");
      }
      expectThat(!again.called.isOpen, "the second agent must not be started");
      await tab.thread.mustBeFree("when the run has ended");
      await mustTakeAnother(tab.thread);
    },
  },
  {
    id: "run.follow-up-on-finished",
    level: "core",
    title: `a follow-up run started on RUN_FINISHED is never refused (${FOLLOW_UPS} times)`,
    says: "The thread must be free before anybody sees the terminal event.",
    check: (bench) => followUps(bench, EventType.RUN_FINISHED),
  },
  {
    id: "run.follow-up-on-complete",
    level: "core",
    title: `a follow-up run started at completion is never refused (${FOLLOW_UPS} times)`,
    says: "The thread must be free before run() completes.",
    check: (bench) => followUps(bench, "complete"),
  },
  {
    id: "run.threads-apart",
    level: "core",
    title: "threads do not wait for one another",
    says: "A live run must not keep another thread busy, and a stop of one must leave the other alone.",
    async check(bench) {
      const [one, other] = [new Tab(bench.thread()), new Tab(bench.thread())];
      const [first, second] = [held(), held()];
      const runs = [one.thread.run(first.agent, one.ask("a")), other.thread.run(second.agent, other.ask("b"))] as const;
      await Promise.all(runs.map(untilHeld));
      await one.thread.stop();
      await runs[0].all();
      await other.thread.mustBeRunning();
      second.goOn.open();
      const events = await runs[1].all();
      expectThat(events.some(hasText(SECOND_PART)), "the other run must come to its own end", runs[1].account());
      await one.thread.mustBeFree("after its stop");
    },
  },
  {
    id: "run.message-without-history",
    level: "core",
    title: "a sender that sends only its new message loses nothing",
    says: "What an earlier run recorded must stay on replay when a later run's input does not repeat it.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one"), "first");
      const input = tab.ask("second");
      const events = await tab.thread.run(answering("two"), { ...input, messages: input.messages.slice(-1) }).all();
      await tab.take(events);
      await tab.mustBeOnReplay();
    },
  },
  {
    id: "run.order",
    level: "core",
    title: "runs are on replay in the order in which they ran",
    says: "Runs that follow one another within a millisecond must be replayed in their order.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const asked: string[] = [];
      for (let n = 0; n < 20; n++) {
        const input = tab.inputOf([]);
        asked.push(input.runId);
        // No text: these runs are as short as possible.
        const agent = scriptedAgent(({ emit }) => emit(say.started(input), say.finished(input)));
        await tab.thread.run(agent, input).all();
      }
      const starts = (await tab.thread.replay()).filter((event) => event.type === EventType.RUN_STARTED);
      const order = starts.map((event) => event["runId"]);
      expectSame(order, asked, "the replay must have all runs in their order");
    },
  },
]);
