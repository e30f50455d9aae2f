import { EventType } from "@ag-ui/client";
import { Subject } from "rxjs";
import { expect, onTestFinished, test } from "vitest";
import type { HostChannel, LockMessage } from "../../../src/lock/protocol.js";
import { Bell } from "../../../src/platform/bell.js";
import { nextTask } from "../../../src/platform/clock.js";
import { joinChunks, lastSeq, unpackChunk } from "../../../src/run/pack.js";
import type { Chunk, SettledStatus } from "../../../src/run/types.js";
import { RunFeed } from "../../../src/run/run-feed.js";
import { tailRun, type TailContext, type TailEnd } from "../../../src/runner/read/tail.js";
import type { Claim, RunStore } from "../../../src/storage/run-store.js";
import { emptyMemoryData, memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { DrivenClock } from "../lock/driven-clock.js";
import { chunkOf, claimed, delta, settlement } from "../storage/kit.js";

/** A run of another host, and one who follows it here. */
async function followed(before: (store: RunStore, claim: Claim) => Promise<void> = async () => undefined) {
  const truth = memoryRunStore(emptyMemoryData());
  const claim = await claimed(truth, "t", "r");
  await before(truth, claim);
  const calls: string[] = [];
  /** What happens just before a read takes place. */
  let meanwhile: (name: string) => Promise<void> = async () => undefined;
  const store = new Proxy(truth, {
    get:
      (target, name: keyof RunStore) =>
      async (
        // What each method takes is checked by whoever calls it.
        ...args: never[]
      ) => {
        calls.push(name);
        await meanwhile(name);
        return (target[name] as (...given: never[]) => Promise<unknown>)(...args);
      },
  });
  const messages$ = new Subject<LockMessage>();
  const bell = new Bell();
  const clock = new DrivenClock();
  const channel: HostChannel = { messages$, post: () => undefined, close: () => undefined };
  const context: TailContext = {
    parts: { store, channel, clock },
    recovery: { owes: () => undefined, endAbandoned: async () => undefined },
    bell: () => ({ bell, release: () => undefined }),
  };
  const reading = new AbortController();
  onTestFinished(() => reading.abort());
  const chunks: Chunk[] = [];
  let end: SettledStatus | TailEnd["is"] | undefined | "reads" = "reads";
  const follow = (feed?: RunFeed, afterSeq = -1): void => {
    const tail = tailRun(context, claim, feed, afterSeq, reading.signal);
    const read = async (): Promise<void> => {
      for (let next = await tail.next(); ; next = await tail.next()) {
        if (next.done === true) return void (end = next.value?.is === "settled" ? next.value.status : next.value?.is);
        if (next.value.type === "chunk") chunks.push(next.value.chunk);
      }
    };
    void read();
  };
  return {
    truth,
    claim,
    chunks,
    clock,
    bell,
    follow,
    end: () => end,
    /** The calls since the last time. */
    calls: () => calls.splice(0),
    meanwhile: (work: typeof meanwhile) => (meanwhile = work),
    append: (seq: number, text: string) => truth.append(claim, chunkOf(claim, seq, [delta(text)])),
    settle: (seq: number) => truth.settle(claim, settlement(claim, seq)),
    tell: (seq: number, runId = "r") => messages$.next({ type: "advanced", from: "host-1", threadId: "t", runId, seq }),
    seqs: () => chunks.flatMap(unpackChunk).map(({ seq }) => seq),
  };
}

test("who follows another host's run reads the log once for what it is told of, and no run row (L14)", async () => {
  const run = await followed();
  run.follow();
  await nextTask();
  // It has read up to the end once: from now on it is told.
  expect(run.calls()).toEqual(["chunks", "run"]);
  for (let seq = 0; seq < 5; seq++) {
    await run.append(seq, "a");
    run.tell(seq);
    await nextTask();
    expect(run.calls()).toEqual(["chunks"]);
  }
  expect(run.seqs()).toEqual([0, 1, 2, 3, 4]);
});

test("what is told late, or again, or of another run, costs no look (L14)", async () => {
  const run = await followed(async (store, claim) => {
    for (let seq = 0; seq < 3; seq++) await store.append(claim, chunkOf(claim, seq, [delta("a")]));
  });
  run.follow();
  await nextTask();
  run.calls();
  for (const seq of [0, 1, 2, 2]) run.tell(seq);
  run.tell(99, "another");
  await nextTask();
  expect(run.calls()).toEqual([]);
});

test("any number of messages during a look lead to one more (L14)", async () => {
  const run = await followed();
  run.follow();
  await nextTask();
  run.calls();
  run.meanwhile(async (name) => {
    run.meanwhile(async () => undefined);
    expect(name).toBe("chunks");
    for (let seq = 1; seq < 50; seq++) {
      await run.append(seq, "b");
      run.tell(seq);
    }
  });
  await run.append(0, "a");
  run.tell(0);
  await nextTask();
  expect(run.seqs()).toHaveLength(50);
  expect(run.calls()).toEqual(["chunks", "chunks", "run"]);
});

test("a run that is settled between two reads is read to its end (L2)", async () => {
  const run = await followed();
  // The chunks were read, and the row comes next.
  run.meanwhile(async (name) => {
    if (name !== "run") return;
    run.meanwhile(async () => undefined);
    await run.append(0, "a");
    await run.settle(1);
  });
  run.follow();
  await nextTask();
  expect(run.seqs()).toEqual([0, 1]);
  expect(run.end()).toBe("finished");
});

test("who has heard the last event is told the run's end without waiting for a message (L13)", async () => {
  const run = await followed();
  run.follow();
  await nextTask();
  await run.append(0, "a");
  await run.settle(1);
  run.tell(0);
  await nextTask();
  expect(run.seqs()).toEqual([0, 1]);
  expect(run.end()).toBe("finished");
});

test("where no message arrives, the log is looked into after a silence (L11, L13)", async () => {
  const run = await followed();
  run.follow();
  await nextTask();
  await run.append(0, "a");
  run.clock.pass(2_000);
  await nextTask();
  await run.settle(1);
  run.clock.pass(2_000);
  await nextTask();
  expect(run.seqs()).toEqual([0, 1]);
  expect(run.end()).toBe("finished");
});

test("large events of which the log gives out a few at a time are all read at once (L14)", async () => {
  const run = await followed();
  const { chunks } = run.truth;
  run.truth.chunks = async (...of) => (await chunks(...of)).slice(0, 2);
  run.follow();
  await nextTask();
  for (let seq = 0; seq < 6; seq++) await run.append(seq, "a".repeat(100_000));
  run.tell(5);
  await nextTask();
  expect(run.seqs()).toEqual([0, 1, 2, 3, 4, 5]);
});

test("events that are gone end the reading; so does a run that is (L13)", async () => {
  const run = await followed();
  await run.append(0, "a");
  await run.settle(1);
  run.follow(undefined, 0);
  run.meanwhile(async (name) => {
    if (name === "run") await run.truth.deleteThread("t");
  });
  await nextTask();
  expect(run.end()).toBeUndefined();
  expect(run.seqs()).toEqual([1]);
});

for (const what of ["events", "an idle run"] as const) {
  test(`a run of a database that was begun anew is another one, whatever its index: ${what} (L2)`, async () => {
    const run = await followed();
    await run.append(0, "a");
    run.follow();
    await nextTask();
    const epoch = run.claim.epoch + 2 ** 33;
    const { chunks, run: row } = run.truth;
    if (what === "events") {
      run.truth.chunks = async (...args) => (await chunks(...args)).map((chunk) => ({ ...chunk, epoch }));
      await run.append(1, "b");
    } else {
      run.truth.run = async (...args) => ({ ...(await row(...args))!, epoch });
    }
    run.bell.ring();
    await nextTask();
    expect(run.end()).toBeUndefined();
    expect(run.seqs()).toEqual([0]);
  });
}

test("events of a settled run that are not there any more end the reading (L13)", async () => {
  const run = await followed();
  await run.append(0, "a");
  await run.settle(1);
  run.truth.chunks = async () => [];
  run.follow();
  await nextTask();
  expect(run.end()).toBeUndefined();
  expect(run.calls()).toEqual(["chunks", "run", "chunks"]);
});

test("what is committed and not yet published is not shown, also where its record holds more (L5, L8)", async () => {
  const run = await followed();
  const feed = new RunFeed();
  // More than the feed keeps: the first ones are read from the log.
  const written: Chunk[] = [];
  for (let seq = 0; seq < 100; seq++) {
    const chunk = chunkOf(run.claim, seq, [delta("a")]);
    await run.truth.append(run.claim, chunk);
    written.push(chunk);
    feed.publish(chunk);
  }
  const end = settlement(run.claim, 100);
  await run.truth.settle(run.claim, end);
  // Another host joins the records before this one has let go of the thread.
  const whole = await run.truth.chunks("t", 0, -1, Infinity);
  run.truth.chunks = async () => [joinChunks(whole)];
  run.follow(feed);
  await nextTask();
  expect(run.chunks.map(lastSeq).at(-1) ?? -1).toBeLessThan(100);
  expect(run.end()).toBe("reads");
  feed.publish(end.chunk);
  feed.settled("finished");
  await nextTask();
  expect(run.seqs()).toEqual(Array.from({ length: 101 }, (_, seq) => seq));
  expect(run.chunks.at(-1)?.entries.at(-1)?.event.type).toBe(EventType.RUN_FINISHED);
  expect(run.end()).toBe("finished");
});
