import { EventType } from "@ag-ui/core";
import type { Message } from "@ag-ui/client";
import type { Bench } from "./bench.js";
import { cases } from "./case.js";
import { expectSame, expectThat, shown } from "./expect.js";
import { having } from "./full-runner.js";
import { answering, answerId, FIRST_PART, held, say } from "./good-agents.js";
import { heldRun, mustTakeAnother } from "./steps.js";
import { scriptedAgent } from "./scripted-agent.js";
import { Tab } from "./tab.js";
import { mustAgree, mustBeOneRun, mustBeValid, rebuild } from "./view.js";

/** A thread with a state, an answer and a second answer. */
async function filledThread(bench: Bench): Promise<{ readonly tab: Tab; readonly runIds: readonly string[] }> {
  const tab = new Tab(bench.thread());
  const first = tab.ask("first");
  const stateful = scriptedAgent(({ input, emit }) => {
    const id = answerId(input);
    emit(say.started(input), say.state({ list: ["first"] }), say.textStart(id), say.text(id, "one, "));
    emit(say.text(id, "two"), say.textEnd(id), say.finished(input));
  });
  await tab.take(await tab.thread.run(stateful, first).all());
  const second = tab.ask("second");
  await tab.take(await tab.thread.run(answering("three, four"), second).all());
  return { tab, runIds: [first.runId, second.runId] };
}

const idsOf = (runs: readonly { readonly runId: string }[]): unknown => runs.map(({ runId }) => runId);

const plain = (messages: readonly Message[]): unknown =>
  messages.map(({ id, role, content }) => ({ id, role, content }));

export const readsCases = cases([
  {
    id: "reads.list-threads",
    level: "full",
    title: "listThreads names every thread that has a run",
    says: "listThreads() must list each thread that has a run, and no other.",
    async check(bench) {
      const runner = having(bench, "listThreads");
      const used = [(await filledThread(bench)).tab, (await filledThread(bench)).tab];
      const listed = (await runner.listThreads()).map((it) => ("threadId" in it ? it.threadId : it.id));
      for (const { thread } of used)
        expectThat(listed.includes(thread.threadId), "each thread with a run must be listed", shown(listed));
      expectThat(new Set(listed).size === listed.length, "each thread must be listed once", shown(listed));
      expectThat(!listed.includes(bench.thread().threadId), "no other thread may be listed");
    },
  },
  {
    id: "reads.list-runs",
    level: "full",
    title: "listRuns pages through a thread's runs, newest first, by status",
    says: "listRuns() must give each run with its status, newest first, at most `limit`, only those before `before` and of the asked status.",
    async check(bench) {
      const runner = having(bench, "listRuns");
      const { tab, runIds } = await filledThread(bench);
      const failing = tab.ask("third");
      const failed = scriptedAgent(({ input, emit }) => emit(say.started(input), say.failed("no")));
      await tab.thread.run(failed, failing).all();
      const { threadId } = tab.thread;
      const newest = [failing.runId, ...runIds.toReversed()];
      const all = await runner.listRuns(threadId);
      expectSame(idsOf(all), newest, "listRuns() must give all runs, newest first");
      const statuses = all.map(({ status }) => status);
      expectSame(statuses, ["errored", "finished", "finished"], "listRuns() must say how runs ended");
      const first = await runner.listRuns(threadId, { limit: 2 });
      expectSame(idsOf(first), newest.slice(0, 2), "limit must be kept");
      const rest = await runner.listRuns(threadId, { before: first.at(-1)!.runIndex });
      expectSame(idsOf(rest), newest.slice(2), "before must go on where the page before ended");
      const errored = await runner.listRuns(threadId, { status: "errored" });
      expectSame(idsOf(errored), [failing.runId], "status must be kept");
      expectSame(await runner.listRuns(bench.thread().threadId), [], "an unknown thread must have no runs");
    },
  },
  {
    id: "reads.run-status",
    level: "full",
    title: "getRun says how a run stands: running, then how it ended",
    says: "getRun() must say running while the run is live and stopped when it was stopped; undefined for an unknown run.",
    async check(bench) {
      const runner = having(bench, "getRun");
      const { tab, input, run } = await heldRun(bench);
      const { threadId } = tab.thread;
      const live = await runner.getRun(input.runId, { threadId });
      expectSame(live?.status, "running", "getRun() must say that a live run is running");
      await tab.thread.stop();
      await run.all();
      const stopped = await runner.getRun(input.runId);
      expectSame(stopped?.runId, input.runId, "getRun() must find a run by its id alone");
      expectSame(stopped?.status, "stopped", "getRun() must say that a stopped run was stopped");
      const unknown = await runner.getRun("nobody-has-this-id");
      expectThat(unknown === undefined, "getRun() must answer undefined for an unknown run", shown(unknown));
    },
  },
  {
    id: "reads.run-events",
    level: "full",
    title: "getRunEvents gives a run's events as they came, with place and time",
    says: "getRunEvents() must give every event as it was recorded, seq 0, 1, 2 …, times that never go back, and keep types, after and limit.",
    async check(bench) {
      const runner = having(bench, "getRunEvents");
      const { tab, runIds } = await filledThread(bench);
      const { threadId } = tab.thread;
      const all = await runner.getRunEvents(runIds[0]!, { threadId });
      const events = all.map(({ event }) => event);
      mustBeOneRun("what getRunEvents() gives", events, { threadId, runId: runIds[0]! });
      mustBeValid("what getRunEvents() gives", events);
      const isGapless = all.every(({ seq }, n) => seq === n);
      expectThat(isGapless, "seq must be 0, 1, 2 … without a gap", shown(all.map(({ seq }) => seq)));
      const times = all.map(({ at }) => at);
      const isForward = times.every((at, n) => at > 0 && at >= (times[n - 1] ?? 0));
      expectThat(isForward, "times must not go back", shown(times));
      const texts = all.filter(({ event }) => event.type === EventType.TEXT_MESSAGE_CONTENT);
      const deltas = texts.map(({ event }) => event["delta"]);
      expectSame(deltas, ["one, ", "two"], "each event must be given as it was emitted");
      const ofType = await runner.getRunEvents(runIds[0]!, { threadId, types: [EventType.TEXT_MESSAGE_CONTENT] });
      expectSame(ofType, texts, "types must be kept");
      const page = await runner.getRunEvents(runIds[0]!, { threadId, after: 1, limit: 2 });
      expectSame(page, all.slice(2, 4), "after and limit must be kept");
      expectSame(await runner.getRunEvents("nobody-has-this-id"), [], "an unknown run must have no events");
    },
  },
  {
    id: "reads.thread-messages",
    level: "full",
    title: "getThreadMessages is what a client rebuilds",
    says: "getThreadMessages() must be the messages that a client rebuilds from the replay; none for an unknown thread.",
    async check(bench) {
      const runner = having(bench, "getThreadMessages");
      const { tab } = await filledThread(bench);
      const messages = await runner.getThreadMessages(tab.thread.threadId);
      expectSame(plain(messages), plain(tab.view.messages), "getThreadMessages() must be what a client rebuilds");
      expectSame(
        await runner.getThreadMessages(bench.thread().threadId),
        [],
        "an unknown thread must have no messages",
      );
    },
  },
  {
    id: "reads.thread-messages-live",
    level: "full",
    title: "getThreadMessages has what a live run has said so far",
    says: "getThreadMessages() during a run must have the user's message and the answer so far.",
    async check(bench) {
      const runner = having(bench, "getThreadMessages");
      const { tab, goOn, run } = await heldRun(bench);
      const messages = await runner.getThreadMessages(tab.thread.threadId);
      const contents = messages.map(({ content }) => content);
      expectSame(contents, ["hello", FIRST_PART], "getThreadMessages() must have the live run so far");
      goOn.open();
      await run.all();
    },
  },
  {
    id: "reads.thread-events",
    level: "full",
    title: "getThreadEvents is a valid stream that rebuilds the thread",
    says: "getThreadEvents() must be accepted by verifyEvents and rebuild what the replay rebuilds; none for an unknown thread.",
    async check(bench) {
      const runner = having(bench, "getThreadEvents");
      const { tab } = await filledThread(bench);
      const events = await runner.getThreadEvents(tab.thread.threadId);
      mustBeValid("what getThreadEvents() gives", events);
      mustAgree("what getThreadEvents() gives", await rebuild("what getThreadEvents() gives", events), tab.view);
      expectSame(await runner.getThreadEvents(bench.thread().threadId), [], "an unknown thread must have no events");
    },
  },
  {
    id: "reads.thread-state",
    level: "full",
    title: "getThreadState is the state at the end of the thread",
    says: "getThreadState() must be the state that a client rebuilds; nothing (null or undefined) for an unknown thread.",
    async check(bench) {
      const runner = having(bench, "getThreadState");
      const { tab } = await filledThread(bench);
      const state = await runner.getThreadState(tab.thread.threadId);
      expectSame(state, tab.view.state, "getThreadState() must be what a client rebuilds");
      const none = (await runner.getThreadState(bench.thread().threadId)) ?? undefined;
      expectThat(none === undefined, "an unknown thread must have no state", shown(none));
    },
  },
  {
    id: "reads.clear-threads",
    level: "full",
    title: "clearThreads leaves nothing, and its threads can be used anew",
    says: "After clearThreads() no thread may be listed or replayed, and a run under a known thread id must start from nothing.",
    async check(bench) {
      const runner = having(bench, "clearThreads");
      const { tab } = await filledThread(bench);
      await runner.clearThreads();
      const { thread } = tab;
      expectSame(await thread.replay(), [], "a cleared thread must have nothing on replay");
      await mustTakeAnother(thread);
      const view = await rebuild("the replay", await thread.replay());
      const contents = view.messages.map(({ content }) => content);
      expectSame(contents, ["and now?", "here it is"], "a run after clearThreads() must start from nothing");
    },
  },
  {
    id: "reads.destroy",
    level: "full",
    title: "destroy ends live runs and refuses what comes after it",
    says: "destroy() must end the live runs of its runner; a run asked for after it must be refused, thrown or as an error.",
    async check(bench) {
      const runner = having(bench, "destroy");
      const { tab, run } = await heldRun(bench);
      await bench.patience.within(Promise.resolve(runner.destroy()), "destroy() resolves");
      await run.whenEnded();
      const { agent, called } = held();
      const end = await tab.thread.run(agent, tab.ask("more")).whenEnded();
      expectThat(end.is !== "completed", "a run of a destroyed runner must be refused");
      expectThat(!called.isOpen, "the agent of a refused run must not be started");
    },
  },
]);
