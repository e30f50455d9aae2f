import { EventType, type BaseEvent } from "@ag-ui/client";
import { Observable, type Subscriber } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import type { HostLink } from "../../../src/client/host-link.js";
import { ThreadFollower, type FollowerParts } from "../../../src/client/follower.js";
import { runFrames } from "../../../src/client/frames.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import type { OwnRuns } from "../../../src/client/own-runs.js";
import { RunnerError } from "../../../src/run/errors.js";
import type { Cursor } from "../../../src/run/types.js";
import type { HostApi } from "../../../src/runtime/host-api.js";
import { toErrorData } from "../../../src/wire/errors.js";
import type { AttachRequest, Frame, RunRequest } from "../../../src/wire/shapes.js";
import { answerOf, makeHost, STEPS } from "./kit.js";
import { counted, inputOf, makeRunner, user } from "../runner/kit.js";

/** A run before, so that who reads has a cursor. */
async function firstRun(agent: LocalAgent): Promise<void> {
  agent.addMessage(user("before"));
  await agent.runAgent();
}
const halfWay = (agent: LocalAgent): Promise<void> =>
  vi.waitFor(() => expect(answerOf(agent)).toBe(counted(STEPS / 2)));

test("who unfollows in the middle of a run and comes back has each word once (L2)", async () => {
  const { connect, letOn } = makeHost();
  const runtime = connect();
  const runner = runtime.agent("counter", { threadId: "t" });
  await firstRun(runner);
  runner.addMessage(user("u"));
  const reader = connect().agent("counter", { threadId: "t" });
  await reader.connectAgent();
  const run = runner.runAgent();
  const unfollow = reader.follow();
  await halfWay(reader);
  unfollow();
  const reading = reader.connectAgent();
  letOn();
  await run;
  await reading;
  expect(answerOf(reader)).toBe(counted(STEPS));
});

test("a copy that is made in the middle of a run has each word once (L2)", async () => {
  const { connect, letOn } = makeHost();
  const runner = connect().agent("counter", { threadId: "t" });
  await firstRun(runner);
  runner.addMessage(user("u"));
  const reader = connect().agent("counter", { threadId: "t" });
  await reader.connectAgent();
  const run = runner.runAgent();
  reader.follow();
  await halfWay(reader);
  const copy = reader.clone();
  const reading = copy.connectAgent();
  letOn();
  await run;
  await reading;
  expect(answerOf(copy)).toBe(counted(STEPS));
});

test("a follower that begins while the history is read has each word once, and nothing fails (L2)", async () => {
  const { connect, letOn } = makeHost();
  const runner = connect().agent("counter", { threadId: "t" });
  await firstRun(runner);
  runner.addMessage(user("u"));
  const reader = connect().agent("counter", { threadId: "t" });
  await reader.connectAgent();
  const run = runner.runAgent();
  const failed = vi.fn();
  reader.subscribe({ onRunFailed: failed });
  await halfWay(runner);
  const reading = reader.connectAgent();
  const unfollow = reader.follow();
  onTestFinished(unfollow);
  letOn();
  await Promise.all([run, reading]);
  await vi.waitFor(() => expect(reader.isRunning).toBe(false));
  expect(answerOf(reader)).toBe(counted(STEPS));
  expect(failed).not.toHaveBeenCalled();
});

test("who lets go of a live run is told by the host, not by memory, whether the thread is busy (L13)", async () => {
  const { connect, letOn } = makeHost();
  const runner = connect().agent("counter", { threadId: "t" });
  runner.addMessage(user("u"));
  const run = runner.runAgent();
  const reader = connect().agent("counter", { threadId: "t" });
  const unfollow = reader.follow();
  await halfWay(reader);
  await reader.detachActiveRun();
  unfollow();
  letOn();
  await run;
  reader.addMessage(user("u2"));
  await reader.runAgent();
});

test("a refused run leaves no port open (L14)", async () => {
  const { connect, letOn } = makeHost();
  const first = connect().agent("counter", { threadId: "t" });
  first.addMessage(user("u"));
  const run = first.runAgent();
  const other = connect().agent("counter", { threadId: "t" });
  await vi.waitFor(() => expect(answerOf(first)).toBe(counted(STEPS / 2)));
  const closed = vi.spyOn(MessagePort.prototype, "close");
  onTestFinished(() => closed.mockRestore());
  other.addMessage(user("u2"));
  await expect(other.runAgent()).rejects.toMatchObject({ code: "thread-busy" });
  expect(closed.mock.calls.length).toBeGreaterThanOrEqual(2);
  letOn();
  await run;
});

/** A follower whose frames the test sends. */
function makeFollower(): {
  send: (...frames: Frame[]) => void;
  fail: (error: unknown) => void;
  sessions: BaseEvent[][];
  asked: (Cursor | undefined)[];
  follower: ThreadFollower;
  /** Another stream brings the thread. */
  hold: () => void;
  /** Its stream has ended there. */
  release: (cursor: Cursor) => void;
  isReading: () => boolean;
} {
  let held = false;
  let at: Cursor | undefined;
  const subscribers: Subscriber<Frame>[] = [];
  const sessions: BaseEvent[][] = [];
  const asked: (Cursor | undefined)[] = [];
  const parts: FollowerParts = {
    linkedAnew: () => new Promise(() => undefined),
    caughtUp: () => undefined,
    frames: (after) => {
      asked.push(after);
      return new Observable((subscriber) => void subscribers.push(subscriber));
    },
    cursor: () => at,
    isHeld: () => held,
    note: () => undefined,
    eventsOf: (frame) =>
      frame.type === "prelude"
        ? frame.events
        : frame.type === "chunk"
          ? frame.chunk.entries.map(({ event }) => event)
          : [],
    settled: (cursor) => void (at = cursor),
    cut: () => void (at = undefined),
    session: (events$) => {
      const events: BaseEvent[] = [];
      sessions.push(events);
      return new Promise((resolve, reject) =>
        events$.subscribe({ next: (event) => events.push(event), complete: resolve, error: reject }),
      );
    },
  };
  const follower = new ThreadFollower(parts);
  onTestFinished(() => follower.close());
  return {
    follower,
    sessions,
    asked,
    send: (...frames) => frames.forEach((frame) => subscribers.at(-1)!.next(frame)),
    fail: (error) => subscribers.at(-1)!.error(error),
    hold: () => {
      held = true;
      follower.hold();
    },
    release: (cursor) => {
      held = false;
      at = cursor;
      follower.release();
    },
    isReading: () => subscribers.at(-1)?.closed === false,
  };
}

const event = (name: string): BaseEvent => ({ type: EventType.CUSTOM, name }) as BaseEvent;
const begin = (runIndex: number): Frame => ({ type: "run", run: { runIndex, runId: `r${runIndex}`, epoch: 1 } });
const chunk = (runIndex: number, name: string): Frame => ({
  type: "chunk",
  chunk: {
    threadId: "t",
    runIndex,
    epoch: 1,
    firstSeq: 0,
    count: 1,
    entries: [{ event: event(name) }],
    at: 0,
    times: [1, 0],
  },
});
const settled = (runIndex: number): Frame => ({ type: "settled", runIndex, runId: `r${runIndex}`, status: "finished" });
const prelude = (runIndex: number, name: string): Frame => ({
  type: "prelude",
  cursor: { runIndex, seq: 0, epoch: 1 },
  events: [event(name)],
});

test("a follower whose run was cut off by a snapshot goes on with the snapshot (L13)", async () => {
  const { send, sessions } = makeFollower();
  send(begin(1), chunk(1, "a"), prelude(2, "b"), begin(3), chunk(3, "c"), settled(3));
  await vi.waitFor(() =>
    expect(sessions.map((events) => events.map(({ name }) => name))).toEqual([["a"], ["b"], ["c"]]),
  );
});

const namesIn = (sessions: readonly BaseEvent[][]): unknown[][] => sessions.map((it) => it.map(({ name }) => name));

test("a follower has no attachment while another stream brings the thread, and goes on behind that (L2)", async () => {
  const { send, sessions, asked, hold, release, isReading, follower } = makeFollower();
  send(prelude(0, "a"));
  await vi.waitFor(() => expect(namesIn(sessions)).toEqual([["a"]]));
  await follower.caughtUp();
  hold();
  expect(isReading()).toBe(false);
  // What is there already is known, and need not be waited for.
  await follower.caughtUp();
  const cursor = { runIndex: 1, seq: 3, epoch: 1 };
  release(cursor);
  expect(asked).toEqual([undefined, cursor]);
  send(begin(2), chunk(2, "c"), settled(2));
  await vi.waitFor(() => expect(namesIn(sessions)).toEqual([["a"], ["c"]]));
});

test("a follower that is held in the middle of a run sees it to its end, and applies nothing behind it (L2)", async () => {
  const { send, sessions, asked, hold, release, isReading } = makeFollower();
  send(begin(1), chunk(1, "a"));
  hold();
  send(settled(1), begin(2), chunk(2, "own"), settled(2));
  await vi.waitFor(() => expect(isReading()).toBe(false));
  const cursor = { runIndex: 2, seq: 0, epoch: 1 };
  release(cursor);
  send(begin(3), chunk(3, "c"), settled(3));
  await vi.waitFor(() => expect(namesIn(sessions)).toEqual([["a"], ["c"]]));
  expect(asked).toEqual([undefined, cursor]);
});

test("a follower that is held and released before the run that it applies has ended reads nothing twice (L2)", async () => {
  const { send, sessions, asked, hold, release } = makeFollower();
  send(begin(1), chunk(1, "a"));
  hold();
  release({ runIndex: 0, seq: 0, epoch: 1 });
  send(settled(1), begin(2), chunk(2, "b"));
  await vi.waitFor(() => expect(asked).toEqual([undefined, { runIndex: 1, seq: 0, epoch: 1 }]));
  send(begin(2), chunk(2, "b"), settled(2));
  await vi.waitFor(() => expect(namesIn(sessions)).toEqual([["a"], ["b"]]));
});

test("a snapshot that is due is asked for when a held follower goes on, whatever the cursor says (L2)", async () => {
  const { asked, hold, release, follower } = makeFollower();
  hold();
  follower.restart();
  expect(asked).toEqual([undefined]);
  release({ runIndex: 2, seq: 0, epoch: 1 });
  expect(asked).toEqual([undefined, undefined]);
});

test("a follower whose reading failed ends its session, and reads again (L10, L13)", async () => {
  const { send, fail, sessions, asked, follower } = makeFollower();
  send(begin(1), chunk(1, "a"));
  await vi.waitFor(() => expect(sessions).toHaveLength(1));
  fail(new RunnerError("quota-exceeded"));
  await expect(follower.caughtUp()).rejects.toMatchObject({ code: "quota-exceeded" });
  await vi.waitFor(() => expect(asked).toHaveLength(2));
  send(prelude(1, "b"));
  await vi.waitFor(() => expect(sessions).toHaveLength(2));
});

/** A host that sends `before` and dies when it is told to; the next one sends `after`, and what it is asked for is kept. */
function dyingLink(before: Frame[], after: Frame[]) {
  const asked: AttachRequest[] = [];
  const lost = new AbortController();
  const never = new AbortController();
  const hosts = [
    { lost: lost.signal, frames: before },
    { lost: never.signal, frames: after },
  ];
  let at = 0;
  const serve = (port: MessagePort): void => {
    for (const frame of hosts[at]!.frames) port.postMessage(frame);
  };
  const die = (): void => {
    at = 1;
    lost.abort(new RunnerError("host-lost"));
  };
  const api: Pick<HostApi, "run" | "attach"> = {
    run: (_request, port) => (serve(port), { runIndex: 1, runId: "r1", epoch: 1 }),
    attach: (attach, port) => (asked.push(attach), serve(port), null),
  };
  const link = {
    linked: async () => ({ lost: hosts[at]!.lost }),
    callOnce: async (name: keyof typeof api, asks: never, port: MessagePort) => api[name](asks, port),
  };
  return { link: link as unknown as HostLink, die, asked };
}

const request: RunRequest = { threadId: "t", agentId: "a", input: inputOf("t", "r1") };

/** The frames of a run whose host dies when all that it has sent is there. */
async function framesOfRun(before: Frame[], after: Frame[]) {
  const { link, die, asked } = dyingLink(before, after);
  const frames: Frame[] = [];
  await new Promise<void>((resolve, reject) =>
    runFrames(link, request, () => undefined).subscribe({
      next: (frame) => frames.push(frame) === before.length && die(),
      error: reject,
      complete: resolve,
    }),
  );
  return { frames, asked };
}

test("the next host is asked for an own run alone, behind what came of it (L2, L13)", async () => {
  const rest: Frame[] = [settled(1), { type: "end" }];
  const { frames, asked } = await framesOfRun([begin(1), chunk(1, "a")], rest);
  expect(frames).toEqual([begin(1), chunk(1, "a"), settled(1)]);
  const after = { runIndex: 1, seq: 0, epoch: 1 };
  expect(asked).toEqual([{ threadId: "t", agentId: "a", runId: "r1", after }]);
});

test("an own run that is not in the log of the next host is told as that (L13)", async () => {
  const error = toErrorData(new RunnerError("deleted", { threadId: "t", runId: "r1" }));
  await expect(framesOfRun([begin(1)], [{ type: "error", error }])).rejects.toMatchObject({ code: "deleted" });
});

test("a follower whose session is detached in the middle of a run has the whole of it in the end (L2, L11)", async () => {
  const { connect, letOn } = makeHost();
  const runner = connect().agent("counter", { threadId: "t" });
  runner.addMessage(user("u"));
  const run = runner.runAgent();
  const reader = connect().agent("counter", { threadId: "t" });
  onTestFinished(reader.follow());
  await halfWay(reader);
  await reader.detachActiveRun();
  letOn();
  await run;
  await vi.waitFor(() => expect(answerOf(reader)).toBe(counted(STEPS)));
});

test("an agent that follows forgets the runs that are over (L14)", async () => {
  const { connect } = makeHost();
  const agent = connect().agent("counter", { threadId: "t" });
  await firstRun(agent);
  onTestFinished(agent.follow());
  for (let n = 0; n < 5; n++) {
    agent.addMessage(user(`u${n}`));
    await agent.runAgent();
  }
  const { ownRuns } = agent as unknown as { ownRuns: OwnRuns };
  await vi.waitFor(() => expect(ownRuns.live).toEqual([]));
  expect(agent.messages).toHaveLength(12);
});

test("connectAgent() of an agent that follows a thread without runs resolves (L13)", async () => {
  const agent = makeHost().connect().agent("counter", { threadId: "t" });
  onTestFinished(agent.follow());
  await agent.connectAgent();
});

test("a run started right after follow() reaches the subscriber once (L2)", async () => {
  const { connect } = makeHost();
  for (let n = 0; n < 5; n++) {
    const agent = connect().agent("counter", { threadId: `t${n}` });
    const finished = vi.fn();
    agent.subscribe({ onRunFinishedEvent: finished });
    onTestFinished(agent.follow());
    await firstRun(agent);
    await agent.connectAgent();
    expect(finished).toHaveBeenCalledTimes(1);
  }
});

test("who follows a thread that is deleted elsewhere is left with nothing, and can begin it anew (L2)", async () => {
  const { connect, dbName, letOn } = makeHost();
  letOn();
  const reader = connect().agent("counter", { threadId: "t" });
  await firstRun(connect().agent("counter", { threadId: "t" }));
  onTestFinished(reader.follow());
  await vi.waitFor(() => expect(answerOf(reader)).toBe(counted(STEPS)));
  expect(await makeRunner({ dbName }).clearThreads()).toBe(1);
  await vi.waitFor(() => expect(reader.messages).toEqual([]));
  reader.addMessage(user("again"));
  await reader.runAgent();
  expect(reader.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
});
