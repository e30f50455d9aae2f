import { EventType } from "@ag-ui/core";
import type { Bench } from "./bench.js";
import { cases, type RunnableCase } from "./case.js";
import { expectSame, expectThat, shown } from "./expect.js";
import { answering, answerId, say } from "./good-agents.js";
import { SAID, type MisbehavingAgent, type Outcome, type Scene } from "./misbehaving/agent.js";
import { MISBEHAVING_AGENTS } from "./misbehaving-agents.js";
import { Gate } from "./patience.js";
import { scriptedAgent } from "./scripted-agent.js";
import { Tab } from "./tab.js";
import { mustAgree, mustBeClosed, mustBeOneRun, mustBeValid, rebuild, textOf } from "./view.js";

/** The thread's first run: an answer, and a state that later runs may patch. */
async function beginThread(tab: Tab): Promise<void> {
  const agent = scriptedAgent(({ input, emit }) => {
    const id = answerId(input);
    emit(say.started(input), say.state({ list: ["first"] }), say.textStart(id), say.text(id, "welcome, "));
    emit(say.textEnd(id), say.finished(input));
  });
  await tab.turn(agent, "hello");
}

/** What must hold of a thread whose second run was one of a misbehaving agent. */
async function mustHold(bench: Bench, agent: MisbehavingAgent): Promise<void> {
  const { make, isStopped, staysOn, state, ends, keeps, check } = agent;
  const tab = new Tab(bench.thread());
  const { thread } = tab;
  await beginThread(tab);

  const scene: Scene = { history: tab.view, over: new Gate(), done: new Gate() };
  const input = tab.ask("please", state === undefined ? {} : { state });
  const userId = input.messages.at(-1)!.id;
  const run = thread.run(make(scene), input);
  if (isStopped === true) {
    await run.saw((event) => event["delta"] === SAID, "what the agent said before it was stopped");
    await thread.stop(input.runId);
  }

  const events = await run.all();
  mustBeOneRun("the run", events, input);
  mustBeValid("the run", events);
  mustBeClosed("the run", events);
  expectThat(
    run.notPlain.length === 0,
    "what a runner hands out must be plain data",
    shown(run.notPlain.map((it) => it.type)),
  );
  const end = events.at(-1)!;
  if (ends !== undefined) expectThat(end.type === ends, `the run must end with ${ends}`, `it ends with ${shown(end)}`);
  await thread.mustBeFree("when the run has completed");
  scene.over.open();
  if (staysOn === true) await bench.patience.within(scene.done.opened, "the agent comes to its very end");
  await tab.take(events);

  const replay = await thread.replay();
  mustBeClosed("the replay", replay);
  const view = await rebuild("the replay", replay);
  const hasUser = view.messages.some((message) => message.id === userId);
  expectThat(hasUser, "the user's message must be on replay", `it has ${shown(view.messages.map(({ id }) => id))}`);
  mustAgree("the replay", view, tab.view);
  if (keeps !== undefined) {
    const text = textOf(view, answerId(input)) ?? "";
    expectThat(text.startsWith(keeps), "what the agent said must be on replay", `the answer is ${shown(text)}`);
  }
  check?.({ input, events, replay, view } satisfies Outcome);

  const next = tab.ask("and now?");
  const after = await thread.run(answering("all well"), next).all();
  mustBeOneRun("the next run", after, next);
  expectThat(after.at(-1)?.type === EventType.RUN_FINISHED, "the next run must be a success", shown(after.at(-1)));
  await tab.take(after);
  await tab.mustBeOnReplay(thread, "the replay with the next run");
  expectSame(textOf(tab.view, answerId(next)), "all well", "the next run must say all that its agent said");
}

type AgentName = (typeof MISBEHAVING_AGENTS)[number]["name"];

/** One case for each misbehaving agent. */
export const misbehavingCases: readonly RunnableCase<`agent.${AgentName}`>[] = MISBEHAVING_AGENTS.map((agent) => ({
  id: `agent.${agent.name}` as const,
  level: "core",
  title: `an agent that ${agent.does}`,
  says: "Whatever an agent does, its run must end with exactly one terminal event and everything closed, the thread must be free, and the replay must be valid and true.",
  check: (bench) => mustHold(bench, agent),
}));

/** What a runner that knows the protocol itself makes of them: the agent's own end counts. */
export const ownEndCases = cases([
  {
    id: "end.own-finish-with-open-constructs",
    level: "full",
    title: "an agent's own RUN_FINISHED counts, though it left something open",
    says: "What is open at the agent's RUN_FINISHED must be closed before it; the run is a success, as its agent says.",
    async check(bench) {
      for (const agent of MISBEHAVING_AGENTS.filter(({ name }) => name.startsWith("finishes-in-"))) {
        await mustHold(bench, { ...agent, ends: EventType.RUN_FINISHED });
      }
    },
  },
  {
    id: "end.without-terminal-is-finished",
    level: "full",
    title: "an agent that completes without a terminal event has finished",
    says: "A run whose agent completes without an error and without a terminal event must end with RUN_FINISHED.",
    async check(bench) {
      const silent = MISBEHAVING_AGENTS.filter(
        ({ name }) => name === "completes-with-nothing" || /without-terminal/.test(name),
      );
      for (const agent of silent) await mustHold(bench, { ...agent, ends: EventType.RUN_FINISHED });
    },
  },
  {
    id: "end.duplicates-dropped",
    level: "full",
    title: "an exact duplicate of RUN_STARTED is dropped",
    says: "A second RUN_STARTED equal to the first must be dropped; the run goes on to its own end.",
    async check(bench) {
      const twice = MISBEHAVING_AGENTS.filter(({ name }) => name === "run-started-twice");
      for (const agent of twice) await mustHold(bench, { ...agent, ends: EventType.RUN_FINISHED, keeps: SAID });
    },
  },
  {
    id: "end.next-after-each",
    level: "core",
    title: "one thread outlives all of these agents, one after the other",
    says: "No sequence of misbehaving agents may wedge a thread or spoil its replay.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await beginThread(tab);
      for (const agent of MISBEHAVING_AGENTS.filter(
        ({ name, isStopped }) => isStopped !== true && !/thousand/.test(name),
      )) {
        const scene: Scene = { history: tab.view, over: new Gate(), done: new Gate() };
        const input = tab.ask(agent.name, agent.state === undefined ? {} : { state: agent.state });
        const run = tab.thread.run(agent.make(scene), input);
        const events = await run.all();
        mustBeOneRun(`the run of ${agent.name}`, events, input);
        await tab.take(events);
      }
      await tab.mustBeOnReplay();
    },
  },
]);
