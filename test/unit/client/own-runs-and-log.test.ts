import { nextTask, systemClock } from "../../../src/platform/clock.js";
import { EventType, type BaseEvent } from "@ag-ui/client";
import { deleteDB } from "idb";
import { firstValueFrom, Observable, Subject, tap } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { ThreadFollower } from "../../../src/client/follower.js";
import { type Frame } from "../../../src/wire/shapes.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  fastClock,
  fullDisk,
  gated,
  freshDb,
  inputOf,
  makeRunner,
  rawAgent,
  rebuild,
  replay,
  silent,
  user,
} from "../runner/kit.js";
import { answerOf, halfWay, hostWith, lagging, makeHost, STEPS } from "./kit.js";

test("an own run that is not in the log any more is told as that to its tab (L10, L13)", async () => {
  const runner = makeRunner();
  const { gate, letOn } = gated();
  const run = runner.start({
    threadId: "t",
    agentId: "a",
    agent: agentOf(counter(4, (s) => (s === 2 ? gate : undefined))),
    input: inputOf("t", "r"),
  });
  const frames: Frame[] = [];
  const reading = (async () => {
    for await (const frame of runner.runFrames(run, { input: inputOf("t", "r") }, new AbortController().signal))
      frames.push(frame);
  })();
  await vi.waitFor(() => expect(frames.length).toBeGreaterThan(1));
  // Safari and "clear site data" empty a database without asking its connections.
  const db = await new Promise<IDBDatabase>((resolve) => {
    const request = indexedDB.open(runner.dbName);
    request.onsuccess = () => resolve(request.result);
  });
  const names = [...db.objectStoreNames];
  const tx = db.transaction(names, "readwrite");
  for (const name of names) tx.objectStore(name).clear();
  await new Promise((resolve) => (tx.oncomplete = resolve));
  db.close();
  letOn();
  await expect(reading.then(() => frames.map(({ type }) => type))).rejects.toMatchObject({ name: "RunnerError" });
});

test("a tab that once edited its history, and is stale, adds to the thread and cuts nothing off (L2)", async () => {
  const { agent, other } = lagging();
  agent.addMessage(user("m0"));
  await agent.runAgent({ runId: "r0" });
  agent.setMessages([user("m0", "edited")]);
  await agent.runAgent({ runId: "r1" });
  await collect(other.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", "foreign") }));
  agent.addMessage(user("m1"));
  await agent.runAgent({ runId: "r2" });
  const ids = (await rebuild(await replay(other, "t"))).messages.map(({ id }) => id);
  expect(ids).toEqual(["m0", "r1-a", "foreign-u", "foreign-a", "m1", "r2-a"]);
});

test("connectAgent() in the middle of an own run shows each word once (L2)", async () => {
  const { connect, letOn } = makeHost();
  const agent = connect().agent("counter", { threadId: "t" });
  agent.addMessage(user("before"));
  await agent.runAgent();
  agent.addMessage(user("u"));
  const run = agent.runAgent();
  await halfWay(agent);
  const reading = agent.connectAgent();
  // Time enough for a reading that does not wait to have read what there is.
  for (let task = 0; task < 30; task++) await nextTask();
  letOn();
  await Promise.all([run, reading]);
  expect(answerOf(agent)).toBe(counted(STEPS));
});

test("a message that is added while another tab's run is followed stays, and goes with the next run (L2)", async () => {
  const { connect, letOn } = makeHost();
  const runner = connect().agent("counter", { threadId: "t" });
  runner.addMessage(user("u"));
  const run = runner.runAgent();
  const reader = connect().agent("counter", { threadId: "t" });
  onTestFinished(reader.follow());
  await halfWay(reader);
  reader.addMessage(user("mine"));
  await expect(reader.runAgent()).rejects.toMatchObject({ code: "thread-busy" });
  letOn();
  await run;
  await vi.waitFor(() => expect(answerOf(reader)).toBe(counted(STEPS)));
  expect(reader.messages.map(({ id }) => id)).toContain("mine");
});

test("a refused message goes behind the runs that it waited for, as in the log (L2)", async () => {
  const { connect, letOn } = makeHost();
  const runner = connect().agent("counter", { threadId: "t" });
  const tab = connect().agent("counter", { threadId: "t" });
  onTestFinished(tab.follow());
  await tab.connectAgent();
  tab.addMessage(user("mine"));
  runner.addMessage(user("u"));
  const run = runner.runAgent({ runId: "r0" });
  await halfWay(runner);
  await expect(tab.runAgent({ runId: "refused" })).rejects.toMatchObject({ code: "thread-busy" });
  letOn();
  await run;
  await vi.waitFor(() => expect(answerOf(tab)).toBe(counted(STEPS)));
  await vi.waitFor(() => expect(tab.isRunning).toBe(false));
  await tab.runAgent({ runId: "r1" });
  const ids = ["u", "r0-a", "mine", "r1-a"];
  expect(tab.messages.map(({ id }) => id)).toEqual(ids);
});

test("an agent that left a run shows nothing of a thread that was deleted meanwhile (L2)", async () => {
  const dbName = freshDb();
  const runner = makeRunner({ dbName });
  const host = serveRuntime({ agents: { silent: agentOf(silent) }, runner });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const agent = runtime.agent("silent", { threadId: "t" });
  agent.addMessage(user("u"));
  const run = agent.runAgent();
  await vi.waitFor(() => expect(agent.messages).toHaveLength(2));
  await agent.detachActiveRun();
  await run;
  expect(await runner.clearThreads()).toBe(1);
  await agent.connectAgent();
  expect(agent.messages).toEqual([]);
});

test.each(["connectAgent()", "follow()"])(
  "an agent whose own run begins a thread anew that was deleted shows that run alone, by %s (L2)",
  async (how) => {
    const { runner, hosts } = await hostWith(0);
    const runtime = connectRuntime({ hosts });
    onTestFinished(() => runtime.close());
    const agent = runtime.agent("counter", { threadId: "t" });
    for (const id of ["one", "two"]) {
      agent.addMessage(user(id));
      await agent.runAgent();
    }
    await runner.deleteThread("t");
    agent.addMessage(user("anew"));
    await agent.runAgent({ runId: "r" });
    if (how === "follow()") onTestFinished(agent.follow());
    else await agent.connectAgent();
    const path = await runner.getThreadMessages("t");
    expect(path.map(({ id }) => id)).toEqual(["anew", "r-a"]);
    await vi.waitFor(() => expect(agent.messages).toEqual(path));
  },
);

test("whoever follows a thread of a database that is deleted begins anew (L2)", async () => {
  const dbName = freshDb();
  const runner = makeRunner({ dbName, clock: fastClock(20) });
  const host = serveRuntime({ runner, agents: { c: agentOf(counter(2)) } });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const agent = runtime.agent("c", { threadId: "t" });
  agent.addMessage(user("u"));
  await agent.runAgent();
  onTestFinished(agent.follow());
  await agent.connectAgent();
  await deleteDB(dbName);
  await vi.waitFor(() => expect(agent.messages).toEqual([]));
});

test("whoever follows a thread of a deleted database shows a new run alone, also before it says anything (L2)", async () => {
  const dbName = freshDb();
  const runner = makeRunner({ dbName });
  const started = new Subject<BaseEvent>();
  const host = serveRuntime({ runner, agents: { c: agentOf(counter(2)), raw: rawAgent(() => started) } });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const agent = runtime.agent("c", { threadId: "t" });
  agent.addMessage(user("u"));
  await agent.runAgent();
  onTestFinished(agent.follow());
  await agent.connectAgent();
  await deleteDB(dbName);
  const other = runtime.agent("raw", { threadId: "t" });
  other.addMessage(user("new"));
  const run = other.runAgent({ runId: "r2" });
  await vi.waitFor(async () => expect(await firstValueFrom(agent.run$)).toMatchObject({ is: "running", runId: "r2" }));
  await vi.waitFor(() => expect(agent.messages).toEqual([]));
  started.next({ type: EventType.RUN_STARTED, threadId: "t", runId: "r2" });
  started.next({ type: EventType.RUN_FINISHED, threadId: "t", runId: "r2" });
  started.complete();
  await run;
  await vi.waitFor(() => expect(agent.messages).toEqual([user("new")]));
});
test("events that the pipeline refuses do not make a follower begin anew without end (L2, L14)", async () => {
  // Its pause never ends here: what comes after it would be another reading. What tests before this one have left behind
  // may still wait for something else.
  const { after } = systemClock;
  const paused = vi.fn(() => new Promise<void>(() => undefined));
  const clock = vi
    .spyOn(systemClock, "after")
    .mockImplementation((ms, signal) => (ms === 1_000 ? paused() : after(ms, signal)));
  onTestFinished(() => clock.mockRestore());
  let asked = 0;
  const prelude: Frame = {
    type: "prelude",
    cursor: { runIndex: 0, seq: 0, epoch: 1 },
    events: [{ type: "CUSTOM" } as never],
  };
  const follower = new ThreadFollower({
    linkedAnew: () => new Promise(() => undefined),
    caughtUp: () => undefined,
    frames: () =>
      new Observable((subscriber) => {
        asked++;
        queueMicrotask(() => {
          subscriber.next(prelude);
          subscriber.next({ type: "idle" });
        });
      }),
    cursor: () => undefined,
    isHeld: () => false,
    note: () => undefined,
    eventsOf: (frame) => (frame.type === "prelude" ? frame.events : []),
    settled: () => undefined,
    cut: () => undefined,
    session: (events$) =>
      new Promise((_resolve, reject) => {
        events$
          .pipe(
            tap(() => {
              throw new Error("refused");
            }),
          )
          .subscribe({ error: reject });
      }),
  });
  onTestFinished(() => follower.close());
  await vi.waitFor(() => expect(paused).toHaveBeenCalledOnce());
  // The first reading, and three fresh starts.
  expect(asked).toBe(4);
});

test("connectAgent() of a following agent tells why there is no history (L10)", async () => {
  const runtime = connectRuntime({ hosts: { page: () => Promise.reject(new Error("none")) } });
  onTestFinished(() => runtime.close());
  const agent = runtime.agent("a", { threadId: "t" });
  onTestFinished(agent.follow());
  await expect(agent.connectAgent()).rejects.toMatchObject({ code: "no-host" });
});

// What an own run has shown is only noted where the run ended well.
test("an edit of a message whose run failed half-way is an edit (L2)", async () => {
  const runner = makeRunner();
  const { gate, letOn } = gated();
  const asked: string[] = [];
  const host = serveRuntime({
    runner,
    agents: {
      c: agentOf(async function* (input) {
        const messageId = `${input.runId}-a`;
        asked.push(String(input.messages.findLast(({ role }) => role === "user")?.content));
        yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
        if (asked.length === 1) await gate;
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "x" } as BaseEvent;
      }),
    },
  });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const agent = runtime.agent("c", { threadId: "t" });
  agent.addMessage(user("m", "first"));
  const run = agent.runAgent();
  run.catch(() => undefined);
  await vi.waitFor(() => expect(agent.messages).toHaveLength(2));
  const freeSpace = fullDisk();
  letOn();
  await expect(run).rejects.toMatchObject({ code: "quota-exceeded" });
  freeSpace();
  agent.setMessages([user("m", "second")]);
  await agent.runAgent();
  expect(asked).toEqual(["first", "second"]);
});

// At the end of the other run what the tab shows is noted as what the thread has, the edit included.
test("a refused edit is sent with the next run, or shown no more (L2)", async () => {
  const { connect, letOn, dbName } = makeHost();
  const runner = connect().agent("counter", { threadId: "t" });
  const tab = connect().agent("counter", { threadId: "t" });
  onTestFinished(tab.follow());
  runner.addMessage(user("m0"));
  await runner.runAgent({ runId: "r0" });
  await vi.waitFor(() => expect(tab.messages).toHaveLength(2));
  await vi.waitFor(() => expect(tab.isRunning).toBe(false));
  tab.setMessages([user("m0", "edited")]);
  runner.addMessage(user("u"));
  const run = runner.runAgent({ runId: "r1" });
  await halfWay(runner);
  await expect(tab.runAgent({ runId: "refused" })).rejects.toMatchObject({ code: "thread-busy" });
  letOn();
  await run;
  await vi.waitFor(() => expect(answerOf(tab)).toBe(counted(STEPS)));
  await vi.waitFor(() => expect(tab.isRunning).toBe(false));
  tab.addMessage(user("m1"));
  await tab.runAgent({ runId: "r2" });
  const truth = (await rebuild(await replay(makeRunner({ dbName }), "t"))).messages;
  await vi.waitFor(() => expect(tab.messages).toEqual(truth));
});
