import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { firstValueFrom, from, Observable, Subject } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { openBroadcastChannel, type OpenChannel } from "../../../src/platform/channel.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf, type Locks } from "../../../src/platform/locks.js";
import { threadLockName } from "../../../src/platform/names.js";
import { STOP_ACK_MS } from "../../../src/runner/claim/stop-foreign.js";
import { nextTask } from "../../../src/platform/clock.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  cursorOf,
  eventsOfFrame,
  fastClock,
  framesUntil,
  fullDisk,
  freshDb,
  inputOf,
  makeRunner,
  mortalLocks,
  rawAgent,
  rebuild,
  replay,
  silent,
  textOf,
  user,
} from "./kit.js";

/** A channel that writes down what is posted on it. */
function tappedChannel(): { openChannel: OpenChannel; posted: { type: string; runId?: string }[] } {
  const posted: { type: string; runId?: string }[] = [];
  return {
    posted,
    openChannel: (name) => {
      const channel = openBroadcastChannel(name);
      return {
        messages$: channel.messages$,
        close: () => channel.close(),
        post: (message) => {
          posted.push(message as { type: string });
          channel.post(message);
        },
      };
    },
  };
}

/** Resolves when the thread's run stands in the log. */
const live = (runner: ReturnType<typeof makeRunner>, threadId = "t"): Promise<void> =>
  vi.waitFor(async () =>
    expect(await runner.listThreads()).toContainEqual(expect.objectContaining({ threadId, live: expect.anything() })),
  );

/** How long a stop of these tests waits for its acknowledgement, in ms. */
const PATIENCE_MS = 50 + STOP_ACK_MS;

test("a stop that comes while the run settles leaves the next run alone (L5, L7)", async () => {
  const clock = fastClock(20);
  const runner = makeRunner({ clock, stopGraceMs: 50 });
  let stopping: Promise<boolean> | undefined;
  const agent = rawAgent(
    (input) =>
      new Observable<BaseEvent>((subscriber) => {
        subscriber.next({ type: EventType.RUN_STARTED, threadId: input.threadId, runId: input.runId });
        subscriber.next({ type: EventType.RUN_FINISHED, threadId: input.threadId, runId: input.runId });
        stopping = runner.stop({ threadId: "t" });
        subscriber.complete();
      }),
  );
  await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r1") }));
  const next = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r2") }));
  expect(await stopping).toBe(false);
  // Longer than a stop waits for its acknowledgement, by the runner's own clock.
  await clock.after(2 * PATIENCE_MS);
  expect(await runner.stop({ threadId: "t", runId: "r2" })).toBe(true);
  expect((await next).at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } });
});

test("a stop whose run ended unheard steals nobody's lock (L5, L11)", async () => {
  const dbName = freshDb();
  const locks = mortalLocks().locks;
  const mute: OpenChannel = () => ({ post: () => undefined, messages$: new Subject(), close: () => undefined });
  const holder = makeRunner({ dbName, locks, openChannel: mute });
  const clock = fastClock(20);
  const other = makeRunner({ dbName, locks, openChannel: mute, clock, stopGraceMs: 50 });
  const first = collect(holder.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r1") }));
  await live(other);
  expect(await other.stop({ threadId: "t", runId: "r1" })).toBe(true);
  await holder.stop({ threadId: "t", runId: "r1" });
  await first;
  const agent = agentOf(silent);
  const abort = vi.spyOn(agent, "abortRun");
  const next = collect(holder.run({ threadId: "t", agent, input: inputOf("t", "r2") }));
  await clock.after(2 * PATIENCE_MS);
  expect(abort).not.toHaveBeenCalled();
  expect(await holder.stop({ threadId: "t", runId: "r2" })).toBe(true);
  expect((await next).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
});

test("a run whose lock was taken without its thread being settled ends in the log (L7)", async () => {
  const dbName = freshDb();
  const { locks } = mortalLocks();
  const runner = makeRunner({ dbName, locks });
  const events = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
  await live(runner);
  await (await locks.steal(threadLockName(dbName, "t"))).release();
  expect((await events).at(-1)).toMatchObject({ code: "RUN_BROKEN" });
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
});

test("a run that ended itself is told once and never asked to abort (L7)", async () => {
  const { openChannel, posted } = tappedChannel();
  const runner = makeRunner({ openChannel });
  const agent = agentOf(counter(3));
  const abort = vi.spyOn(agent, "abortRun");
  await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
  await nextTask();
  expect(posted.filter(({ type }) => type === "ended")).toHaveLength(1);
  expect(abort).not.toHaveBeenCalled();
});

test("who attaches from another host while the run ends is handed its end (L2, L3)", async () => {
  const one = makeRunner();
  const other = makeRunner({ dbName: one.dbName });
  for (let n = 0; n < 12; n++) {
    const threadId = `t${n}`;
    await collect(one.run({ threadId, agent: agentOf(counter(3)), input: inputOf(threadId, "r0") }));
    let open!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    const gate = (step: number): Promise<void> | undefined => (step === 2 ? opened : undefined);
    const run = collect(one.run({ threadId, agent: agentOf(counter(3, gate)), input: inputOf(threadId, "r1") }));
    await live(other, threadId);
    // The run settles at another moment of the attachment each time.
    const frames = framesUntil(other, { threadId });
    for (let wait = 0; wait < n; wait++) await nextTask();
    open();
    await run;
    const events = (await frames).flatMap(eventsOfFrame);
    expect(events.at(-1), `after ${n} tasks`).toMatchObject({ type: EventType.RUN_FINISHED, runId: "r1" });
  }
});

test("a request that no reader could parse is refused, and nothing of it stays (L3, L7)", async () => {
  const runner = makeRunner();
  const good = inputOf("t", "r");
  const bad = [
    { ...good, messages: [{ id: "u", role: "user", content: 5 } as unknown as Message] },
    { ...good, tools: [null as never] },
    { ...good, resume: "yes" as never },
    { ...good, messages: [{ id: "u", role: "user", content: [() => 1] } as unknown as Message] },
  ];
  for (const input of bad) {
    const run = (): unknown => runner.run({ threadId: "t", agent: agentOf(counter(1)), input });
    expect(run).toThrow(expect.objectContaining({ code: "invalid-input" }));
  }
  await nextTask();
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  expect(await runner.listThreads()).toEqual([]);
});

test("a claim that fails after its fence leaves no live run behind (L7)", async () => {
  // Stands for whatever goes wrong between the fence and the agent's start.
  const openChannel: OpenChannel = (name) => {
    const channel = openBroadcastChannel(name);
    const post = (message: unknown): void => {
      if ((message as { type: string }).type === "started") throw new Error("boom");
      channel.post(message);
    };
    return { post, messages$: channel.messages$, close: () => channel.close() };
  };
  const runner = makeRunner({ openChannel });
  const run = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
  await expect(run).rejects.toThrow("boom");
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  expect((await replay(runner, "t")).at(-1)).toMatchObject({ code: "RUN_BROKEN" });
});

test("a run asked for while this host settles a dead host's run of the thread is not refused (L9)", async () => {
  const dbName = freshDb();
  const manager = inProcessLockManager();
  const { locks, die } = mortalLocks(manager);
  // A dead context is told of nothing, the fall of its own locks included.
  const untold: Locks = {
    ...locks,
    tryHold: async (name) => {
      const lock = await locks.tryHold(name);
      return lock && { release: () => lock.release(), gone: new Promise(() => undefined) };
    },
  };
  const deaf: OpenChannel = () => ({ post: () => undefined, messages$: new Subject(), close: () => undefined });
  const dying = makeRunner({ dbName, locks: untold, openChannel: deaf });
  dying.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") });
  await live(dying);
  const inner = locksOf(manager);
  let recovering!: () => void;
  const recovery = new Promise<void>((resolve) => (recovering = resolve));
  let asked: Promise<BaseEvent[]> | undefined;
  const watching: Locks = {
    ...inner,
    tryHold: async (name) => {
      const lock = await inner.tryHold(name);
      if (name === threadLockName(dbName, "t") && asked === undefined) {
        asked = collect(survivor.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
        asked.catch(() => undefined);
        // The claim finds the lock taken and the head row still live.
        await new Promise((resolve) => setTimeout(resolve, 20));
        recovering();
      }
      return lock;
    },
  };
  const survivor = makeRunner({ dbName, locks: watching });
  await survivor.opened;
  await die();
  await recovery;
  expect((await asked!).at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "next" });
});

test("the same run sent to another host is that run, live as it is (L13)", async () => {
  const one = makeRunner();
  const { openChannel, posted } = tappedChannel();
  const other = makeRunner({ dbName: one.dbName, openChannel });
  const whole = collect(one.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
  await live(other);
  const joined$ = other.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r") });
  const again = collect(joined$);
  // Whoever reads it has joined it, and has told what there was to tell.
  await firstValueFrom(joined$);
  const third = makeRunner({ dbName: one.dbName });
  const changed = third.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r", [user("x")]) });
  await expect(collect(changed)).rejects.toMatchObject({ code: "run-exists" });
  expect(posted.filter(({ type }) => type === "ended")).toEqual([]);
  await one.stop({ threadId: "t" });
  expect(textOf(await again)).toBe(textOf(await whole));
  expect((await again).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
});

test("what an agent does to its own messages and state changes nothing in the log (L4)", async () => {
  const runner = makeRunner();
  const first = agentOf(async function* () {
    yield { type: EventType.STATE_SNAPSHOT, snapshot: { count: 1 } } as BaseEvent;
  });
  await collect(runner.run({ threadId: "t", agent: first, input: inputOf("t", "r1", [user("u1", "asked")]) }));
  const agent = rawAgent((input) => {
    agent.state.count = 99;
    (agent.messages[0] as { content: string }).content = "forged";
    return from([
      { type: EventType.RUN_STARTED, threadId: input.threadId, runId: input.runId },
      { type: EventType.RUN_FINISHED, threadId: input.threadId, runId: input.runId },
    ] as BaseEvent[]);
  });
  await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r2", [user("u2")]) }));
  const [prelude] = await framesUntil(runner, { threadId: "t" });
  const shown = await rebuild(eventsOfFrame(prelude!));
  expect(shown).toEqual(await rebuild(await replay(runner, "t")));
  expect(shown.state).toEqual({ count: 1 });
  expect(shown.messages[0]).toMatchObject({ content: "asked" });
});

test("a database that could not be opened is tried again for the next tab (L10)", async () => {
  const open = vi.spyOn(indexedDB, "open").mockImplementation(() => {
    throw new DOMException("storage is off", "SecurityError");
  });
  onTestFinished(() => open.mockRestore());
  const runner = makeRunner();
  await expect(runner.opened).rejects.toMatchObject({ code: "storage-unavailable" });
  open.mockRestore();
  await runner.opened;
});

test("a row that is not valid hides neither the other live threads nor what a dead host left in them (L9)", async () => {
  const dbName = freshDb();
  const manager = inProcessLockManager();
  const { locks, die } = mortalLocks(manager);
  const dying = makeRunner({ dbName, locks });
  for (const threadId of ["a", "b"]) dying.run({ threadId, agent: agentOf(silent), input: inputOf(threadId, "r") });
  await live(dying, "a");
  await live(dying, "b");
  await new Promise<void>((resolve, reject) => {
    const opening = indexedDB.open(dbName);
    opening.onsuccess = () => {
      const db = opening.result;
      const tx = db.transaction("heads", "readwrite");
      const heads = tx.objectStore("heads");
      heads.get("a").onsuccess = (event) => {
        heads.put({ ...(event.target as IDBRequest).result, epoch: "nonsense" });
      };
      tx.oncomplete = () => {
        db.close();
        resolve();
      };
      tx.onerror = reject;
    };
  });
  const survivor = makeRunner({ dbName, locks: mortalLocks(manager).locks });
  await survivor.opened;
  await die();
  await vi.waitFor(async () => expect(await survivor.isRunning({ threadId: "b" })).toBe(false));
  expect((await survivor.listThreads()).map(({ threadId }) => threadId).toSorted()).toEqual(["a", "b"]);
});

test("a burst of any length is cut into chunks that a record and a frame can hold (L14, L17)", async () => {
  const runner = makeRunner();
  const agent = rawAgent(
    (input) =>
      new Observable<BaseEvent>((subscriber) => {
        subscriber.next({ type: EventType.RUN_STARTED, threadId: input.threadId, runId: input.runId });
        for (let n = 0; n < 20_000; n++) subscriber.next({ type: EventType.CUSTOM, name: "n", value: n } as BaseEvent);
        subscriber.complete();
      }),
  );
  const run = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
  expect((await run).map((event) => event["value"]).filter((value) => value !== undefined)).toEqual(
    Array.from({ length: 20_000 }, (_, n) => n),
  );
  const frames = await framesUntil(runner, { threadId: "t", after: { ...(await cursorOf(runner, "t"))!, seq: -1 } });
  const counts = frames.flatMap((frame) => (frame.type === "chunk" ? [frame.chunk.count] : []));
  expect(Math.max(...counts)).toBeLessThanOrEqual(4_096);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20_002);
});

test("who comes with the cursor of a settled run's last event hears that it is settled (L13)", async () => {
  const runner = makeRunner();
  const events = await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "r") }));
  const frames = await framesUntil(runner, {
    threadId: "t",
    after: { ...(await cursorOf(runner, "t"))!, seq: events.length - 1 },
  });
  expect(frames).toMatchObject([{ type: "settled", runId: "r", status: "finished" }, { type: "end" }]);
});

test("a thread whose first run had nothing to name it gets its title from the first question", async () => {
  const runner = makeRunner();
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r0", []) }));
  await collect(
    runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r1", [user("u", "Why?")]) }),
  );
  expect(await runner.listThreads()).toMatchObject([{ title: "Why?" }]);
});

test("a closed runner refuses readers instead of showing them nothing (L13)", async () => {
  const runner = makeRunner();
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r") }));
  await runner.close();
  await expect(collect(runner.connect({ threadId: "t" }))).rejects.toMatchObject({ code: "closed" });
});

test.each([
  ...[Number.NaN, -1, 0, -0.5, Infinity, -Infinity, 1.5].map((before) => ({ before })),
  { before: { updatedAt: -1, threadId: "t" } },
  { before: { updatedAt: Infinity, threadId: "t" } },
])("a query of %o is answered or refused, never told as a failure of the storage (L10)", async (query) => {
  const runner = makeRunner();
  const answer = await runner.listThreads(query).catch((error: { code: string }) => error.code);
  expect(["invalid-input"].includes(answer as string) || Array.isArray(answer)).toBe(true);
});

test("a run whose end could not be written is told with its cause, and settled as soon as it can be (L9, L10)", async () => {
  const one = makeRunner();
  const other = makeRunner({ dbName: one.dbName });
  let letOn!: () => void;
  const gate = new Promise<void>((resolve) => (letOn = resolve));
  const agent = agentOf(counter(10, (step) => (step === 5 ? gate : undefined)));
  const events: BaseEvent[] = [];
  const run = new Promise((resolve, reject) =>
    one
      .run({ threadId: "t", agent, input: inputOf("t", "r") })
      .subscribe({ next: (event) => events.push(event), error: reject, complete: () => resolve(undefined) }),
  );
  await vi.waitFor(() => expect(textOf(events)).toBe(counted(5)));
  const freeSpace = fullDisk();
  letOn();
  await expect(run).rejects.toMatchObject({ code: "quota-exceeded" });
  const reading = framesUntil(other, { threadId: "t" });
  freeSpace();
  // Nobody asks for a run, and the host lives.
  expect((await reading).flatMap(eventsOfFrame).at(-1)).toMatchObject({ code: "RUN_BROKEN" });
  expect(textOf(await replay(other, "t"))).toBe(counted(5));
});

test("a claim that cannot be written is refused with its cause, and the thread is free (L7, L10)", async () => {
  const runner = makeRunner();
  await runner.opened;
  const freeSpace = fullDisk();
  const refused = collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r") }));
  await expect(refused).rejects.toMatchObject({ code: "quota-exceeded" });
  freeSpace();
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r") }));
});

test("foreign, malformed and forged messages of the channel change nothing (L5, L7)", async () => {
  let told!: (message: unknown) => void;
  const openChannel: OpenChannel = (name) => {
    const channel = openBroadcastChannel(name);
    told = (message) => channel.post(message);
    return channel;
  };
  const runner = makeRunner();
  const forger = makeRunner({ dbName: runner.dbName, openChannel });
  await forger.opened;
  let letOn!: () => void;
  const gate = new Promise<void>((resolve) => (letOn = resolve));
  const agent = agentOf(counter(10, (step) => (step === 5 ? gate : undefined)));
  const run = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
  await live(runner);
  for (const message of [null, 1, "stop", [], { v: 1 }, { v: 2, type: "stop", from: "x", threadId: "t", runId: "r" }]) {
    told(message);
  }
  for (const type of ["ended", "started", "wait", "refused", "advanced", "changed", "stop-ack", "__proto__", "claim"]) {
    told({ v: 1, type, from: "forger", threadId: "t", runId: "r", runIndex: -1, seq: Number.NaN });
    told({ v: 1, type, from: "forger", threadId: "__proto__", runId: "constructor", runIndex: 1e308 });
  }
  told({ v: 1, type: "stop", from: "forger", threadId: "t", runId: "another" });
  const second = forger.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r2") });
  await expect(collect(second)).rejects.toMatchObject({ code: "thread-busy", details: { runId: "r" } });
  letOn();
  expect(textOf(await run)).toBe(counted(10));
});
