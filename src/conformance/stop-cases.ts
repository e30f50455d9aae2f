import { EventType } from "@ag-ui/core";
import { freshId } from "./bench.js";
import { cases } from "./case.js";
import { expectSame, expectThat, shown } from "./expect.js";
import { answering, held, say, SECOND_PART } from "./good-agents.js";
import { SAID } from "./misbehaving/agent.js";
import { HARD_TO_STOP } from "./misbehaving/hard-to-stop.js";
import { openingEverything } from "./misbehaving/leaving-open.js";
import { Gate } from "./patience.js";
import { mustTakeAnother, untilHeld, heldRun } from "./steps.js";
import { scriptedAgent } from "./scripted-agent.js";
import { Tab } from "./tab.js";
import { hasText, mustBeClosed, mustBeOneRun, mustBeValid, NOTHING } from "./view.js";

export const stopCases = cases([
  {
    id: "stop.ends-the-run",
    level: "core",
    title: "stop ends the live run and says so",
    says: "stop() of a live run must ask its agent to abort, must answer true (or nothing), and the run must end.",
    async check(bench) {
      const { tab, aborted, input, run } = await heldRun(bench);
      const answer = await tab.thread.stop(input.runId);
      expectThat(answer !== false, "stop() of the live run must not answer false");
      await bench.patience.within(aborted.opened, "the agent's abortRun() is called");
      const events = await run.all();
      mustBeOneRun("the stopped run", events, input);
      mustBeValid("the stopped run", events);
      await tab.thread.mustBeFree("after a stopped run");
      await tab.take(events);
      await tab.mustBeOnReplay();
      await mustTakeAnother(tab.thread);
    },
  },
  {
    id: "stop.nothing-runs",
    level: "core",
    title: "stop does nothing where nothing runs",
    says: "stop() must answer false (or nothing) for an unknown thread and after the end of a run, and must not stop a later run.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const rule = "stop() must not answer true where nothing runs";
      expectThat((await tab.thread.stop()) !== true, rule, "it did for an unknown thread");
      await tab.turn(answering("one"), "first");
      expectThat((await tab.thread.stop()) !== true, rule, "it did after the end of a run");
      const events = await tab.turn(answering("two"), "second");
      expectSame(events.at(-1)?.["outcome"], undefined, "an old stop must not reach a later run");
      await tab.mustBeOnReplay();
    },
  },
  {
    id: "stop.idempotent",
    level: "core",
    title: "a run that is asked to stop twice stops once",
    says: "Of several stops of one run at most one may answer true; all must answer, and the run must have one end.",
    async check(bench) {
      const { tab, input, run } = await heldRun(bench);
      const answers = await Promise.all([tab.thread.stop(), tab.thread.stop(input.runId), tab.thread.stop()]);
      const yes = answers.filter((answer) => answer === true).length;
      expectThat(yes <= 1, "at most one of several stops may answer true", `they answered ${shown(answers)}`);
      expectThat(!answers.every((answer) => answer === false), "one of several stops must not answer false");
      mustBeOneRun("the stopped run", await run.all(), input);
      expectThat((await tab.thread.stop()) !== true, "stop() must not answer true after the end");
      await tab.take(run.events);
      await tab.mustBeOnReplay();
    },
  },
  {
    id: "stop.other-run",
    level: "core",
    title: "a stop that names another run leaves the live one alone",
    says: "stop() with the runId of another or an older run must not answer true and must not stop the live run.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const older = tab.ask("first");
      await tab.take(await tab.thread.run(answering("one"), older).all());
      const { agent, aborted, goOn } = held();
      const run = tab.thread.run(agent, tab.ask("second"));
      await untilHeld(run);
      for (const runId of [older.runId, freshId("never")]) {
        const answer = await tab.thread.stop(runId);
        expectThat(answer !== true, "stop() must not answer true for a run that is not live", `it did for "${runId}"`);
      }
      expectThat(!aborted.isOpen, "the live run's agent must not be asked to stop");
      goOn.open();
      const events = await run.all();
      expectThat(events.some(hasText(SECOND_PART)), "the live run must come to its own end", run.account());
    },
  },
  {
    id: "stop.does-not-wait",
    level: "core",
    title: "stop answers while the agent still works",
    says: "stop() must answer without waiting for the agent to end.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const answered = new Gate();
      const started = new Gate();
      // It ends after stop() has answered: a stop() that waits for it hangs.
      const agent = scriptedAgent(
        async ({ input, emit }) => {
          emit(say.started(input));
          started.open();
          await answered.opened;
          emit(say.finished(input));
        },
        { onAbort: "nothing" },
      );
      const run = tab.thread.run(agent, tab.ask("hello"));
      await bench.patience.within(started.opened, "the agent starts");
      await tab.thread.mustBeRunning();
      await tab.thread.stop();
      answered.open();
      await run.all();
      await tab.thread.mustBeFree("when the stopped run has completed");
    },
  },
  {
    id: "stop.closes-what-is-open",
    level: "core",
    title: "a stopped run closes text, tool calls, reasoning, steps and subagents that it left open",
    says: "Before the terminal event of a stopped run everything that it opened must be closed.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const input = tab.ask("hello");
      const { agent } = held({ during: ({ emit }) => emit(...openingEverything()) });
      const run = tab.thread.run(agent, input);
      await run.saw((event) => event.type === EventType.SUBAGENT_STARTED, "the subagent's start");
      await tab.thread.stop();
      const events = await run.all();
      mustBeValid("the stopped run", events);
      mustBeClosed("the stopped run", events);
      mustBeOneRun("the stopped run", events, input);
      await tab.take(events);
      await tab.mustBeOnReplay();
      await mustTakeAnother(tab.thread);
    },
  },
  {
    id: "stop.is-recorded-as-cancelled",
    level: "full",
    title: "a stopped run is no error: RUN_FINISHED with the outcome cancelled",
    says: 'A stopped run must end with RUN_FINISHED and outcome { type: "cancelled" }, live and on replay.',
    async check(bench) {
      const { tab, run } = await heldRun(bench);
      await tab.thread.stop();
      const rule = 'a stopped run must end with RUN_FINISHED, outcome { type: "cancelled" }';
      for (const events of [await run.all(), await tab.thread.replay()]) {
        const end = events.at(-1) as
          { readonly type: string; readonly outcome?: { readonly type: string } } | undefined;
        const cancelled = end?.type === EventType.RUN_FINISHED && end.outcome?.type === "cancelled";
        expectThat(cancelled, rule, `it ends with ${shown(end)}`);
      }
    },
  },
  {
    id: "stop.whatever-the-agent-says",
    level: "full",
    title: "a stopped run is no error, whatever its agent says then",
    says: 'An agent that throws, emits RUN_ERROR, RUN_FINISHED or nonsense, or completes when it was asked to stop was stopped: RUN_FINISHED, outcome { type: "cancelled" }.',
    async check(bench) {
      for (const { name, make } of HARD_TO_STOP) {
        const tab = new Tab(bench.thread());
        const scene = { history: NOTHING, over: new Gate(), done: new Gate() };
        const run = tab.thread.run(make(scene), tab.ask("please"));
        await run.saw(hasText(SAID), "what the agent said before it was stopped");
        await tab.thread.stop();
        const end = (await run.all()).at(-1);
        scene.over.open();
        expectSame(end?.["outcome"], { type: "cancelled" }, `the end of the stopped run of ${name}`);
      }
    },
  },
]);
