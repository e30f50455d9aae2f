import { EventType } from "@ag-ui/core";
import { expectSame, expectThat, shown } from "../../../../src/conformance/expect.js";
import { interruptOf } from "./contract-agents.js";
import { expectRefusal, waits, type Asked, type ContractBench, type ContractCase } from "./contract-bench.js";
import { EventReader, joined, typesOf, type Read } from "./reading.js";

/** Both ways in which a reader says what it has. */
const RESUMES: readonly (readonly [string, (id: string) => Partial<Asked>])[] = [
  ["Last-Event-ID", (id) => ({ headers: { "Last-Event-ID": id } })],
  ["lastSeenEventId", (id) => ({ input: { lastSeenEventId: id } })],
];

const NO_CURSORS = [
  "garbage",
  "",
  "0",
  "0.0",
  "0.0.0.0",
  "-1.0.1",
  "0.-2.1",
  "1e3.0.1",
  "00.0.1",
  "9".repeat(20),
  "__proto__",
];

/** An empty header is none. */
const hasText = (name: string, id: string): boolean => name !== "Last-Event-ID" || id !== "";

/** Of a live run: what there is until it waits. */
async function untilItWaits(reader: EventReader): Promise<readonly Read[]> {
  await reader.until(waits, "it waits");
  await reader.leave();
  return reader.read;
}

const resuming: readonly ContractCase[] = RESUMES.flatMap(([name, after]): readonly ContractCase[] => [
  ...["rich", "stepper"].map((agentId): ContractCase => ({
    name: `connect with ${name} gives the rest of a settled run of ${agentId}, wherever it is cut`,
    check: async (bench) => {
      const [threadId, gate] = [bench.id("t"), bench.id("gate")];
      await bench.open(gate);
      const whole = await bench.run(agentId, { threadId, props: { gate } });
      for (const [at, { id }] of whole.entries()) {
        const rest = await bench.history(threadId, after(id!));
        const all = joined([...whole.slice(0, at + 1), ...rest]);
        expectSame(all, joined(whole), `what a reader has and what comes after ${id} must be the run`);
      }
    },
  })),
  {
    name: `connect with ${name} gives the rest of a live run, wherever it is cut`,
    check: async (bench) => {
      const threadId = bench.id("t");
      const { reader, letOn } = await bench.hold({ threadId }, "stepper");
      const soFar = [...reader.read];
      for (const [at, { id }] of soFar.slice(0, -1).entries()) {
        const rest = await bench.patience.within(untilItWaits(await bench.connect(threadId, after(id!))), "the rest");
        expectSame(
          joined([...soFar.slice(0, at + 1), ...rest]),
          joined(soFar),
          `what a reader has and what comes after ${id} must be the run so far`,
        );
      }
      const late = await bench.connect(threadId, after(soFar.at(-1)!.id!));
      await letOn();
      const whole = joined(await reader.all());
      expectSame(joined([...soFar, ...(await late.all())]), whole, "who connected while it was live must get its end");
    },
  },
  {
    name: `connect with ${name} goes on behind a run that its reader has`,
    check: async (bench) => {
      const threadId = bench.id("t");
      const first = await bench.run("echo", { threadId, says: "first" });
      const id = first.at(-1)!.id;
      expectSame(await bench.history(threadId, after(id!)), [], "who has all of it must be given nothing");
      // Who starts it has the first run, too.
      const state = first.findLast(({ event }) => event.type === EventType.STATE_SNAPSHOT)?.event["snapshot"];
      const second = await bench.run("rich", { threadId, input: { state } });
      const rest = await bench.history(threadId, after(id!));
      expectSame(joined(rest), joined(second), "who has the first run must be given the second");
    },
  },
  {
    name: `connect with ${name} of what is no cursor gives everything`,
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("rich", { threadId });
      const whole = (await bench.history(threadId)).map(({ event }) => event);
      for (const id of NO_CURSORS.filter((one) => hasText(name, one))) {
        const events = (await bench.history(threadId, after(id))).map(({ event }) => event);
        expectSame(events, whole, `a reader with the id ${shown(id)} must be given everything`);
      }
    },
  },
  {
    name: `connect with ${name} of another thread's cursor leads to the thread as it is`,
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      await bench.run("echo", { threadId, runId });
      for (const id of ["7.3.1", `0.0.${2 ** 40}`]) {
        const events = await bench.history(threadId, after(id));
        expectThat(
          events.some(({ event }) => event.type === EventType.MESSAGES_SNAPSHOT),
          `a cursor that is not on the path must lead to a snapshot`,
          `${id}: ${shown(typesOf(events))}`,
        );
      }
    },
  },
]);

const connecting: readonly ContractCase[] = [
  {
    name: "connect of an unknown thread is a stream with nothing in it",
    check: async (bench) => {
      expectSame(await bench.history(bench.id("t")), [], "an unknown thread must be empty");
      expectSame(
        await bench.history(bench.id("t"), { input: { lastSeenEventId: null } }),
        [],
        "null must count as none: CopilotKit sends it",
      );
    },
  },
  {
    name: "connect of a live run hands out what there is, and then its end",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader, letOn } = await bench.hold({ threadId, runId, props: { open: ["text"] } });
      const connected = await bench.connect(threadId);
      await bench.patience.within(
        connected.until(({ event }) => event.type === EventType.TEXT_MESSAGE_START, "its open text"),
        "the live run",
      );
      await letOn();
      const [own, other] = await Promise.all([reader.all(), connected.all()]);
      expectSame(other.at(-1)?.event, own.at(-1)?.event, "both readers must get the same end");
      expectThat(
        other.some(({ event }) => event.type === EventType.TEXT_MESSAGE_CONTENT && event["delta"] === "sentence"),
        "what came live must be handed out as a delta",
      );
    },
  },
  {
    name: "the last event of a snapshot has the id from which its reader goes on",
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("rich", { threadId });
      const snapshot = await bench.history(threadId);
      expectSame(
        snapshot.filter(({ id }) => id !== undefined).length,
        1,
        "who has half of a snapshot needs all of it again",
      );
      const rest = await bench.history(threadId, { headers: { "Last-Event-ID": snapshot.at(-1)!.id! } });
      expectSame(rest, [], "who has all of it must be given nothing");
    },
  },
];

async function expectWhole(bench: ContractBench, threadId: string, runId: string): Promise<void> {
  await bench.patience.until(
    async () => (await bench.messages(threadId)).some(({ content }) => content === "half a sentence"),
    "the run's end in the log",
  );
  const events = await bench.history(threadId);
  expectSame(events.at(-1)?.event["runId"], runId, "the run must have ended in the log");
  expectSame(events.at(-1)?.event.type, EventType.RUN_FINISHED, "the run must have ended as if it had been read");
}

const leaving: readonly ContractCase[] = [
  {
    name: "who leaves a run detaches: it goes on, and connect shows it whole (L11)",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader, letOn } = await bench.hold({ threadId, runId, props: { open: ["text"] } });
      await reader.leave();
      expectSame(await bench.progress(runId), "started", "a run that nobody reads must go on");
      await letOn();
      await expectWhole(bench, threadId, runId);
    },
  },
  {
    name: "whose request is aborted detaches: the run goes on (L11)",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const leave = new AbortController();
      const { letOn } = await bench.hold({ threadId, runId, props: { open: ["text"] }, signal: leave.signal });
      leave.abort();
      expectSame(await bench.progress(runId), "started", "a run whose reader is gone must go on");
      await letOn();
      await expectWhole(bench, threadId, runId);
    },
  },
  {
    name: "who leaves a connect leaves the run as it is",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader, letOn } = await bench.hold({ threadId, runId, props: { open: ["text"] } });
      const connected = await bench.connect(threadId);
      await bench.patience.within(connected.next(), "the first event");
      await connected.leave();
      await letOn();
      expectSame(
        (await reader.all()).at(-1)?.event.type,
        EventType.RUN_FINISHED,
        "a run must not end with one of its readers",
      );
    },
  },
];

const together: readonly ContractCase[] = [
  {
    name: "a busy thread refuses another run with 409 and names the live one (L5)",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader, letOn } = await bench.hold({ threadId, runId });
      const busy = { error: "Thread already running", code: "agent_thread_locked", threadId, runId };
      await expectRefusal(await bench.ask("run", "echo", { threadId }), 409, busy);
      await letOn();
      expectSame((await reader.all()).at(-1)?.event.type, EventType.RUN_FINISHED, "the live run must not notice");
      await bench.expectFree(threadId);
    },
  },
  {
    name: "a thread is free for whoever read the terminal event of its run",
    check: async (bench) => {
      const threadId = bench.id("t");
      for (let n = 0; n < 5; n++) {
        const reader = await bench.start("echo", { threadId, says: `${n}` });
        await reader.until(({ event }) => event.type === EventType.RUN_FINISHED, "the run's end");
      }
    },
  },
  {
    name: "of several runs that are asked for at once one is started",
    check: async (bench) => {
      const threadId = bench.id("t");
      const gate = bench.id("gate");
      const asked = await Promise.all(
        [1, 2, 3, 4].map(() => bench.ask("run", "holder", { threadId, props: { gate } })),
      );
      const refused = asked.filter(({ status }) => status !== 200);
      expectSame(refused.length, 3, "all but one must be refused");
      for (const one of refused) await expectRefusal(one, 409, { code: "agent_thread_locked" });
      await bench.open(gate);
      await new EventReader(asked.find(({ status }) => status === 200)!).all();
    },
  },
  {
    name: "the same run that is sent again attaches to the live one",
    check: async (bench) => {
      const [threadId, runId, gate] = [bench.id("t"), bench.id("run"), bench.id("gate")];
      const asked = { threadId, runId, props: { gate, open: ["text"] } } as const;
      const first = await bench.start("holder", asked);
      await bench.patience.within(first.until(waits, "it waits"), "a run that waits");
      const second = await bench.start("holder", asked);
      await bench.open(gate);
      const [one, other] = await Promise.all([first.all(), second.all()]);
      expectSame(joined(other), joined(one), "both must be given the one run");
    },
  },
  {
    name: "the same run that is sent again when it is over is not run again",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const first = await bench.run("rich", { threadId, runId });
      const again = await bench.run("rich", { threadId, runId });
      expectSame(joined(again), joined(first), "the run of this id must be handed out as it was");
    },
  },
  {
    name: "a run id that was used for something else is refused with 409",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      await bench.run("echo", { threadId, runId, says: "one" });
      const answer = await bench.ask("run", "echo", { threadId, runId, says: "other" });
      await expectRefusal(answer, 409, { error: "run-exists", threadId, runId });
    },
  },
  {
    name: "a run that leaves an open interrupt unanswered is refused with 409, and nothing of it is kept",
    check: async (bench) => {
      const [threadId, runId, next] = [bench.id("t"), bench.id("run"), bench.id("run")];
      await bench.run("asker", { threadId, runId });
      const entry = { interruptId: "another", status: "resolved" } as const;
      for (const resume of [[], [entry]]) {
        const answer = await bench.ask("run", "asker", { threadId, runId: next, input: { resume } });
        const interruptIds = [interruptOf(runId).id];
        await expectRefusal(answer, 409, { error: "interrupts-open", threadId, runId: next, interruptIds });
      }
      const ids = (await bench.history(threadId)).map(({ event }) => event["runId"]);
      expectThat(!ids.includes(next), "what was refused must not stand in the thread");
      const resume = [{ interruptId: interruptOf(runId).id, status: "resolved" as const }];
      await bench.run("asker", { threadId, runId: next, input: { resume } });
    },
  },
  {
    name: "a run is given the thread's state where its sender has none (L4)",
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("rich", { threadId });
      const events = await bench.run("echo", { threadId });
      const state = events.findLast(({ event }) => event.type === EventType.STATE_SNAPSHOT)?.event["snapshot"];
      expectSame(
        (state as { given: unknown } | undefined)?.given,
        { count: 2, seen: ["a", "b"] },
        "{} must count as not set",
      );
    },
  },
];

export const STREAM_CASES: readonly ContractCase[] = [...connecting, ...resuming, ...leaving, ...together];
