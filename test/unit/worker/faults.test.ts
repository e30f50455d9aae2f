import { systemClock } from "../../../src/platform/clock.js";
import { firstValueFrom, filter, NEVER, Subject } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import type { OpenChannel } from "../../../src/platform/channel.js";
import { defaultLocks, locksOf, type Locks } from "../../../src/platform/locks.js";
import { hostLifeLockName } from "../../../src/platform/names.js";
import { RunnerError } from "../../../src/run/errors.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { sendFrames } from "../../../src/wire/send-frames.js";
import { PROTOCOL_VERSION, type Frame, type RuntimeStatus, type ThreadChange } from "../../../src/wire/shapes.js";
import { RunnerHome } from "../../../src/runtime/runner-home.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import {
  agentOf,
  collect,
  counter,
  fastClock,
  framesUntil,
  fullDisk,
  gated,
  freshDb,
  inputOf,
  makeRunner,
  mortalLocks,
  silent,
} from "../runner/kit.js";

const live = (runner: LocalAgentRunner, threadId = "t"): Promise<void> =>
  vi.waitFor(async () => expect(await runner.isRunning({ threadId })).toBe(true));

test("a follower whose look for the holder fails goes on with the live run (L2, L10)", async () => {
  const dbName = freshDb();
  const inner = locksOf(inProcessLockManager());
  let failures = 0;
  const failingOnce: Locks = {
    ...inner,
    tryHold: (name) =>
      failures++ === 0 ? Promise.reject(new RunnerError("storage-lost", { dbName })) : inner.tryHold(name),
  };
  const holder = makeRunner({ dbName, locks: inner });
  const other = makeRunner({ dbName, locks: failingOnce, clock: fastClock(20) });
  const { gate, letOn } = gated();
  const run = collect(
    holder.run({
      threadId: "t",
      agent: agentOf(counter(4, (s) => (s === 2 ? gate : undefined))),
      input: inputOf("t", "r"),
    }),
  );
  await live(other);
  const reading = framesUntil(
    other,
    { threadId: "t", follow: true },
    ({ type }) => type === "settled" || type === "lost",
  );
  await vi.waitFor(() => expect(failures).toBeGreaterThan(0));
  letOn();
  await run;
  expect((await reading).at(-1)).toMatchObject({ type: "settled", status: "finished" });
});

test("a run that was stopped while the disk was full ends as stopped once there is room (L12)", async () => {
  const runner = makeRunner();
  const run = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
  run.catch(() => undefined);
  await vi.waitFor(async () => expect((await runner.getThreadMessages("t")).length).toBe(2));
  const freeSpace = fullDisk();
  expect(await runner.stop({ threadId: "t", runId: "r" })).toBe(true);
  await expect(run).rejects.toMatchObject({ code: "quota-exceeded" });
  freeSpace();
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") }));
  expect(await runner.getRun("r")).toMatchObject({ status: "stopped" });
});

test("a reader without credit that detaches while its next frame is read leaves nothing behind (L14)", async () => {
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port2.close());
  const ended = new AbortController();
  let closed = false;
  async function* frames(): AsyncGenerator<Frame, void> {
    try {
      for (let n = 0; ; n++) {
        if (n === 20) {
          await Promise.resolve();
          // The tab goes while the log is read.
          ended.abort();
        }
        yield { type: "idle" };
      }
    } finally {
      closed = true;
    }
  }
  void sendFrames(port1, () => frames(), ended.signal);
  await vi.waitFor(() => expect(closed).toBe(true));
});

test("a tab that took its host for dead and comes back to it counts once (L14)", async () => {
  const host = serveRuntime({ dbName: freshDb(), agents: { counter: agentOf(counter(1)) } });
  const ports: MessagePort[] = [];
  const runtime = connectRuntime({
    hosts: {
      page: async () => {
        const port = host.connect();
        ports.push(port);
        return port;
      },
    },
  });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const statuses: RuntimeStatus[] = [];
  runtime.status$.subscribe((s) => statuses.push(s));
  await firstValueFrom(runtime.status$.pipe(filter(({ is }) => is === "connected")));
  ports[0]!.dispatchEvent(new MessageEvent("message", { data: { type: "gone" } }));
  await vi.waitFor(() => expect(ports).toHaveLength(2));
  await firstValueFrom(runtime.status$.pipe(filter(({ is }) => is === "connected")));
  expect(statuses.at(-1)).toMatchObject({ is: "connected", tabs: 1 });
});

test("a runner that is let go of while it opens holds nothing (DESIGN 4.7)", async () => {
  const dbName = freshDb();
  const host = new RunnerHome({ dbName });
  const opening = host.openLocal();
  host.letGo();
  const runner = await opening.catch(() => undefined);
  onTestFinished(() => runner?.close());
  if (runner === undefined) return;
  const free = defaultLocks()!.whenFree(hostLifeLockName(dbName, runner.hostId), AbortSignal.timeout(500));
  expect(await free).toBe(true);
});

test("a host that was closed before its first tab came stays closed (L13)", async () => {
  const host = serveRuntime({ dbName: freshDb(), agents: {} });
  await host.close();
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(() => runtime.close());
  await expect(runtime.threads.list()).rejects.toMatchObject({ code: "closed" });
});

test("a host that ends each time that it has said hello is not started in a hot loop (L13)", async () => {
  /** How many starts there had been when a pause of so many ms began. */
  const startsBefore = new Map<number, number>();
  const { after } = systemClock;
  const clock = vi.spyOn(systemClock, "after").mockImplementation((ms, signal) => {
    if (!startsBefore.has(ms)) startsBefore.set(ms, starts);
    return after(ms, signal);
  });
  onTestFinished(() => clock.mockRestore());
  let starts = 0;
  const hello = { type: "hello", protocol: PROTOCOL_VERSION, hostId: "h", dbName: "db", kind: "page", agents: [] };
  const runtime = connectRuntime({
    hosts: {
      page: async () => {
        starts++;
        const { port1, port2 } = new MessageChannel();
        const api = new MessageChannel();
        port1.postMessage({ ...hello, exclusion: "locks", port: api.port2 }, [api.port2]);
        port1.postMessage({ type: "gone" });
        return port2;
      },
    },
  });
  onTestFinished(() => runtime.close());
  // Each pause is longer than the one before it, and a start follows each; two starts need none.
  await vi.waitFor(() => expect([...startsBefore.keys()]).toContain(400));
  for (const [n, ms] of [100, 200, 400].entries()) expect(startsBefore.get(ms)).toBeLessThanOrEqual(n + 3);
});

test("a stop that could not be written and took the run from its frozen holder was done (L11)", async () => {
  const dbName = freshDb();
  const { locks } = mortalLocks();
  const mute: OpenChannel = () => ({ post: () => undefined, messages$: new Subject(), close: () => undefined });
  const holder = makeRunner({ dbName, locks, openChannel: mute });
  const other = makeRunner({ dbName, locks, openChannel: mute, clock: fastClock(20) });
  collect(holder.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") })).catch(() => undefined);
  await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(true));
  const { transaction } = IDBDatabase.prototype;
  let failed = false;
  const spy = vi.spyOn(IDBDatabase.prototype, "transaction").mockImplementation(function (
    this: IDBDatabase,
    ...request
  ) {
    if (request[1] === "readwrite" && !failed) {
      failed = true;
      throw new DOMException("", "QuotaExceededError");
    }
    return transaction.apply(this, request);
  });
  onTestFinished(() => spy.mockRestore());
  const stopped = await other.stop({ threadId: "t", runId: "r" }).catch((e: RunnerError) => e.code);
  expect(stopped).toBe(true);
});

test("who follows a run that is deleted with its thread before the end was read is told (L2)", async () => {
  const dbName = freshDb();
  const deaf = { post: () => undefined, messages$: NEVER, close: () => undefined };
  const holder = makeRunner({ dbName });
  const other = makeRunner({ dbName, openChannel: () => deaf, clock: fastClock(20) });
  const run = collect(holder.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
  run.catch(() => undefined);
  await vi.waitFor(async () => expect(await holder.getThreadMessages("t")).toHaveLength(2));
  const frames: Frame[] = [];
  const reading = framesUntil(other, { threadId: "t", follow: true }, (f) => {
    frames.push(f);
    return f.type === "prelude" && f.cursor.runIndex < 0;
  });
  await vi.waitFor(() => expect(frames.length).toBeGreaterThan(0));
  expect(await holder.clearThreads()).toBe(1);
  expect((await reading).at(-1)).toMatchObject({ type: "prelude", cursor: { runIndex: -1 } });
});

test("who watches threads is told to list them again after a time without a host (DESIGN 7)", async () => {
  const dbName = freshDb();
  const clearer = makeRunner({ dbName });
  await collect(clearer.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r") }));
  let host = serveRuntime({ dbName, agents: {} });
  const changes: ThreadChange[] = [];
  const old = host;
  let wait = Promise.resolve() as Promise<unknown>;
  const runtime = connectRuntime({ hosts: { page: async () => (await wait, host.connect()) } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  runtime.threads.watch().subscribe((c) => changes.push(c));
  expect(await runtime.threads.list()).toHaveLength(1);
  host = serveRuntime({ dbName, agents: {} });
  wait = clearer.clearThreads();
  await old.close();
  await firstValueFrom(runtime.status$.pipe(filter(({ is }) => is === "reconnecting" || is === "connected")));
  await wait;
  await runtime.threads.list();
  await vi.waitFor(() => expect(changes).toContainEqual({ type: "anew" }));
});

test("a list that cannot be read once is no reason to drop the host (L13)", async () => {
  const dbName = freshDb();
  const runner = makeRunner({ dbName });
  const host = serveRuntime({ runner, agents: {} });
  const ports: MessagePort[] = [];
  const runtime = connectRuntime({ hosts: { page: async () => (ports.push(host.connect()), ports.at(-1)!) } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  await firstValueFrom(runtime.status$.pipe(filter(({ is }) => is === "connected")));
  const statuses: RuntimeStatus[] = [];
  runtime.status$.subscribe((s) => statuses.push(s));
  vi.spyOn(runner, "listThreads").mockRejectedValueOnce(new RunnerError("storage-lost"));
  ports[0]!.dispatchEvent(new MessageEvent("message", { data: { type: "gone" } }));
  const seen = (): string[] => statuses.map(({ is }) => is);
  await vi.waitFor(() => expect(seen()).toContain("reconnecting"));
  await vi.waitFor(() => expect(seen().at(-1)).toBe("connected"));
  await expect(runtime.threads.list()).rejects.toMatchObject({ code: "storage-lost" });
  expect(await runtime.threads.list()).toEqual([]);
  expect(seen()).not.toContain("failed");
});

test("a start that fails once is tried again for who only watches (L13)", async () => {
  const host = serveRuntime({ dbName: freshDb(), agents: {} });
  let n = 0;
  const runtime = connectRuntime({
    hosts: {
      page: async () => {
        if (n++ === 0) throw new Error("once");
        return host.connect();
      },
    },
  });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  await vi.waitFor(async () => expect((await firstValueFrom(runtime.status$)).is).toBe("connected"));
});

test("a run that is over and whose end is owed is not listed as live (L10)", async () => {
  const runner = makeRunner();
  const run = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
  run.catch(() => undefined);
  await vi.waitFor(async () => expect((await runner.getThreadMessages("t")).length).toBe(2));
  fullDisk();
  await runner.stop({ threadId: "t", runId: "r" });
  await expect(run).rejects.toMatchObject({ code: "quota-exceeded" });
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  expect((await runner.listThreads())[0]).not.toHaveProperty("live");
});
