import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { hostChannel } from "../../../src/lock/protocol.js";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";
import { hostChannelName, hostLifeLockName, threadLockName } from "../../../src/platform/names.js";
import { ChunkBuilder } from "../../../src/run/pack.js";
import type { OpenConstructs } from "../../../src/run/types.js";
import { History } from "../../../src/runner/history/history.js";
import { RecordedRun } from "../../../src/runner/history/recorded-run.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { DeviceName, PlacedRun } from "../../../src/storage/devices.js";
import type { Claim, Settlement } from "../../../src/storage/run-store.js";
import type { Cursor } from "../../../src/run/types.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { foreignEnd, request } from "../storage/kit.js";
import {
  agentOf,
  collect,
  counter,
  cursorOf,
  eventsOfFrame,
  framesUntil,
  freshDb,
  inputOf,
  makeRunner,
  mortalLocks,
  rebuild,
  replay,
  user,
} from "./kit.js";

const DEVICE = { id: "phone-1", name: "Phone" };
const HOLDER = "mirror";

const open = (messageId: string): OpenConstructs => ({
  textMessages: [messageId],
  reasoningSpans: [],
  reasoningMessages: [],
  toolCalls: [],
  unanswered: [],
  steps: [],
  subagents: [],
});

const chunkOf = (
  claim: Pick<Claim, "threadId" | "runIndex" | "epoch">,
  firstSeq: number,
  events: readonly BaseEvent[],
) => {
  const builder = new ChunkBuilder({ ...claim, firstSeq });
  for (const event of events) builder.add(event, 2_000);
  const { messageId } = events.at(-1) as { readonly messageId?: string };
  return builder.take(messageId === undefined ? undefined : open(messageId))!;
};

const started = (runId: string): BaseEvent => ({ type: EventType.RUN_STARTED, threadId: "t", runId });
const finished = (runId: string): BaseEvent => ({ type: EventType.RUN_FINISHED, threadId: "t", runId });
const says = (runId: string, ...deltas: readonly string[]): BaseEvent[] =>
  deltas.map((delta) => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta }));
const begins = (runId: string): BaseEvent[] => [
  started(runId),
  { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" },
];
const ends = (runId: string): BaseEvent[] => [
  { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` },
  finished(runId),
];
const inputFor = (runId: string) => ({ messages: [user(`${runId}-u`)] });

/** A runner with the run `r0`, and a host beside it that writes down the runs of another device. */
async function withMirror() {
  const { locks } = mortalLocks();
  const openChannel = inProcessChannels();
  const runner = makeRunner({ dbName: freshDb(), locks, openChannel });
  const { dbName } = runner;
  const life = await locks.tryHold(hostLifeLockName(dbName, HOLDER));
  const store = indexedDBRunStore({ dbName });
  onTestFinished(() => store.close());
  const channel = hostChannel(openChannel(hostChannelName(dbName)), HOLDER);
  onTestFinished(() => channel.close());
  const history = new History(store);
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "r0") }));

  const headNow = async () => (await store.head("t"))!;
  const tell = (): void => channel.post({ type: "changed", threadId: "t" });
  const recorded = async (runIndex: number, runId: string) =>
    new RecordedRun(await history.baseAt(await headNow(), runIndex), inputFor(runId));
  let lock: Awaited<ReturnType<typeof locks.tryHold>>;
  return {
    runner,
    store,
    /** A run of the other device begins. */
    claim: async (runId: string, device: DeviceName | null = DEVICE): Promise<Claim> => {
      lock = await locks.tryHold(threadLockName(dbName, "t"));
      const head = await headNow();
      const result = await store.claim(
        request("t", runId, {
          base: head,
          prevRunIndex: head.activeRunIndex,
          holder: HOLDER,
          ...(device !== null && { device }),
          input: inputFor(runId),
          agentId: "test",
        }),
      );
      if (result.is !== "claimed") throw new Error(result.is);
      channel.post({ type: "started", threadId: "t", runId, runIndex: result.claim.runIndex });
      return result.claim;
    },
    append: async (claim: Claim, seq: number, events: readonly BaseEvent[]): Promise<void> => {
      await store.append(claim, chunkOf(claim, seq, events));
      channel.post({ type: "advanced", threadId: "t", runId: claim.runId, seq: seq + events.length - 1 });
    },
    break: async ({ runId, runIndex }: Claim): Promise<void> => {
      await store.settleForeign("t", runId, "broken", 4_000, foreignEnd);
      await lock?.release();
      channel.post({ type: "ended", threadId: "t", runId, runIndex });
    },
    die: async (): Promise<void> => {
      await Promise.all([lock?.release(), life?.release()]);
    },
    reopen: async (runId: string): Promise<Claim> => {
      lock = await locks.tryHold(threadLockName(dbName, "t"));
      const { activeRunIndex } = await headNow();
      const claim = (await store.reopen("t", activeRunIndex, HOLDER))!;
      channel.post({ type: "started", threadId: "t", runId, runIndex: claim.runIndex });
      return claim;
    },
    settle: async (claim: Claim, seq: number, events: readonly BaseEvent[]): Promise<void> => {
      const { runId, runIndex } = claim;
      const chunk = chunkOf(claim, seq, events);
      const view = await history.viewOf(await headNow(), runIndex);
      view.applyChunk(chunk);
      const end: Settlement = {
        status: "finished",
        endedAt: 5_000,
        chunk,
        ownTerminal: true,
        closing: view.closing(),
        derived: view.derived(),
        bytes: 0,
      };
      await store.settle(claim, end);
      await lock?.release();
      channel.post({ type: "ended", threadId: "t", runId, runIndex });
    },
    place: async (
      runId: string,
      prevRunIndex: number,
      events: readonly BaseEvent[],
      more: Partial<PlacedRun> = {},
    ): Promise<void> => {
      const chunk = chunkOf({ threadId: "t", runIndex: 0, epoch: 0 }, 0, events);
      const view = await recorded(prevRunIndex, runId);
      view.applyChunk(chunk);
      const { fingerprint, title } = request("t", runId);
      const run = {
        threadId: "t",
        runId,
        startedAt: 1_000,
        prevRunIndex,
        input: inputFor(runId),
        fingerprint,
        title,
        device: DEVICE,
        status: "finished" as const,
        endedAt: 6_000,
        chunks: [chunk],
        closing: view.closing(),
        derived: view.derived(),
        bytes: 0,
        activates: true,
        ...more,
      };
      expect(await store.placeRun(run)).toMatchObject({ runId, status: "finished" });
      tell();
    },
    activate: async (runIndex: number): Promise<void> => {
      expect(await store.activate("t", runIndex)).toBe(true);
      tell();
    },
  };
}

/** Follows the thread until the test ends. */
function following(runner: LocalAgentRunner, after?: Cursor) {
  const frames: Frame[] = [];
  const reading = new AbortController();
  onTestFinished(() => reading.abort());
  void (async () => {
    const options = { threadId: "t", follow: true, ...(after !== undefined && { after }) };
    for await (const frame of runner.attach(options, reading.signal)) frames.push(frame);
  })();
  const kinds = (): string[] => frames.map((frame) => (frame.type === "settled" ? frame.status : frame.type));
  return {
    frames,
    kinds,
    until: (what: string, from = 0) => vi.waitFor(() => expect(kinds().slice(from)).toContain(what), 5_000),
    untilText: (text: string) => vi.waitFor(() => expect(JSON.stringify(frames)).toContain(text), 5_000),
  };
}

/** What a reader shows after the frames: a snapshot replaces, and what follows is added. */
async function shownBy(frames: readonly Frame[]) {
  let shown: Awaited<ReturnType<typeof rebuild>> = { messages: [], state: {} };
  const last = frames.findLastIndex(({ type }) => type === "prelude");
  for (const part of [frames.slice(0, last), frames.slice(last)]) {
    const events = part.flatMap(eventsOfFrame);
    if (events.length > 0) shown = await rebuild(events, shown.messages);
  }
  return shown;
}

/** Seqs of a run as they were handed out, since the last snapshot. */
const seqsOf = (frames: readonly Frame[], runIndex: number): number[] =>
  frames
    .slice(
      Math.max(
        0,
        frames.findLastIndex(({ type }) => type === "prelude"),
      ),
    )
    .flatMap((frame) =>
      frame.type === "chunk" && frame.chunk.runIndex === runIndex
        ? Array.from({ length: frame.chunk.count }, (_, n) => frame.chunk.firstSeq + n)
        : [],
    );

test("a follower of another device's run sees it break, and after it goes on a snapshot and the rest (L2)", async () => {
  const mirror = await withMirror();
  const { runner } = mirror;
  const follower = following(runner);
  const claim = await mirror.claim("r1");
  await mirror.append(claim, 0, [...begins("r1"), ...says("r1", "one ", "two ")]);
  await follower.untilText("two ");
  await mirror.break(claim);
  await follower.until("broken");
  const seen = follower.frames.length;
  const again = await mirror.reopen("r1");
  await follower.until("prelude", seen);
  await mirror.append(again, 4, says("r1", "three "));
  await follower.untilText("three ");
  await mirror.settle(again, 5, ends("r1"));
  await follower.until("finished", seen);
  await follower.until("finished");
  const shown = await shownBy(follower.frames);
  expect(shown).toEqual(await rebuild(await replay(runner, "t")));
  expect(shown.messages.at(-1)).toMatchObject({ id: "r1-a", content: "one two three " });
  expect(seqsOf(follower.frames, 1)).toEqual([4, 5, 6]);
  // One snapshot at first, one when it went on.
  expect(follower.kinds().filter((kind) => kind === "prelude")).toHaveLength(2);
});

test("who reads what comes before the broken end goes on without a snapshot (L2)", async () => {
  const mirror = await withMirror();
  const claim = await mirror.claim("r1");
  await mirror.append(claim, 0, [...begins("r1"), ...says("r1", "one ", "two ")]);
  await mirror.break(claim);
  const again = await mirror.reopen("r1");
  await mirror.append(again, 4, says("r1", "three "));
  await mirror.settle(again, 5, ends("r1"));
  const { runner } = mirror;
  const at = (seq: number, epoch: number) => ({ threadId: "t", after: { runIndex: 1, seq, epoch } });
  for (const seq of [0, 3]) {
    expect(seqsOf(await framesUntil(runner, at(seq, claim.epoch)), 1).at(0)).toBe(seq + 1);
  }
  for (const seq of [4, 5]) {
    const [first, ...rest] = await framesUntil(runner, at(seq, claim.epoch + 1));
    expect([first?.type, ...rest.map(({ type }) => type)]).toEqual(["prelude", "end"]);
  }
  // Under the new epoch it has seen the new events.
  expect(seqsOf(await framesUntil(runner, at(4, again.epoch)), 1)).toEqual([5, 6]);
});

test("a run that goes on while a follower lags behind is handed out without what was replaced (L2)", async () => {
  const mirror = await withMirror();
  const follower = following(mirror.runner);
  await follower.until("idle");
  const claim = await mirror.claim("r1");
  await mirror.append(claim, 0, [...begins("r1"), ...says("r1", "one ", "two ")]);
  await follower.untilText("two ");
  // Nobody is told that it broke.
  await mirror.store.settleForeign("t", "r1", "broken", 4_000, foreignEnd);
  const again = (await mirror.store.reopen("t", 1, HOLDER))!;
  await mirror.append(again, 4, says("r1", "three "));
  await follower.untilText("three ");
  await mirror.settle(again, 5, ends("r1"));
  await follower.until("finished", follower.kinds().lastIndexOf("prelude"));
  expect(await shownBy(follower.frames)).toEqual(await rebuild(await replay(mirror.runner, "t")));
});

test.each(["the active run", "the run before it", "the broken run"])(
  "who has read up to %s is given a snapshot when a run before the active one is replaced (L2)",
  async (where) => {
    const mirror = await withMirror();
    const { runner } = mirror;
    const broken = await mirror.claim("r1");
    await mirror.append(broken, 0, [...begins("r1"), ...says("r1", "one ")]);
    await mirror.break(broken);
    const cursors = new Map<string, Cursor>();
    cursors.set("the broken run", (await cursorOf(runner, "t"))!);
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "r2") }));
    cursors.set("the run before it", (await cursorOf(runner, "t"))!);
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", "r3") }));
    cursors.set("the active run", (await cursorOf(runner, "t"))!);
    const online = following(runner);
    await online.until("idle");
    await mirror.place("r1", 0, [...begins("r1"), ...says("r1", "one ", "whole "), ...ends("r1")]);
    await online.untilText("whole ");
    const late = following(runner, cursors.get(where));
    await late.untilText("whole ");
    const truth = await rebuild(await replay(runner, "t"));
    expect(truth.messages.find(({ id }) => id === "r1-a")).toMatchObject({ content: "one whole " });
    expect(await shownBy(online.frames)).toEqual(truth);
    expect((await shownBy(late.frames)).messages).toEqual(truth.messages);
    expect(late.kinds().filter((kind) => kind === "prelude")).toHaveLength(1);
    // The runs here go on from it.
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r4") }));
    await late.until("finished");
    expect((await shownBy(late.frames)).messages).toEqual((await rebuild(await replay(runner, "t"))).messages);
  },
);

test("a follower sees a run that is placed at the end, and not what is placed beside it (L2, L20)", async () => {
  const mirror = await withMirror();
  const { runner } = mirror;
  const follower = following(runner);
  await follower.until("idle");
  await mirror.place("beside", 0, [...begins("beside"), ...says("beside", "hidden "), ...ends("beside")], {
    activates: false,
  });
  await mirror.place("r1", 0, [...begins("r1"), ...says("r1", "shown "), ...ends("r1")]);
  await follower.untilText("shown ");
  await follower.until("finished");
  const truth = await rebuild(await replay(runner, "t"));
  expect(truth.messages.map(({ id }) => id)).toEqual(["r0-u", "r0-a", "r1-u", "r1-a"]);
  expect(await shownBy(follower.frames)).toEqual(truth);
  expect(JSON.stringify(follower.frames)).not.toContain("hidden ");
});

test("when another run becomes the end of the path, a follower is given a snapshot of it (L2, L20)", async () => {
  const mirror = await withMirror();
  const { runner } = mirror;
  await mirror.place("r1", 0, [...begins("r1"), ...says("r1", "mine "), ...ends("r1")]);
  await mirror.place("r2", 0, [...begins("r2"), ...says("r2", "theirs "), ...ends("r2")]);
  const follower = following(runner);
  await follower.untilText("theirs ");
  await follower.until("idle");
  await mirror.activate(1);
  await follower.untilText("mine ");
  const truth = await rebuild(await replay(runner, "t"));
  expect(truth.messages.map(({ id }) => id)).toEqual(["r0-u", "r0-a", "r1-u", "r1-a"]);
  expect((await shownBy(follower.frames)).messages).toEqual(truth.messages);
});

test.each([DEVICE, null])(
  "when the host of a run dies, the run is recovered, but not one of device %j",
  async (device) => {
    const mirror = await withMirror();
    const { runner, store } = mirror;
    runner.recoverBy(() => ({}));
    const follower = following(runner);
    const claim = await mirror.claim("r1", device);
    await mirror.append(claim, 0, [...begins("r1"), ...says("r1", "one ")]);
    await follower.untilText("one ");
    await mirror.die();
    await follower.until("broken");
    expect(await store.waitingRuns("t")).toHaveLength(device === null ? 1 : 0);
  },
);

test("a run of another device is named as that, and nobody here recovers it", async () => {
  const mirror = await withMirror();
  const { runner, store } = mirror;
  runner.recoverBy(() => ({}));
  const follower = following(runner);
  const claim = await mirror.claim("r1");
  await mirror.append(claim, 0, [...begins("r1"), ...says("r1", "one ")]);
  await follower.untilText("one ");
  const other = collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r9") }));
  await expect(other).rejects.toMatchObject({ code: "thread-busy", details: { runId: "r1", device: "Phone" } });
  await mirror.break(claim);
  await follower.until("broken");
  await follower.until("idle");
  expect(follower.kinds()).not.toContain("recovery");
  expect(await store.waitingRuns("t")).toEqual([]);
  const [run, own] = await runner.listRuns("t");
  expect(run).toMatchObject({ runId: "r1", status: "broken", device: DEVICE });
  for (const inner of ["epoch", "closedFrom", "leaves", "revised"]) expect(run).not.toHaveProperty(inner);
  expect(own).not.toHaveProperty("device");
});
