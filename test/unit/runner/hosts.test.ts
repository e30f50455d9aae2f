import { EventType, verifyEvents } from "@ag-ui/client";
import { filter, from, lastValueFrom, NEVER, toArray } from "rxjs";
import { expect, test, vi } from "vitest";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import type { Channel } from "../../../src/platform/channel.js";
import { threadLockName } from "../../../src/platform/names.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  cursorOf,
  eventsOfFrame,
  fastClock,
  framesUntil,
  freshDb,
  gated,
  inputOf,
  makeRunner,
  mortalLocks,
  rawAgent,
  rebuild,
  replay,
  silent,
  user,
} from "./kit.js";

/** Blocks an agent at a step until it is opened. */
function gateAt(step: number): {
  gate: (at: number) => Promise<void> | undefined;
  open: () => void;
  reached: Promise<void>;
} {
  let open!: () => void;
  let arrive!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  return {
    gate: (at) => {
      if (at !== step) return undefined;
      arrive();
      return opened;
    },
    open,
    reached,
  };
}

test("who attaches in the middle of a run rebuilds the same, in its host and in another (L2, L3)", async () => {
  const one = makeRunner();
  const other = makeRunner({ dbName: one.dbName });
  await collect(one.run({ threadId: "t", agent: agentOf(counter(5)), input: inputOf("t", "r0") }));
  const { gate, open, reached } = gateAt(30);
  const whole = collect(one.run({ threadId: "t", agent: agentOf(counter(60, gate)), input: inputOf("t", "r1") }));
  await reached;
  const attached = [one, other].map((runner) => framesUntil(runner, { threadId: "t" }));
  await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(true));
  open();
  await whole;
  const truth = await rebuild(await replay(one, "t"));
  expect(truth.messages.at(-1)).toMatchObject({ content: counted(60) });
  for (const frames of await Promise.all(attached)) {
    const events = frames.flatMap(eventsOfFrame);
    expect(await rebuild(events)).toEqual(truth);
    await lastValueFrom(from(events).pipe(verifyEvents(), toArray()));
    expect(frames.at(-1)).toEqual({ type: "end" });
  }
});

test("with a cursor only what is missing is handed out, also from the middle of a chunk (L2)", async () => {
  const runner = makeRunner();
  const events = await collect(runner.run({ threadId: "t", agent: agentOf(counter(40)), input: inputOf("t", "r") }));
  const { epoch } = (await cursorOf(runner, "t"))!;
  for (const seq of [-1, 0, 1, 7, 20, events.length - 2, events.length - 1]) {
    const frames = await framesUntil(runner, { threadId: "t", after: { runIndex: 0, seq, epoch } });
    const chunks = frames.flatMap((frame) => (frame.type === "chunk" ? [frame.chunk] : []));
    expect(chunks.reduce((count, chunk) => count + chunk.count, 0)).toBe(events.length - 1 - seq);
    if (chunks.length > 0) expect(chunks[0]!.firstSeq).toBe(seq + 1);
  }
});

test("a follower gets the runs of every host, each from its first event (L2)", async () => {
  const one = makeRunner();
  const other = makeRunner({ dbName: one.dbName });
  const following = framesUntil(
    one,
    { threadId: "t", follow: true },
    (frame) => frame.type === "settled" && frame.runIndex === 3,
  );
  for (let n = 0; n < 4; n++) {
    const runner = n % 2 === 0 ? one : other;
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", `r${n}`) }));
  }
  const frames = await following;
  const { messages } = await rebuild(frames.flatMap(eventsOfFrame));
  expect(messages.filter(({ role }) => role === "assistant").map(({ content }) => content)).toEqual(
    Array.from({ length: 4 }, () => counted(3)),
  );
});

test("an unknown thread has no history and no end but its own", async () => {
  const runner = makeRunner();
  expect(await framesUntil(runner, { threadId: "nowhere" })).toEqual([{ type: "end" }]);
  expect(await replay(runner, "nowhere")).toEqual([]);
});

test("a dead host's run is settled as broken once, with all that it had committed (L1, L9)", async () => {
  const dbName = freshDb();
  const manager = inProcessLockManager();
  const { locks, die } = mortalLocks(manager);
  const dying = makeRunner({ dbName, locks });
  const survivor = makeRunner({ dbName, locks: mortalLocks(manager).locks });
  const { gate, reached } = gateAt(10);
  const cutOff = collect(dying.run({ threadId: "t", agent: agentOf(counter(20, gate)), input: inputOf("t", "r") }));
  await reached;
  let attach!: () => void;
  const attached = new Promise<void>((resolve) => (attach = resolve));
  const followed = framesUntil(survivor, { threadId: "t" }, () => {
    attach();
    return false;
  });
  await attached;
  await die();
  const frames = await followed;
  expect(frames.find((frame) => frame.type === "settled")).toMatchObject({ status: "broken" });
  expect(frames.flatMap(eventsOfFrame).at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "RUN_BROKEN" });
  const { messages } = await rebuild(await replay(survivor, "t"));
  expect(messages).toMatchObject([{ id: "r-u" }, { content: counted(10) }]);
  // The zombie's readers see the same end, and it can write nothing more (L6).
  expect((await cutOff).at(-1)).toMatchObject({ code: "RUN_BROKEN" });
  await collect(survivor.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
  expect((await rebuild(await replay(survivor, "t"))).messages).toHaveLength(4);
});

test("a run whose host died before its first event keeps the user's message (L9)", async () => {
  const dbName = freshDb();
  const manager = inProcessLockManager();
  const { locks, die } = mortalLocks(manager);
  const dying = makeRunner({ dbName, locks });
  dying.run({ threadId: "t", agent: rawAgent(() => NEVER), input: inputOf("t", "r", [user("u")]) });
  await vi.waitFor(async () => expect(await dying.isRunning({ threadId: "t" })).toBe(true));
  const survivor = makeRunner({ dbName, locks: mortalLocks(manager).locks });
  await vi.waitFor(async () => expect(await survivor.isRunning({ threadId: "t" })).toBe(true));
  await die();
  await vi.waitFor(async () => expect(await survivor.isRunning({ threadId: "t" })).toBe(false));
  expect((await rebuild(await replay(survivor, "t"))).messages).toMatchObject([{ id: "u" }]);
  const [prelude] = await framesUntil(survivor, { threadId: "t" });
  expect((await rebuild(eventsOfFrame(prelude!))).messages).toMatchObject([{ id: "u" }]);
});

test("a stop frees the thread even if the holder hears nothing: the lock is stolen, the holder fenced (L6, L7)", async () => {
  const dbName = freshDb();
  const deaf: Channel = { post: () => undefined, messages$: NEVER, close: () => undefined };
  const locks = mortalLocks().locks;
  // Its clock stands still: a frozen context looks at no head row either.
  const frozen = makeRunner({
    dbName,
    locks,
    openChannel: () => deaf,
    clock: { now: () => 1, elapsed: () => 1, after: () => new Promise(() => undefined) },
  });
  const other = makeRunner({ dbName, locks, clock: fastClock(20) });
  frozen.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") });
  await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(true));
  expect(await other.stop({ threadId: "t", runId: "r" })).toBe(true);
  await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(false));
  await collect(other.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") }));
  const ends = (await replay(other, "t")).filter((event) => event.type === EventType.RUN_FINISHED);
  expect(ends).toMatchObject([{ runId: "r", outcome: { type: "cancelled" } }, { runId: "next" }]);
});

test.each(["repeated in the end", "never heard"])(
  "a stop reaches the run that it names, not the answer under the same id behind it (L11; message %s)",
  async (how) => {
    const { locks } = mortalLocks();
    const open = inProcessChannels();
    let mute = true;
    const clock = fastClock(4);
    const other = makeRunner({
      locks,
      clock,
      openChannel: (name) => {
        const channel = open(name);
        const heard$ = channel.messages$.pipe(filter(() => !mute));
        return { ...channel, messages$: heard$, post: (message) => void (mute || channel.post(message)) };
      },
    });
    const holder = makeRunner({ dbName: other.dbName, locks, openChannel: open });
    const { gate, letOn } = gated();
    const asking = agentOf(async function* ({ threadId, runId }) {
      await gate;
      const outcome = { type: "interrupt", interrupts: [{ id: "i", reason: "confirm" }] };
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome };
    });
    const asked = collect(holder.run({ threadId: "t", agent: asking, input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(true));
    expect(await other.stop({ threadId: "t", runId: "r" })).toBe(true);
    letOn();
    await asked;
    const resume = [{ interruptId: "i", status: "resolved" as const }];
    const answer = gated();
    const events = collect(
      holder.run({
        threadId: "t",
        agent: agentOf(counter(2, () => answer.gate)),
        input: { ...inputOf("t", "r"), resume },
      }),
    );
    await vi.waitFor(async () => expect((await other.getThread("t"))?.live?.runIndex).toBe(1));
    if (how === "repeated in the end") mute = false;
    // Longer than the stop is repeated, and than its holder may be silent.
    const givenUp = clock.elapsed() + 10_000;
    await vi.waitFor(() => expect(clock.elapsed()).toBeGreaterThan(givenUp));
    answer.letOn();
    expect((await events).at(-1)).not.toHaveProperty("outcome");
    expect((await other.listRuns("t")).map(({ status }) => status)).toEqual(["finished", "finished"]);
  },
);

test("a stop request that nobody heard decides the end of a run that ended without one of its own (L11)", async () => {
  const deaf: Channel = { post: () => undefined, messages$: NEVER, close: () => undefined };
  const locks = mortalLocks().locks;
  const holder = makeRunner({ locks, openChannel: () => deaf });
  const other = makeRunner({ dbName: holder.dbName, locks });
  const { gate, open, reached } = gateAt(0);
  const agent = agentOf(async function* (input) {
    yield { type: EventType.TEXT_MESSAGE_START, messageId: `${input.runId}-a`, role: "assistant" };
    await gate(0);
  });
  const seen = collect(holder.run({ threadId: "t", agent, input: inputOf("t", "r") }));
  await reached;
  expect(await other.stop({ threadId: "t", runId: "r" })).toBe(true);
  open();
  expect((await seen).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  const ends = (await replay(other, "t")).slice(-2);
  expect(ends).toMatchObject([{ type: EventType.TEXT_MESSAGE_END }, { outcome: { type: "cancelled" } }]);
});

test("a database that is deleted under a run takes the next run; what was remembered of the old one is not (L9, L10)", async () => {
  const runner = makeRunner();
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", "old") }));
  const cut = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "cut") }));
  await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
  await new Promise((resolve, reject) => {
    const deleting = indexedDB.deleteDatabase(runner.dbName);
    deleting.onsuccess = resolve;
    deleting.onerror = reject;
  });
  expect((await cut).at(-1)).toMatchObject({ code: "RUN_BROKEN" });
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "new") }));
  const { messages } = await rebuild(await replay(runner, "t"));
  expect(messages.map(({ id }) => id)).toEqual(["new-u", "new-a"]);
});

test("a list of threads shows what is live, whoever runs it, and every change is told", async () => {
  const one = makeRunner();
  const other = makeRunner({ dbName: one.dbName });
  const changes: unknown[] = [];
  const watching = other.watchThreads().subscribe((change) => changes.push(change));
  const run = collect(
    one.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r", [user("u", "A title\nhere")]) }),
  );
  await vi.waitFor(() =>
    expect(changes).toContainEqual(
      expect.objectContaining({ thread: expect.objectContaining({ live: { runId: "r", runIndex: 0 } }) }),
    ),
  );
  expect(await other.listThreads()).toMatchObject([{ threadId: "t", title: "A title here", runCount: 1 }]);
  await one.stop({ threadId: "t" });
  await run;
  await vi.waitFor(() => expect(changes.at(-1)).toMatchObject({ thread: { lastStatus: "stopped" } }));
  expect(changes.at(-1)).not.toHaveProperty("thread.live");
  watching.unsubscribe();
});

test("a closed runner settles its runs as stopped and refuses further ones", async () => {
  const runner = makeRunner();
  const events = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
  await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
  await runner.close();
  expect((await events).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  expect(() => runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r2") })).toThrow(
    expect.objectContaining({ code: "closed" }),
  );
});

test("a time of day that is set back stretches no wait (L13)", async () => {
  const { locks } = mortalLocks();
  const clock = fastClock(100);
  let today = 1_000_000_000;
  const runner = makeRunner({ locks, clock: { ...clock, now: () => (today -= 60_000) } });
  // Somebody has the thread and says nothing of it.
  const held = await locks.tryHold(threadLockName(runner.dbName, "t"));
  const refused = collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r") }));
  await expect(refused).rejects.toMatchObject({ code: "thread-busy" });
  await held?.release();
});
