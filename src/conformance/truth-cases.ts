import { EventType } from "@ag-ui/core";
import type { Interrupt, RunAgentInput } from "@ag-ui/client";
import { RunnerError, type RunnerErrorCode } from "../run/errors.js";
import { cases } from "./case.js";
import { expectSame, expectThat, shown } from "./expect.js";
import { answering, held, say } from "./good-agents.js";
import type { Gate } from "./patience.js";
import type { Recording } from "./recording.js";
import { heldRun } from "./steps.js";
import { scriptedAgent } from "./scripted-agent.js";
import { Tab } from "./tab.js";
import { joined, mustBeOneRun, rebuild } from "./view.js";

const delta = (value: unknown) => ({
  type: EventType.STATE_DELTA as const,
  delta: [{ op: "add" as const, path: "/list/-", value }],
});

/** Patches its state and records its input. */
function patching(value: unknown, seen: RunAgentInput[] = []): ReturnType<typeof scriptedAgent> {
  return scriptedAgent(async ({ input, emit }) => {
    seen.push(structuredClone(input));
    emit(say.started(input));
    await Promise.resolve();
    emit(delta(value), say.finished(input));
  });
}

/** Records its input and finishes. */
const noting = (seen: RunAgentInput[]): ReturnType<typeof scriptedAgent> =>
  scriptedAgent(({ input, emit }) => {
    seen.push(structuredClone(input));
    emit(say.started(input), say.finished(input));
  });

const INTERRUPT: Interrupt = { id: "approval", reason: "needs a person" };

/** Ends its run with an interrupt. */
function asking(...ids: readonly string[]): ReturnType<typeof scriptedAgent> {
  return scriptedAgent(({ input, emit }) => {
    const interrupts = ids.map((id) => ({ ...INTERRUPT, id }));
    emit(say.started(input), { ...say.finished(input), outcome: { type: "interrupt", interrupts } });
  });
}

/** The error with which a run must be refused, its agent not started. */
async function refusalOf(run: Recording, called: Gate, code: RunnerErrorCode): Promise<RunnerError> {
  const end = await run.whenEnded();
  const error = end.is === "completed" ? undefined : end.error;
  const how = end.is === "completed" ? run.account() : shown(String(error));
  expectThat(RunnerError.is(error, code), `it must be refused with the code "${code}"`, how);
  expectThat(!called.isOpen, "the agent of a refused run must not be started");
  return error;
}

export const truthCases = cases([
  {
    id: "state.is-carried-over",
    level: "full",
    title: "the state at the end of a run is the base of the next",
    says: "A run whose input sets no state must start from the thread's last state: its agent is given it, and its deltas apply to it, live and on replay.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const first = scriptedAgent(({ input, emit }) => {
        emit(say.started(input), say.state({ list: ["first"] }), say.finished(input));
      });
      await tab.turn(first, "one");
      const seen: RunAgentInput[] = [];
      // A new AG-UI client always sends {}.
      await tab.turn(patching("second", seen), "two", { state: {} });
      expectSame(seen[0]?.state, { list: ["first"] }, "the agent must be given the thread's state");
      const view = await tab.mustBeOnReplay();
      expectSame(view.state, { list: ["first", "second"] }, "the delta must apply to the thread's state");
    },
  },
  {
    id: "state.delta-only-runs",
    level: "full",
    title: "runs of nothing but deltas replay as the true state",
    says: "A delta applies to the state that its run started from, never to {}: also where no run ever emitted a STATE_SNAPSHOT.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(patching("b"), "one", { state: { list: ["a"], kept: true } });
      const first = await tab.mustBeOnReplayWith({ list: ["a", "b"], kept: true });
      await tab.turn(patching("c"), "two", { state: first.state });
      await tab.mustBeOnReplayWith({ list: ["a", "b", "c"], kept: true });
    },
  },
  {
    id: "state.base-is-given",
    level: "full",
    title: "a sender that does not have the thread's state is given it",
    says: "Where a run starts from the thread's state and its sender sent {}, the sender must end with the state that the log has: a STATE_SNAPSHOT comes before the run's deltas.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(patching("b"), "one", { state: { list: ["a"] } });
      const stranger = new Tab(tab.thread);
      await stranger.turn(patching("c"), "two");
      expectSame(stranger.view.state, { list: ["a", "b", "c"] }, "it must have the state that the run led to");
      const { state } = await rebuild("the replay", await tab.thread.replay());
      expectSame(state, stranger.view.state, "the log must have the same");
    },
  },
  {
    id: "state.set-by-the-sender",
    level: "full",
    title: "a state that the sender sets is the base of its run",
    says: "Where input.state says something, the run must start from it and not from the thread's, live and on replay.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(patching("b"), "one", { state: { list: ["a"], old: true } });
      const seen: RunAgentInput[] = [];
      await tab.turn(patching("z", seen), "two", { state: { list: ["y"] } });
      expectSame(seen[0]?.state, { list: ["y"] }, "the agent must be given the state that the sender set");
      await tab.mustBeOnReplayWith({ list: ["y", "z"] });
    },
  },
  {
    id: "messages.recorded-once",
    level: "full",
    title: "messages that are sent again with each run are recorded once",
    says: "RUN_STARTED.input of each recorded run must hold only the messages that are new to the thread; the replay has each message once, in order.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      for (const text of ["one", "two", "three"]) await tab.turn(answering(`${text}!`), text);
      const events = await tab.thread.replay();
      const recorded = events
        .filter((event) => event.type === EventType.RUN_STARTED)
        .map(
          (event) => (event["input"] as RunAgentInput | undefined)?.messages.map((message) => message.content) ?? [],
        );
      const rule = "each recorded input must hold the messages that were new";
      expectSame(recorded.flat(), ["one", "two", "three"], rule);
      const view = await tab.mustBeOnReplay();
      const contents = view.messages.map((message) => message.content);
      expectSame(contents, ["one", "one!", "two", "two!", "three", "three!"], "the replay must have each message once");
    },
  },
  {
    id: "input.keeps-no-secrets",
    level: "full",
    title: "what an agent echoes of its input is recorded without context and forwardedProps",
    says: "RUN_STARTED.input of a recorded run must hold ids, the messages that are new to the thread (also those that only the agent names) and resume, and neither context nor forwardedProps.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const system = { id: "the-agents-own", role: "system" as const, content: "be kind" };
      const echoing = scriptedAgent(({ input, emit }) => {
        emit(
          { ...say.started(input), input: { ...input, messages: [system, ...input.messages] } },
          say.finished(input),
        );
      });
      const secret = "not to be stored";
      const input = {
        ...tab.ask("hello"),
        context: [{ description: "who", value: secret }],
        forwardedProps: { token: secret },
      };
      await tab.thread.run(echoing, input).all();
      const events = await tab.thread.replay();
      expectThat(!JSON.stringify(events).includes(secret), "context and forwardedProps must not be recorded");
      const { messages } = await rebuild("the replay", events);
      const ids = messages.map(({ id }) => id);
      expectSame(ids, [system.id, input.messages[0]?.id], "the replay must have the messages that the agent names");
    },
  },
  {
    id: "messages.agent-has-the-history",
    level: "full",
    title: "an agent is given the whole thread, though the sender sent only what is new",
    says: "The agent of a run whose sender sends only its new message must be given the thread's messages before it.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(answering("one!"), "one");
      const seen: RunAgentInput[] = [];
      const input = tab.ask("two");
      const known = input.messages.map((message) => message.id);
      await tab.thread.run(noting(seen), { ...input, messages: input.messages.slice(-1) }).all();
      const given = seen[0]?.messages.map((message) => message.id);
      expectSame(given, known, "the agent must be given all messages of the thread");
    },
  },
  {
    id: "interrupt.is-kept-until-resumed",
    level: "core",
    title: "an interrupt is open on replay until a run resumes it",
    says: "RUN_FINISHED with the interrupt outcome must be recorded with its interrupts, input.resume must reach the agent, and the next RUN_FINISHED empties them.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(asking(INTERRUPT.id), "may I?");
      const open = await tab.mustBeOnReplay();
      const ids = open.interrupts.map(({ id }) => id);
      expectSame(ids, [INTERRUPT.id], "the interrupt must be open on replay");
      const seen: RunAgentInput[] = [];
      const answer = [{ interruptId: INTERRUPT.id, status: "resolved" as const, payload: { yes: true } }];
      await tab.take(await tab.thread.run(noting(seen), tab.ask(undefined, { resume: answer })).all());
      expectSame(seen[0]?.resume, answer, "the agent must be given input.resume");
      const view = await tab.mustBeOnReplay();
      expectSame(view.interrupts, [], "no interrupt may be open after the run that resumed it");
    },
  },
  {
    id: "interrupt.must-be-answered",
    level: "full",
    title: "a run that leaves an open interrupt without an answer is refused",
    says: 'While a thread has open interrupts, a run whose input.resume does not answer or cancel each of them once must be refused with a RunnerError of code "interrupts-open" whose details.interruptIds names them: no agent started, nothing recorded.',
    async check(bench) {
      const tab = new Tab(bench.thread());
      await tab.turn(asking("one", "two"), "may I?");
      const before = await tab.mustBeOnReplay();
      const one = { interruptId: "one", status: "resolved" as const };
      for (const resume of [undefined, [one], [one, one, { ...one, interruptId: "two" }]]) {
        const { agent, called, goOn } = held();
        goOn.open();
        const run = tab.thread.run(agent, tab.ask(undefined, resume && { resume }));
        const { details } = await refusalOf(run, called, "interrupts-open");
        expectSame(details["interruptIds"], ["one", "two"], "the error must name what is open");
      }
      expectSame(await tab.mustBeOnReplay(), before, "nothing of a refused run may be recorded");
      const resume = [one, { interruptId: "two", status: "cancelled" as const }];
      await tab.take(await tab.thread.run(answering("thanks"), tab.ask(undefined, { resume })).all());
    },
  },
  {
    id: "run-id.an-answer-may-take-it",
    level: "full",
    title: "an answer under the id of the run that asked is a run of its own",
    says: "A known runId with input.resume that was not sent before must be run, its events carrying that id; sent again, it is that run, as the first request stays the first run.",
    async check(bench) {
      const tab = new Tab(bench.thread());
      const input = tab.ask("may I?");
      const first = await tab.thread.run(asking("one"), input).all();
      await tab.take(first);
      const resume = [{ interruptId: "one", status: "resolved" as const }];
      const answer = { ...tab.ask(undefined, { resume }), runId: input.runId };
      const second = await tab.thread.run(answering("thanks"), structuredClone(answer)).all();
      mustBeOneRun("the answer's run", joined(second), answer);
      await tab.take(second);
      await tab.mustBeOnReplay();
      const again = held();
      again.goOn.open();
      const rule = "the same request must be the same run";
      expectSame(joined(await tab.thread.run(again.agent, answer).all()), joined(second), rule);
      expectSame(joined(await tab.thread.run(again.agent, input).all()), joined(first), rule);
      expectThat(!again.called.isOpen, "no agent may be started for a run that is there already");
    },
  },
  {
    id: "run-id.equal-input-attaches",
    level: "full",
    title: "a run asked for again with equal input is that run",
    says: "The same runId with equal input must give the recorded run, live or settled, without starting an agent.",
    async check(bench) {
      const { tab, goOn, input, run } = await heldRun(bench);
      const others = [held(), held()] as const;
      const during = tab.thread.run(others[0].agent, structuredClone(input));
      goOn.open();
      const whole = joined(await run.all());
      mustBeOneRun("the run", whole, input);
      const rule = "the same run must be handed out";
      expectSame(joined(await during.all()), whole, `${rule} to who asks for it while it is live`);
      const after = tab.thread.run(others[1].agent, structuredClone(input));
      expectSame(joined(await after.all()), whole, `${rule} to who asks for it when it is settled`);
      const started = others.some(({ called }) => called.isOpen);
      expectThat(!started, "no agent may be started for a run that is there already");
    },
  },
  {
    id: "run-id.other-input-is-refused",
    level: "full",
    title: 'a known run id with another input is refused with the code "run-exists"',
    says: 'The same runId with another input must be refused with a RunnerError of code "run-exists", and nothing started.',
    async check(bench) {
      const tab = new Tab(bench.thread());
      const input = tab.ask("hello");
      await tab.take(await tab.thread.run(answering("yes"), input).all());
      const { agent, called, goOn } = held();
      goOn.open();
      const again = tab.thread.run(agent, tab.ask("something else", { runId: input.runId }));
      await refusalOf(again, called, "run-exists");
      await tab.thread.mustBeFree("after a refused run");
    },
  },
]);
