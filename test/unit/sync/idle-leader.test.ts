import { expect, test, vi } from "vitest";
import { IdleLeader, type LedStream } from "../../../src/sync/nats/idle-leader.js";

class Stream implements LedStream {
  readonly signal = new AbortController().signal;
  stepDowns = 0;
  now = 0;
  /** Who leads after a wait. */
  next: string | undefined;

  constructor(public leads: string | undefined = "n0") {
    this.next = leads;
  }

  readonly clock = {
    elapsed: () => this.now,
    after: (ms: number): Promise<void> => {
      this.now += ms;
      this.leads = this.next;
      return Promise.resolve();
    },
  };

  leader(): Promise<string | undefined> {
    return Promise.resolve(this.leads);
  }

  stepDown(): Promise<void> {
    this.stepDowns++;
    return Promise.resolve();
  }
}

/** Nobody takes anything at these times, in s. */
async function notTakenAt(stream: Stream, idle: IdleLeader, ...seconds: readonly number[]): Promise<void> {
  for (const at of seconds) {
    stream.now = at * 1_000;
    await idle.notTaken(stream);
  }
}

test("a leader that takes nothing for long is replaced, once", async () => {
  const stream = new Stream();
  const idle = new IdleLeader(stream.clock);
  await notTakenAt(stream, idle, 0, 4, 9);
  expect(stream.stepDowns).toBe(0);
  await notTakenAt(stream, idle, 11);
  expect(stream.stepDowns).toBe(1);
  await notTakenAt(stream, idle, 17, 18, 26);
  expect(stream.stepDowns).toBe(1);
  await notTakenAt(stream, idle, 28);
  expect(stream.stepDowns).toBe(2);
});

test("one that has taken something meanwhile leads on", async () => {
  const stream = new Stream();
  const idle = new IdleLeader(stream.clock);
  await notTakenAt(stream, idle, 0, 9);
  idle.taken();
  await notTakenAt(stream, idle, 12, 21);
  expect(stream.stepDowns).toBe(0);
});

test("what failed once long ago is no reason", async () => {
  const stream = new Stream();
  const idle = new IdleLeader(stream.clock);
  await notTakenAt(stream, idle, 0, 3_600, 3_605);
  expect(stream.stepDowns).toBe(0);
  await notTakenAt(stream, idle, 3_611);
  expect(stream.stepDowns).toBe(1);
});

test("an election is waited for", async () => {
  const stream = new Stream();
  const idle = new IdleLeader(stream.clock);
  await notTakenAt(stream, idle, 0, 5);
  stream.leads = undefined;
  await notTakenAt(stream, idle, 8);
  stream.leads = "n1";
  await notTakenAt(stream, idle, 12, 20);
  expect(stream.stepDowns).toBe(0);
});

test("where another device was first, or something is taken before it is its turn, nothing is asked", async () => {
  const stream = new Stream();
  const idle = new IdleLeader(stream.clock);
  await notTakenAt(stream, idle, 0);
  stream.next = "n2";
  await notTakenAt(stream, idle, 11);
  expect(stream.stepDowns).toBe(0);
  await notTakenAt(stream, idle, 20);
  const waiting = notTakenAt(stream, idle, 31);
  idle.taken();
  await waiting;
  expect(stream.stepDowns).toBe(0);
});

test("a leader that takes something while it is asked who leads is not replaced, and nobody is asked twice at once", async () => {
  let now = 0;
  let stepDowns = 0;
  const clock = { elapsed: () => now, after: () => Promise.resolve() };
  const stream: LedStream = {
    signal: new AbortController().signal,
    leader: () => Promise.resolve("n0" as string | undefined),
    stepDown: async () => void stepDowns++,
  };
  const idle = new IdleLeader(clock);
  await idle.notTaken(stream);
  now = 11_000;
  // Two threads have something to send.
  await Promise.all([idle.notTaken(stream), idle.notTaken(stream)]);
  expect(stepDowns).toBe(1);
  stepDowns = 0;
  await idle.notTaken(stream);
  now = 30_000;
  let answer = (): void => undefined;
  let calls = 0;
  stream.leader = () => (calls++ === 0 ? Promise.resolve("n0") : new Promise((is) => (answer = () => is("n0"))));
  const waiting = idle.notTaken(stream);
  await vi.waitFor(() => expect(calls).toBe(2));
  idle.taken();
  answer();
  await waiting;
  expect(stepDowns).toBe(0);
});
