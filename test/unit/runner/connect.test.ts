import { EventType, verifyEvents, type BaseEvent } from "@ag-ui/client";
import { firstValueFrom, lastValueFrom, Subject, takeWhile, tap, toArray } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ConnectedEvents, Replay } from "../../../src/run/contract.js";
import type { Cursor } from "../../../src/run/types.js";
import { eventsOfFrame } from "../../../src/wire/frames.js";
import type { Frame } from "../../../src/wire/shapes.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  freshDb,
  fullDisk,
  gated,
  inputOf,
  makeRunner,
  PRESETS,
  rawAgent,
  rebuild,
  replay,
  textOf,
  user,
} from "./kit.js";

const run = (runner: LocalAgentRunner, runId: string, n = 3): Promise<BaseEvent[]> =>
  collect(runner.run({ threadId: "t", agent: agentOf(counter(n)), input: inputOf("t", runId) }));

const runIds = (events: readonly BaseEvent[]): unknown[] =>
  events.filter(({ type }) => type === EventType.RUN_STARTED).map((event) => event["runId"]);

describe.each(PRESETS)("connect of %s", (_name, make) => {
  test("from a cursor: only what comes after it, without gap or overlap (L2)", async () => {
    const runner = make();
    await run(runner, "r1");
    const [first] = await lastValueFrom(runner.connectWithCursor({ threadId: "t" }).pipe(toArray()));
    expect(await collect(runner.connect({ threadId: "t", after: first!.cursor }))).toEqual([]);

    const { gate, letOn } = gated();
    const slow = agentOf(counter(6, (step) => (step === 3 ? gate : undefined)));
    const run$ = runner.run({ threadId: "t", agent: slow, input: inputOf("t", "r2") });
    const parts: ConnectedEvents[] = [];
    const soFar = (): BaseEvent[] => parts.flatMap(({ events }) => [...events]);
    const reading = runner
      .connectWithCursor({ threadId: "t", after: first!.cursor, follow: true })
      .subscribe((part) => parts.push(part));
    await vi.waitFor(() => expect(textOf(soFar())).toBe(counted(3)));
    reading.unsubscribe();
    letOn();
    await collect(run$);
    await run(runner, "r3");
    const { cursor } = parts.at(-1)!;
    const rest = await collect(runner.connect({ threadId: "t", after: cursor }));
    expect(runIds([...soFar(), ...rest])).toEqual(["r2", "r3"]);
    const all = [...first!.events, ...soFar(), ...rest];
    expect(await rebuild(all)).toEqual(await rebuild(await replay(runner, "t")));
  });

  test("as soon as a run is running it is read, also before it is in the log (L2)", async () => {
    const runner = make();
    await run(runner, "r1");
    const running = run(runner, "r2");
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
    const [all, last] = await Promise.all(
      [{}, { replay: "last-run" as const }].map((how) => collect(runner.connect({ threadId: "t", ...how }))),
    );
    await running;
    expect(runIds(all!)).toEqual(["r1", "r2"]);
    expect(runIds(last!)).toEqual(["r2"]);
  });

  test("of the last run: its own events from the first, live or settled, and nothing before", async () => {
    const runner = make();
    expect(await collect(runner.connect({ threadId: "t", replay: "last-run" }))).toEqual([]);
    await run(runner, "r1");
    const own = await run(runner, "r2");
    const lastRun = (): Promise<BaseEvent[]> =>
      lastValueFrom(runner.connect({ threadId: "t", replay: "last-run" }).pipe(verifyEvents(), toArray()));
    const settled = await lastRun();
    expect([runIds(settled), textOf(settled), settled.at(-1)]).toEqual([["r2"], counted(3), own.at(-1)]);

    const { gate, letOn } = gated();
    const slow = agentOf(counter(6, (step) => (step === 3 ? gate : undefined)));
    await firstValueFrom(runner.run({ threadId: "t", agent: slow, input: inputOf("t", "r3") }));
    const live = lastRun();
    letOn();
    expect([runIds(await live), textOf(await live)]).toEqual([["r3"], counted(6)]);
  });

  test("from a cursor that leads nowhere: a snapshot, which replaces what the reader has", async () => {
    const runner = make();
    await run(runner, "r1");
    const [part] = await lastValueFrom(runner.connectWithCursor({ threadId: "t" }).pipe(toArray()));
    const { runIndex, seq, epoch } = part!.cursor;
    const nowhere: Cursor[] = [
      { runIndex: runIndex + 1, seq, epoch },
      { runIndex, seq, epoch: epoch + 1 },
    ];
    for (const after of nowhere) {
      const events = await collect(runner.connect({ threadId: "t", after }).pipe(verifyEvents()));
      expect(events.map(({ type }) => type)).toContain(EventType.MESSAGES_SNAPSHOT);
      expect(await rebuild([...part!.events, ...events])).toEqual(await rebuild(await replay(runner, "t")));
    }
  });

  test("by snapshot: messages and state in one event each", async () => {
    const runner = make();
    await run(runner, "r1");
    await run(runner, "r2");
    const events = await collect(runner.connect({ threadId: "t", replay: "snapshot" }).pipe(verifyEvents()));
    expect(events.map(({ type }) => type)).toEqual([
      EventType.RUN_STARTED,
      EventType.STATE_SNAPSHOT,
      EventType.MESSAGES_SNAPSHOT,
      EventType.RUN_FINISHED,
    ]);
    expect(await rebuild(events)).toEqual(await rebuild(await replay(runner, "t")));
  });

  test.each<Replay>(["events", "snapshot", "last-run"])(
    "that follows (%s) goes on with each later run, as one valid sequence, and with none twice (L3)",
    async (how) => {
      const runner = make();
      await run(runner, "r1");
      const starts: unknown[] = [];
      const following = lastValueFrom(
        runner.connect({ threadId: "t", replay: how, follow: true }).pipe(
          verifyEvents(),
          tap((event) => starts.push(...runIds([event]))),
          takeWhile((event) => event.type !== EventType.RUN_FINISHED || event["runId"] !== "r3", true),
          toArray(),
        ),
      );
      await vi.waitFor(() => expect(starts).toEqual(["r1"]));
      await run(runner, "r2");
      await run(runner, "r3");
      expect(await rebuild(await following)).toEqual(await rebuild(await replay(runner, "t")));
      expect(starts).toEqual(["r1", "r2", "r3"]);
    },
  );

  test("that follows is shown a new branch as a snapshot, not on top of the old one", async () => {
    const runner = make();
    await run(runner, "r1");
    const seen: BaseEvent[] = [];
    const reading = runner.connect({ threadId: "t", follow: true }).subscribe((event) => seen.push(event));
    await vi.waitFor(() => expect(runIds(seen)).toEqual(["r1"]));
    const other = inputOf("t", "r2", [user("edited")]);
    await collect(
      runner.run({ threadId: "t", agent: agentOf(counter(3)), input: { ...other, messages: [user("r1-u", "else")] } }),
    );
    await vi.waitFor(() => expect(runIds(seen)).toContain("r2"));
    await vi.waitFor(() => expect(seen.at(-1)?.type).toBe(EventType.RUN_FINISHED));
    reading.unsubscribe();
    expect(await rebuild(seen)).toEqual(await rebuild(await replay(runner, "t")));
  });

  test.each(["settled", "live"])(
    "whoever shows the reasoning of a branch that was left does not keep it, and sees nothing else go meanwhile (%s; L2)",
    async (how) => {
      const runner = make();
      await run(runner, "r1");
      const thinks = agentOf(async function* () {
        yield { type: EventType.REASONING_MESSAGE_START, messageId: "thought", role: "reasoning" };
        yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId: "thought", delta: "hm" };
        yield { type: EventType.REASONING_MESSAGE_END, messageId: "thought" };
      });
      await collect(runner.run({ threadId: "t", agent: thinks, input: inputOf("t", "r2") }));
      const { cursor } = await lastValueFrom(runner.connectWithCursor({ threadId: "t" }));
      const held = await rebuild(await replay(runner, "t"));
      await runner.activateRun("t", "r1");
      const { gate, letOn } = gated();
      const slow = agentOf(counter(4, (step) => (step === 2 ? gate : undefined)));
      if (how === "live") {
        const live = collect(runner.run({ threadId: "t", agent: slow, input: inputOf("t", "r3") }));
        onTestFinished(() => void live);
      }
      const seen: BaseEvent[] = [];
      const reading = lastValueFrom(
        runner.connect({ threadId: "t", after: cursor }).pipe(
          verifyEvents(),
          tap((event) => seen.push(event)),
        ),
      );
      if (how === "live") {
        await vi.waitFor(() => expect(seen.some(({ type }) => type === EventType.TEXT_MESSAGE_START)).toBe(true));
        letOn();
      }
      await reading;
      const truth = await rebuild(await replay(runner, "t"));
      const stays = ["r1-u", "r1-a"];
      expect(truth.messages.map(({ id }) => id)).toEqual(how === "live" ? [...stays, "r3-u", "r3-a"] : stays);
      const shown: (readonly string[])[] = [];
      const after = await rebuild(seen, held.messages, (messages) => shown.push(messages.map(({ id }) => id)));
      expect(after).toEqual(truth);
      expect(shown.map((ids) => stays.filter((id) => !ids.includes(id)))).toEqual(shown.map(() => []));
    },
  );

  test("that follows is told of a thread that was deleted, and goes on with the new one", async () => {
    const runner = make();
    await run(runner, "r1");
    const seen: BaseEvent[] = [];
    const reading = runner
      .connect({ threadId: "t", follow: true })
      .pipe(verifyEvents())
      .subscribe((event) => seen.push(event));
    await vi.waitFor(() => expect(runIds(seen)).toEqual(["r1"]));
    await runner.clearThreads();
    await vi.waitFor(async () => expect(await rebuild(seen)).toEqual({ messages: [], state: {} }));
    await run(runner, "r2");
    await vi.waitFor(() => expect([runIds(seen).at(-1), seen.at(-1)?.type]).toEqual(["r2", EventType.RUN_FINISHED]));
    reading.unsubscribe();
    expect(await rebuild(seen)).toEqual(await rebuild(await replay(runner, "t")));
  });

  for (const what of ["by a cursor of it", "without a cursor"]) {
    test(`whoever still shows a deleted thread, ${what}, is told to forget it by a new run that has said nothing yet (L2)`, async () => {
      const runner = make();
      await run(runner, "r1");
      const { cursor } = await lastValueFrom(runner.connectWithCursor({ threadId: "t" }));
      const request = { threadId: "t", ...(what === "without a cursor" ? { holds: true } : { after: cursor }) };
      await runner.deleteThread("t");
      const started = new Subject<BaseEvent>();
      const asked = gated();
      const agent = rawAgent(() => {
        asked.letOn();
        return started;
      });
      const begun = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r2") }));
      await asked.gate;
      const shown: BaseEvent[] = [];
      const told = gated();
      const reading = (async () => {
        for await (const frame of runner.attach(request, new AbortController().signal)) {
          shown.push(...eventsOfFrame(frame));
          if (frame.type === "prelude") told.letOn();
        }
      })();
      await told.gate;
      expect(await rebuild(shown, [user("r1-u")])).toEqual({ messages: [], state: {} });
      started.next({ type: EventType.RUN_STARTED, threadId: "t", runId: "r2" });
      started.complete();
      await Promise.all([begun, reading]);
      expect(await rebuild(shown, [user("r1-u")])).toEqual(await rebuild(await replay(runner, "t")));
    });
  }

  test("one run of the log, from behind a cursor to its settled end, whatever came after it", async () => {
    const runner = make();
    const own = await run(runner, "r1");
    await run(runner, "r2");
    const { runIndex } = (await runner.getRun("r1"))!;
    const read = async (after?: Cursor): Promise<Frame[]> => {
      const frames: Frame[] = [];
      const asked = { threadId: "t", runId: "r1", ...(after && { after }) };
      for await (const frame of runner.attachRun(asked, new AbortController().signal)) frames.push(frame);
      return frames;
    };
    // How many chunks there are is a matter of time.
    const kinds = (frames: readonly Frame[]): unknown[] => [...new Set(frames.map(({ type }) => type))];
    const whole = await read();
    expect(kinds(whole)).toEqual(["run", "chunk", "settled", "end"]);
    const epoch = whole[0]?.type === "run" ? whole[0].run.epoch : -1;
    const rest = await read({ runIndex, seq: 2, epoch });
    const chunks = rest.flatMap((frame) => (frame.type === "chunk" ? [frame.chunk] : []));
    expect(kinds(rest)).toEqual(["chunk", "settled", "end"]);
    expect(chunks[0]?.firstSeq).toBe(3);
    expect(chunks.reduce((sum, { count }) => sum + count, 0)).toBe(own.length - 3);
    expect(kinds(await read({ runIndex, seq: own.length - 1, epoch }))).toEqual(["settled", "end"]);
    await expect(read({ runIndex: runIndex + 1, seq: 2, epoch })).rejects.toMatchObject({ code: "deleted" });
    await expect(read({ runIndex, seq: 2, epoch: epoch + 1 })).rejects.toMatchObject({ code: "deleted" });
    await runner.clearThreads();
    await expect(read()).rejects.toMatchObject({ code: "deleted" });
  });

  test.each(["attach", "attachRun"] as const)("a host that closes tells no end and no error (%s; L13)", async (how) => {
    const dbName = freshDb();
    const { gate, letOn } = gated();
    onTestFinished(letOn);
    const holder = make({ dbName });
    const live = holder.start({
      threadId: "t",
      agentId: "a",
      agent: agentOf(counter(4, (step) => (step === 2 ? gate : undefined))),
      input: inputOf("t", "r1"),
    });
    await live.started;
    const reader = make({ dbName });
    const told: string[] = [];
    const { signal } = new AbortController();
    const frames =
      how === "attach"
        ? reader.attach({ threadId: "t" }, signal)
        : reader.attachRun({ threadId: "t", runId: "r1" }, signal);
    for await (const { type } of frames) {
      if (type !== "run") void reader.close();
      told.push(type);
    }
    for (const type of ["settled", "end", "error"]) expect(told).not.toContain(type);
  });

  test("refuses what it does not know", () => {
    const runner = make();
    const bad: object[] = [
      { threadId: "" },
      { threadId: "t", replay: "all" },
      { threadId: "t", follow: "yes" },
      { threadId: "t", after: { runIndex: 0.5, seq: 0, epoch: 1 } satisfies Cursor },
    ];
    for (const request of bad) {
      // What a person who writes JavaScript can do.
      expect(() => runner.connect(request as { threadId: string })).toThrow(
        expect.objectContaining({ code: "invalid-input" }),
      );
    }
  });
});

test("a follower of plain events is told why the end of a run cannot be written, and nothing that is not in the log (L8)", async () => {
  const runner = makeRunner({ dbName: freshDb() });
  const { gate, letOn } = gated();
  const slow = agentOf(counter(6, (step) => (step === 3 ? gate : undefined)));
  runner.run({ threadId: "t", agent: slow, input: inputOf("t", "r1") }).subscribe({ error: () => undefined });
  const seen: BaseEvent[] = [];
  const reading = lastValueFrom(runner.connect({ threadId: "t", follow: true }).pipe(tap((event) => seen.push(event))));
  const refused = expect(reading).rejects.toMatchObject({ code: "quota-exceeded" });
  await vi.waitFor(() => expect(textOf(seen)).toBe(counted(3)));
  const thereIsRoom = fullDisk();
  letOn();
  await refused;
  expect(textOf(seen)).toBe(counted(3));
  thereIsRoom();
});
