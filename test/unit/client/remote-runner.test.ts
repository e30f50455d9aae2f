import { EventType } from "@ag-ui/client";
import { filter, firstValueFrom, map, mergeMap, take, type Observable } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { RemoteRunner } from "../../../src/client/remote-runner.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  freshDb,
  gated,
  inputOf,
  makeRunner,
  textOf,
  user,
} from "../runner/kit.js";
import { makeHost, STEPS } from "./kit.js";

const agent = { agentId: "counter" };

/** A run of {@link makeHost} that waits in the middle until it is let on. */
const waiting = (threadId: string) => ({ threadId, agent, input: inputOf(threadId, "r", [user("u")]) });

const attachments = (runtime: RuntimeConnection): Observable<number> =>
  runtime.status$.pipe(mergeMap((status) => (status.is === "connected" ? [status.attachments] : [])));

const untilAttached = (runtime: RuntimeConnection, count: number): Promise<number> =>
  firstValueFrom(attachments(runtime).pipe(filter((now) => now === count)));

const untilRunning = (runner: RemoteRunner, threadId: string): Promise<void> =>
  vi.waitFor(async () => expect((await runner.getRunEvents("r", { threadId })).length).toBeGreaterThan(STEPS / 2));

test("a run that nobody listens to streams to nobody; who comes late reads it from its first event", async () => {
  const { connect, letOn } = makeHost();
  const runtime = connect();
  const runner = runtime.runner();
  const run$ = runner.run(waiting("t"));
  await untilRunning(runner, "t");
  await untilAttached(runtime, 0);
  const reading = collect(run$);
  await untilAttached(runtime, 1);
  letOn();
  const events = await reading;
  expect([events[0]?.type, textOf(events), events.at(-1)?.type]).toEqual([
    EventType.RUN_STARTED,
    counted(STEPS),
    EventType.RUN_FINISHED,
  ]);
  expect(await collect(run$)).toEqual(events);
});

test("several subscribers each get the run from its first event, whenever they came; leaving stops nothing (L11)", async () => {
  const { connect, letOn } = makeHost();
  const runner = connect().runner();
  const run$ = runner.run(waiting("t"));
  const [one, two] = [collect(run$), collect(run$)];
  run$.subscribe().unsubscribe();
  await firstValueFrom(run$);
  await untilRunning(runner, "t");
  const three = collect(run$);
  letOn();
  const all = await Promise.all([one, two, three, one.then(() => collect(run$))]);
  expect(all.map(textOf)).toEqual(all.map(() => counted(STEPS)));
  expect(all[0]![0]?.type).toBe(EventType.RUN_STARTED);
  expect(all[1]).toEqual(all[0]);
});

test("the run is what it was asked for at the call", async () => {
  const { connect, letOn } = makeHost();
  letOn();
  const runner = connect().runner();
  const request = waiting("t");
  const run$ = runner.run(request);
  request.input.messages.push(user("later"));
  request.input.runId = "another";
  const [started] = await collect(run$);
  expect(started).toMatchObject({ runId: "r", input: { messages: [{ id: "u" }] } });
});

test("who subscribes to a run when another branch is the thread's, gets the run all the same", async () => {
  const { connect, letOn } = makeHost();
  letOn();
  const runner = connect().runner();
  const run$ = runner.run({ threadId: "t", agent, input: inputOf("t", "r1", [user("a"), user("b")]) });
  const events = await collect(run$);
  await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r2", [user("c")]), branchBefore: "b" }));
  expect((await runner.getThreadMessages("t")).map(({ id }) => id)).toEqual(["a", "c", "r2-a"]);
  expect(await collect(run$)).toEqual(events);
});

test("who subscribes to a run that was deleted is told so, and nothing is run again", async () => {
  const { connect, letOn } = makeHost();
  letOn();
  const runner = connect().runner();
  const run$ = runner.run(waiting("t"));
  await collect(run$);
  expect(await runner.clearThreads()).toBe(1);
  await expect(collect(run$)).rejects.toMatchObject({ code: "deleted" });
  expect(await runner.listThreads()).toEqual([]);
});

test("what is refused errors the Observable, for each subscriber", async () => {
  const runner = makeHost().connect().runner();
  const first = runner.run(waiting("t"));
  await firstValueFrom(first);
  const codes = {
    "thread-busy": runner.run({ threadId: "t", agent, input: inputOf("t", "other") }),
    "unknown-agent": runner.run({ threadId: "x", agent: { agentId: "nobody" }, input: inputOf("x", "r") }),
    "invalid-input": runner.run({ threadId: "x", agent: {}, input: inputOf("x", "r") }),
    "run-exists": runner.run({ threadId: "t", agent, input: inputOf("t", "r", [user("else")]) }),
  };
  for (const [code, refused$] of Object.entries(codes)) {
    await expect(collect(refused$), code).rejects.toMatchObject({ name: "RunnerError", code });
    await expect(collect(refused$), code).rejects.toMatchObject({ name: "RunnerError", code });
  }
  const forwardedProps = { no: (): void => undefined };
  const notPlain = { ...inputOf("x", "r"), forwardedProps };
  await expect(collect(runner.run({ threadId: "x", agent, input: notPlain }))).rejects.toMatchObject({
    code: "invalid-input",
  });
  await expect(collect(runner.run({ threadId: "", agent, input: inputOf("", "r") }))).rejects.toMatchObject({
    code: "invalid-input",
  });
  await expect(runner.getRun("")).rejects.toMatchObject({ code: "invalid-input" });
  await expect(runner.listRuns("")).rejects.toMatchObject({ code: "invalid-input" });
  expect(await runner.stop({ threadId: "t", runId: "r" })).toBe(true);
});

test("a run whose caller waited no longer streams to nobody", async () => {
  const { gate, letOn } = gated();
  const host = serveRuntime({
    dbName: freshDb(),
    stopGraceMs: 50,
    agents: { counter: () => gate.then(() => agentOf(counter(9, () => new Promise(() => undefined)))) },
  });
  onTestFinished(() => host.close());
  const hosts = { page: async () => host.connect() };
  const watching = connectRuntime({ hosts });
  const runtime = connectRuntime({ hosts, callTimeoutMs: 3_000 });
  onTestFinished(async () => {
    await runtime.close();
    await watching.close();
  });
  await untilAttached(watching, 0);
  const run = { threadId: "t", agent, input: inputOf("t", "r") };
  await expect(collect(runtime.runner().run(run))).rejects.toMatchObject({ code: "timeout" });
  letOn();
  await vi.waitFor(async () => expect(await watching.runner().isRunning(run)).toBe(true));
  const reading = watching.runner().connect({ threadId: "t", follow: true }).subscribe();
  await untilAttached(watching, 1);
  reading.unsubscribe();
  await untilAttached(watching, 0);
});

test("a follower goes on in the next host, with its runs, and in order", async () => {
  const dbName = freshDb();
  const open = () => serveRuntime({ dbName, stopGraceMs: 50, agents: { counter: agentOf(counter(3)) } });
  let host = open();
  onTestFinished(() => host.close());
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(() => runtime.close());
  const runner = runtime.runner();
  const starts$ = runner.connect({ threadId: "t", follow: true }).pipe(
    filter(({ type }) => type === EventType.RUN_STARTED),
    map((event) => event["runId"]),
  );
  const starts = collect(starts$.pipe(take(3)) as Observable<never>);
  await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r1") }));
  const before = host;
  host = open();
  await before.close();
  await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r2") }));
  // Of a host that the tab has nothing to do with.
  const other = makeRunner({ dbName });
  await collect(other.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", "r3") }));
  expect(await starts).toEqual(["r1", "r2", "r3"]);
});

test("a tab that is closed errors what it reads", async () => {
  const { connect } = makeHost();
  const runtime = connect();
  const runner = runtime.runner();
  await firstValueFrom(runner.run(waiting("t")));
  const reading = collect(runner.connect({ threadId: "t", follow: true }));
  const noted = expect(reading).rejects.toMatchObject({ code: "closed" });
  await untilAttached(runtime, 1);
  await runtime.close();
  await noted;
  await expect(collect(runner.run(waiting("t")))).rejects.toMatchObject({ code: "closed" });
  await expect(runner.isRunning({ threadId: "t" })).rejects.toMatchObject({ code: "closed" });
});

const asked = { threadId: "t", agent, input: inputOf("t", "r") };
test.each<[string, (runner: RemoteRunner) => unknown]>([
  ["request", (runner) => collect(runner.run(undefined as never))],
  ["threadId", (runner) => collect(runner.run({ ...asked, threadId: 5 as never }))],
  ["input", (runner) => collect(runner.run({ ...asked, input: null as never }))],
  ["runId", (runner) => collect(runner.run({ ...asked, input: { ...asked.input, runId: "" } }))],
  ["input.messages", (runner) => collect(runner.run({ ...asked, input: { ...asked.input, messages: "" as never } }))],
  ["request", (runner) => collect(runner.connect(undefined as never))],
  ["threadId", (runner) => collect(runner.connect({ threadId: "" }))],
  ["request", (runner) => runner.stop(undefined as never)],
  ["threadId", (runner) => runner.stop({ threadId: null as never })],
  ["threadId", (runner) => runner.isRunning({} as never)],
  ["threadId", (runner) => runner.getThreadMessages(undefined as never)],
  ["threadId", (runner) => runner.getThreadEvents("")],
  ["threadId", (runner) => runner.getThreadState(5 as never)],
  ["threadId", (runner) => runner.getThread({} as never)],
  ["threadId", (runner) => runner.listRuns(null as never)],
  ["threadId", (runner) => runner.updateThread("", {})],
  ["threadId", (runner) => runner.deleteThread(Symbol("t") as never)],
])("without a host, a wrong %s is what is told of, and never thrown (%#)", async (field, ask) => {
  const runtime = connectRuntime({ hosts: {} });
  onTestFinished(() => runtime.close());
  const answer = Promise.resolve(ask(runtime.runner()));
  await expect(answer).rejects.toMatchObject({ code: "invalid-input", details: { field } });
});
