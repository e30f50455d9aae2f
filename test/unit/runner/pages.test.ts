import { EventType, verifyEvents, type BaseEvent, type Message } from "@ag-ui/client";
import { from, lastValueFrom, toArray } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf } from "../../../src/platform/locks.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { Frame, MessagePage } from "../../../src/wire/shapes.js";
import { countReads } from "../storage/idb-reads.js";
import {
  agentOf,
  collect,
  counter,
  eventsOfFrame,
  framesUntil,
  freshDb,
  fullDisk,
  gated,
  inputOf,
  makeRunner,
  mortalLocks,
  PRESETS,
  rebuild,
  silent,
  user,
} from "./kit.js";

const run = (runner: LocalAgentRunner, runId: string, agent = agentOf(counter(1)), messages?: Message[]) =>
  collect(runner.run({ threadId: "t", agent, input: inputOf("t", runId, messages) }));

/** Thread `t` with as many runs, of two messages each. */
async function withRuns(runner: LocalAgentRunner, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await run(runner, `r${n}`);
}

/** A run that stands still in the middle of its message. */
async function withLive(runner: LocalAgentRunner, runId: string): Promise<() => Promise<unknown>> {
  const { gate, letOn } = gated();
  const running = run(runner, runId, agentOf(counter(4, (step) => (step === 2 ? gate : undefined))));
  await vi.waitFor(async () => {
    const [last] = (await runner.getThreadMessages("t")).slice(-1);
    expect(last).toMatchObject({ id: `${runId}-a`, content: "0 1 " });
  });
  return () => {
    letOn();
    return running;
  };
}

/** All pages, from the last to the first. */
async function pagesOf(runner: LocalAgentRunner, limit: number): Promise<MessagePage[]> {
  const pages: MessagePage[] = [];
  do {
    const before = pages.at(-1)?.messages[0]?.id;
    pages.push(await runner.getMessagePage("t", { limit, ...(before !== undefined && { before }) }));
  } while (pages.at(-1)!.earlier && pages.length < 100);
  return pages;
}

const joined = (pages: readonly MessagePage[]): Message[] => pages.toReversed().flatMap(({ messages }) => messages);

async function preludeOf(
  runner: LocalAgentRunner,
  limit: number,
  more: Partial<Parameters<LocalAgentRunner["attach"]>[0]> = {},
): Promise<Extract<Frame, { type: "prelude" }>> {
  const [frame] = await framesUntil(runner, { threadId: "t", limit, ...more }, ({ type }) => type === "prelude");
  if (frame?.type !== "prelude") throw new Error(`no prelude: ${frame?.type}`);
  return frame;
}

const idsOf = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);

/** What a reader makes of events that the verifier has accepted. */
async function rebuilt(events: readonly BaseEvent[]): Promise<Message[]> {
  await lastValueFrom(from(events).pipe(verifyEvents(), toArray()));
  return (await rebuild(events)).messages;
}

const snapshotsIn = (events: readonly BaseEvent[]): Message[][] =>
  events.flatMap((event) => (event.type === EventType.MESSAGES_SNAPSHOT ? [event["messages"] as Message[]] : []));

describe.each(PRESETS)("%s: pages of messages", (_name, makeOne) => {
  test("pages are together all messages, of a settled thread and of one whose run is live (L2)", async () => {
    const runner = makeOne();
    await withRuns(runner, 5);
    expect((await pagesOf(runner, 3)).map(({ messages }) => idsOf(messages).length)).toEqual([3, 3, 3, 1]);
    expect(joined(await pagesOf(runner, 3))).toEqual(await runner.getThreadMessages("t"));
    const letOn = await withLive(runner, "live");
    const pages = await pagesOf(runner, 5);
    expect(joined(pages)).toEqual(await runner.getThreadMessages("t"));
    expect(pages[0]!.messages.at(-1)).toMatchObject({ id: "live-a", content: "0 1 " });
    await letOn();
    expect((await runner.getMessagePage("t", { limit: 1 })).messages[0]).toMatchObject({ content: "0 1 2 3 " });
  });

  test("a page of what another host runs shows its messages so far (L2)", async () => {
    const dbName = freshDb();
    const holder = makeOne({ dbName });
    const other = makeOne({ dbName });
    await withRuns(holder, 3);
    const letOn = await withLive(holder, "live");
    expect(joined(await pagesOf(other, 3))).toEqual(await holder.getThreadMessages("t"));
    await letOn();
  });

  test("a thread in which nothing was said has an empty page; 50 messages are a page, 500 the longest", async () => {
    const runner = makeOne();
    expect(await runner.getMessagePage("unknown")).toEqual({ messages: [], earlier: false });
    const many = Array.from({ length: 600 }, (_, n) => user(`m${n}`));
    await run(runner, "r", agentOf(counter(1)), many);
    const length = async (limit?: number): Promise<number> =>
      (await runner.getMessagePage("t", limit === undefined ? {} : { limit })).messages.length;
    expect([await length(), await length(0), await length(7.5), await length(1e9)]).toEqual([50, 0, 7, 500]);
    await expect(runner.getMessagePage("t", { limit: Number.NaN })).rejects.toMatchObject({ code: "invalid-input" });
    await runner.clearThreads();
    expect(await runner.getMessagePage("t")).toEqual({ messages: [], earlier: false });
  });

  test("whoever asks for what stands before a message that is not there is told what to do", async () => {
    const runner = makeOne();
    await withRuns(runner, 2);
    const refused = { code: "invalid-input", details: { field: "before", threadId: "t" } };
    await expect(runner.getMessagePage("t", { before: "gone" })).rejects.toMatchObject(refused);
    await expect(runner.getMessagePage("t", { before: "gone" })).rejects.toThrow(/read its last messages again/);
    await expect(runner.getMessagePage("t", { before: "" })).rejects.toMatchObject({ code: "invalid-input" });
    const letOn = await withLive(runner, "live");
    await expect(runner.getMessagePage("t", { before: "gone" })).rejects.toMatchObject(refused);
    await letOn();
  });

  test("a page is the reader's own", async () => {
    const runner = makeOne();
    await withRuns(runner, 1);
    const [message] = (await runner.getMessagePage("t")).messages;
    message!.content = "changed";
    expect((await runner.getThreadMessages("t"))[0]!.content).toBe("from r0-u");
  });

  test("a reader of a settled thread is shown the last messages, and told of earlier ones (L2, L3)", async () => {
    const runner = makeOne();
    await withRuns(runner, 3);
    const all = await runner.getThreadMessages("t");
    for (const [limit, earlier] of [
      [2, true],
      [5, true],
      [6, undefined],
      [50, undefined],
    ] as const) {
      const prelude = await preludeOf(runner, limit);
      expect(await rebuilt(prelude.events)).toEqual(all.slice(-limit));
      expect(prelude.earlier).toBe(earlier);
      for (const snapshot of snapshotsIn(prelude.events)) expect(snapshot.length).toBeLessThanOrEqual(limit);
    }
    const [whole] = await framesUntil(runner, { threadId: "t" }, ({ type }) => type === "prelude");
    expect(whole).not.toHaveProperty("earlier");
    expect((await rebuilt(eventsOfFrame(whole!))).length).toBe(6);
  });

  test.each(["its host", "another host"])(
    "a reader of a live run is shown the last messages by %s (L2, L3)",
    async (by) => {
      const dbName = freshDb();
      const holder = makeOne({ dbName });
      const reader = by === "its host" ? holder : makeOne({ dbName });
      await withRuns(holder, 4);
      const letOn = await withLive(holder, "live");
      const all = await holder.getThreadMessages("t");
      for (const [limit, shown] of [
        [1, 2],
        [3, 3],
        [10, 10],
        [20, 10],
      ] as const) {
        const prelude = await preludeOf(reader, limit);
        expect(await rebuilt(prelude.events)).toEqual(all.slice(-shown));
        expect(prelude.earlier).toBe(shown < 10 ? true : undefined);
        for (const snapshot of snapshotsIn(prelude.events))
          expect(snapshot.length).toBeLessThanOrEqual(Math.max(2, limit));
      }
      let attached = false;
      const frames = framesUntil(reader, { threadId: "t", limit: 3 }, ({ type }) => {
        attached ||= type === "prelude";
        return type === "settled";
      });
      await vi.waitFor(() => expect(attached).toBe(true));
      await letOn();
      expect(await rebuilt((await frames).flatMap(eventsOfFrame))).toEqual(
        (await holder.getThreadMessages("t")).slice(-3),
      );
    },
  );

  test("a reader that comes back, and replaces what it shows, is shown the last messages in their order (L2)", async () => {
    const runner = makeOne();
    await withRuns(runner, 5);
    // Another answer to an older message: what is shown now begins before what was.
    const held = await preludeOf(runner, 4);
    await run(runner, "other", agentOf(counter(2)), (await runner.getThreadMessages("t")).slice(0, 7));
    const now = await preludeOf(runner, 4, { after: held.cursor });
    expect(idsOf(await rebuilt(now.events))).toEqual(["r2-u", "r2-a", "r3-u", "other-a"]);
    expect(now.earlier).toBe(true);
  });

  test.each(["with another text", "without its answer"])(
    "a sender that has loaded the last messages only and sends one %s starts the right branch",
    async (how) => {
      const runner = makeOne();
      await withRuns(runner, 5);
      const all = await runner.getThreadMessages("t");
      const loaded = all.slice(5, 9);
      const edited = how === "with another text";
      const sent = edited ? [...loaded.slice(0, 3), user("r4-u", "other words")] : loaded;
      let given: readonly Message[] = [];
      const looking = agentOf(async function* ({ messages }) {
        given = structuredClone(messages);
        yield { type: EventType.TEXT_MESSAGE_START, messageId: "new-a", role: "assistant" } as BaseEvent;
      });
      const request = { threadId: "t", agentId: "test", agent: looking, input: inputOf("t", "new", sent) };
      const started = runner.start({ ...request, cut: ["r4-a"] });
      await started.ended;
      const whole = [...all.slice(0, 8), edited ? user("r4-u", "other words") : all[8]!];
      expect(given).toEqual(whole);
      expect(await runner.getThreadMessages("t")).toEqual([...whole, { id: "new-a", role: "assistant", content: "" }]);
      expect(await runner.getRun("new")).toMatchObject({ prevRunIndex: 3 });
    },
  );

  test("a sender that goes on from the last messages continues the path; one that knows of none is as it was", async () => {
    const runner = makeOne();
    await withRuns(runner, 3);
    const all = await runner.getThreadMessages("t");
    const start = async (runId: string, sent: Message[]): Promise<void> => {
      const request = { threadId: "t", agentId: "test", agent: agentOf(counter(1)) };
      await runner.start({ ...request, input: inputOf("t", runId, sent), cut: [] }).ended;
    };
    await start("on", [...all.slice(4), user("on-u")]);
    expect(await runner.getRun("on")).toMatchObject({ prevRunIndex: 2 });
    expect(idsOf(await runner.getThreadMessages("t"))).toEqual([...idsOf(all), "on-u", "on-a"]);
    await start("alone", [user("alone-u")]);
    expect(await runner.getRun("alone")).toMatchObject({ prevRunIndex: 3 });
  });
});

test("a page shows what a dead host left, also where that cannot be written (L9, L10)", async () => {
  const dbName = freshDb();
  const manager = inProcessLockManager();
  const { locks, die } = mortalLocks(manager);
  const holder = makeRunner({ dbName, locks });
  await withRuns(holder, 2);
  const running = run(holder, "live", agentOf(silent));
  running.catch(() => undefined);
  await vi.waitFor(async () => expect((await holder.getThreadMessages("t")).length).toBe(6));
  const other = makeRunner({ dbName, locks: locksOf(manager) });
  await die();
  await vi.waitFor(async () => expect(await other.getRun("live")).toMatchObject({ status: "broken" }));
  const freeSpace = fullDisk();
  expect(idsOf(joined(await pagesOf(other, 4)))).toEqual(["r0-u", "r0-a", "r1-u", "r1-a", "live-u", "live-a"]);
  expect(idsOf(await rebuilt((await preludeOf(other, 3)).events))).toEqual(["r1-a", "live-u", "live-a"]);
  freeSpace();
  expect(idsOf(joined(await pagesOf(other, 4)))).toEqual(["r0-u", "r0-a", "r1-u", "r1-a", "live-u", "live-a"]);
});

test("what is read of the log for the last messages does not grow with the thread (L16)", async () => {
  const costs = [];
  for (const runs of [30, 150]) {
    const dbName = freshDb();
    const writer = makeRunner({ dbName });
    await withRuns(writer, runs);
    await writer.close();
    const reader = makeRunner({ dbName });
    await reader.opened;
    const reads = countReads();
    await preludeOf(reader, 10);
    const attached = reads.stop();
    const paging = countReads();
    await reader.getMessagePage("t", { before: `r${runs - 8}-u`, limit: 10 });
    costs.push([attached, paging.stop()]);
  }
  expect(costs[0]).toEqual(costs[1]);
  expect(costs[0]!.map(({ values }) => values < 40)).toEqual([true, true]);
});

test("nor does it where a message was edited, once the thread has been read (L16)", async () => {
  const costs = [];
  for (const runs of [30, 150]) {
    const dbName = freshDb();
    const writer = makeRunner({ dbName });
    await withRuns(writer, 2);
    const edited = { threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "edited"), branchBefore: "r1-u" };
    await collect(writer.run(edited));
    for (let n = 3; n < runs; n++) await run(writer, `r${n}`);
    const reader = makeRunner({ dbName });
    await preludeOf(reader, 10);
    await run(writer, "next");
    const reads = countReads();
    await preludeOf(reader, 10);
    await reader.getMessagePage("t", { before: `r${runs - 8}-u`, limit: 10 });
    costs.push(reads.stop());
  }
  expect(costs[0]).toEqual(costs[1]);
});

test("what a run reads of the log does not grow with its thread (L15)", async () => {
  const costs = [];
  for (const runs of [30, 150]) {
    const runner = makeRunner();
    await withRuns(runner, runs);
    const reads = countReads();
    await run(runner, "next");
    costs.push(reads.stop());
  }
  expect(costs[0]).toEqual(costs[1]);
});
