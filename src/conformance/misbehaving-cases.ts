import { EventType } from "@ag-ui/core";
import type { BaseEvent, RunErrorEvent } from "@ag-ui/client";
import type { Bench } from "./bench.js";
import { cases, type RunnableCase } from "./case.js";
import { expectSame, expectThat, shown } from "./expect.js";
import { answering, answerId, held, say } from "./good-agents.js";
import { SAID, type MisbehavingAgent, type Outcome, type Scene } from "./misbehaving/agent.js";
import { RESTATED } from "./misbehaving/breaking-protocol.js";
import { OPENINGS } from "./misbehaving/leaving-open.js";
import { MISBEHAVING_AGENTS } from "./misbehaving-agents.js";
import { Gate } from "./patience.js";
import { scriptedAgent } from "./scripted-agent.js";
import { Tab } from "./tab.js";
import { hasText, mustAgree, mustBeClosed, mustBeOneRun, mustBeValid, rebuild, textOf } from "./view.js";

/** The thread's first run: an answer, and a state that later runs may patch. */
async function beginThread(tab: Tab): Promise<void> {
  const agent = scriptedAgent(({ input, emit }) => {
    const id = answerId(input);
    emit(say.started(input), say.state({ list: ["first"] }), say.textStart(id), say.text(id, "welcome, "));
    emit(say.textEnd(id), say.finished(input));
  });
  await tab.turn(agent, "hello");
}

/** What must hold for a thread whose second run was of a misbehaving agent. */
export async function mustHold(bench: Bench, agent: MisbehavingAgent): Promise<void> {
  const { make, isStopped, staysOn, state, ends, keeps, check } = agent;
  const tab = new Tab(bench.thread());
  const { thread } = tab;
  await beginThread(tab);

  const scene: Scene = { history: tab.view, over: new Gate(), done: new Gate() };
  const input = tab.ask("please", state === undefined ? {} : { state });
  const userId = input.messages.at(-1)!.id;
  const run = thread.run(make(scene), input);
  if (isStopped === true) {
    await run.saw(hasText(SAID), "what the agent said before it was stopped");
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

/** The agents with these names, or names that match. */
function named(...names: readonly (string | RegExp)[]): readonly MisbehavingAgent[] {
  const matches = (name: string): boolean =>
    names.some((wanted) => (typeof wanted === "string" ? wanted === name : wanted.test(name)));
  return MISBEHAVING_AGENTS.filter(({ name }) => matches(name));
}

function mustEndWith(events: readonly BaseEvent[], code: string): void {
  expectSame(events.at(-1)?.["code"], code, "the code of the run's RUN_ERROR");
}

/** For a runner that implements the protocol itself: the agent's own end counts. */
export const ownEndCases = cases([
  {
    id: "end.own-finish-with-open-constructs",
    level: "full",
    title: "an agent's own RUN_FINISHED counts, though it left something open",
    says: "What is open at the agent's RUN_FINISHED must be closed before it; the run is a success, as its agent says.",
    async check(bench) {
      for (const agent of named(/^finishes-in-/)) {
        await mustHold(bench, { ...agent, ends: EventType.RUN_FINISHED });
      }
    },
  },
  {
    id: "end.without-terminal-is-errored",
    level: "full",
    title: "a stream that ends without a terminal event is a failure",
    says: "A run whose agent completes without a terminal event must end with RUN_ERROR, code INCOMPLETE_STREAM, and no tool result may be made up in it.",
    async check(bench) {
      for (const agent of named("completes-with-nothing", "completes-without-terminal", /^ends-without-terminal/)) {
        await mustHold(bench, {
          ...agent,
          ends: EventType.RUN_ERROR,
          check: ({ events }) => {
            mustEndWith(events, "INCOMPLETE_STREAM");
            const results = events.filter(({ type }) => type === EventType.TOOL_CALL_RESULT);
            expectThat(results.length === 0, "no tool result may be made up", shown(results));
          },
        });
      }
    },
  },
  {
    id: "end.late-error-fails-the-run",
    level: "full",
    title: "RUN_ERROR after RUN_FINISHED fails the run",
    says: "An agent that emits RUN_ERROR after RUN_FINISHED has failed: the run must end with that RUN_ERROR.",
    async check(bench) {
      for (const agent of named("two-terminals")) {
        await mustHold(bench, {
          ...agent,
          ends: EventType.RUN_ERROR,
          check: ({ events }) => expectSame(events.at(-1)?.["message"], "after the end", "the agent's own words"),
        });
      }
    },
  },
  {
    id: "end.failure-keeps-its-reason",
    level: "full",
    title: "what comes after RUN_ERROR is left out",
    says: "A run ends with the first RUN_ERROR that its agent emits, message and code unchanged; nothing that the stream holds after it is recorded or takes its place.",
    async check(bench) {
      for (const agent of named("goes-on-after-error")) {
        await mustHold(bench, {
          ...agent,
          check: ({ events, replay }) => {
            const { message, code } = events.at(-1) as RunErrorEvent; // the case says that it ends with one
            expectSame([message, code], ["out of tokens", undefined], "the agent's own words");
            const late = replay.some((event) => event["messageId"] === "too-late");
            expectThat(!late, "what comes after it must not be on replay");
          },
        });
      }
    },
  },
  {
    id: "end.rejected-is-not-failed",
    level: "full",
    title: "a stream that is rejected and an agent that fails have different codes",
    says: "A stream that breaks the protocol, also after its RUN_FINISHED, must end with RUN_ERROR, code INVALID_STREAM; an agent that throws with AGENT_FAILED.",
    async check(bench) {
      const ending = async (agent: MisbehavingAgent, code: string): Promise<void> =>
        mustHold(bench, {
          ...agent,
          ends: EventType.RUN_ERROR,
          check: (outcome) => {
            agent.check?.(outcome);
            mustEndWith(outcome.events, code);
          },
        });
      const invalid = [
        "goes-on-after-terminal",
        "content-of-unknown-message",
        "ends-a-message-twice",
        "malformed-event",
      ];
      for (const agent of named(...invalid)) await ending(agent, "INVALID_STREAM");
      for (const agent of named(/^throws-(in-run|before)/, /^errors-in-/)) await ending(agent, "AGENT_FAILED");
    },
  },
  {
    id: "end.several-runs-in-a-stream",
    level: "full",
    title: "a stream that restates an earlier run before the one that was asked for loses neither",
    says: "What a stream says in several runs must be recorded as the one run that was asked for, ended by its own terminal event.",
    async check(bench) {
      for (const agent of named("restates-an-earlier-run")) {
        await mustHold(bench, {
          ...agent,
          ends: EventType.RUN_FINISHED,
          keeps: SAID,
          check: ({ view }) => expectSame(textOf(view, RESTATED.id), RESTATED.content, "the restated message"),
        });
      }
    },
  },
  {
    id: "end.front-end-tools-are-not-answered",
    level: "full",
    title: "nobody but the page answers a call of a front-end tool",
    says: "A call of a tool of input.tools that is open when the run ends or is stopped must be closed, and no TOOL_CALL_RESULT made up for it.",
    async check(bench) {
      const tools = [{ name: "look", description: "of the page", parameters: {} }];
      for (const end of ["finish", "complete", "throw", "stop"] as const) {
        const tab = new Tab(bench.thread());
        const { agent, goOn } = held({
          during: ({ emit }) => emit(...OPENINGS["tool-call"]()),
          ...(end !== "stop" && { ends: end }),
        });
        const run = tab.thread.run(agent, tab.ask("look", { tools }));
        await run.saw(({ type }) => type === EventType.TOOL_CALL_ARGS, "the call");
        if (end === "stop") await tab.thread.stop();
        else goOn.open();
        const events = await run.all();
        mustBeClosed(`the run that ends by ${end}`, events);
        const results = events.filter(({ type }) => type === EventType.TOOL_CALL_RESULT);
        expectThat(results.length === 0, `a front-end tool's call got a result (${end})`, shown(results));
      }
    },
  },
  {
    id: "end.duplicates-dropped",
    level: "full",
    title: "an exact duplicate of RUN_STARTED is dropped",
    says: "A second RUN_STARTED equal to the first must be dropped; the run goes on to its own end.",
    async check(bench) {
      for (const agent of named("run-started-twice"))
        await mustHold(bench, { ...agent, ends: EventType.RUN_FINISHED, keeps: SAID });
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
      for (const agent of MISBEHAVING_AGENTS) {
        if (agent.isStopped === true || agent.name === "ten-thousand-deltas") continue;
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
