import type { EndedRun, MeasuredRun, RuntimeFailure, RuntimeMetrics } from "ag-ui-local-runtime/runtime";
import { describe, expect, test, vi } from "vitest";
import { inputOf, makeRunner } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { WAYS } from "./ways.js";

/** A class, as such hooks often are: they need their `this`. */
class Recorder implements RuntimeMetrics {
  readonly started: MeasuredRun[] = [];
  readonly ended: EndedRun[] = [];
  readonly live: number[] = [];
  readonly failures: RuntimeFailure[] = [];

  runStarted(run: MeasuredRun): void {
    this.started.push(run);
  }
  runEnded(run: EndedRun): void {
    this.ended.push(run);
  }
  liveThreads(count: number): void {
    this.live.push(count);
  }
  error(failure: RuntimeFailure): void {
    this.failures.push(failure);
  }
}

describe.each(WAYS)("metrics, $name", (way) => {
  test("tell of a run: its start, its end with its duration and events, the live threads", async () => {
    const metrics = new Recorder();
    const runtime = runtimeWith({ metrics });
    const caller = await way.open(runtime);
    await caller.run("counter", inputOf("t", "r"));
    await vi.waitFor(() => expect(metrics.live).toEqual([1, 0]));
    const run = { threadId: "t", runId: "r", agentId: "counter" };
    // RUN_STARTED, START, three deltas, END, RUN_FINISHED.
    expect(metrics.started).toEqual([run]);
    expect(metrics.ended).toEqual([{ ...run, status: "finished", events: 7, durationMs: expect.any(Number) }]);
    expect(metrics.ended[0]!.durationMs).toBeGreaterThanOrEqual(0);
    expect(metrics.failures).toEqual([]);
  });

  test("tell of a run once that two ask for", async () => {
    const metrics = new Recorder();
    const caller = await way.open(runtimeWith({ metrics }));
    await Promise.all(["r", "r"].map((runId) => caller.run("counter", inputOf("t", runId))));
    await caller.run("counter", inputOf("t", "r"));
    await vi.waitFor(() => expect(metrics.live).toEqual([1, 0]));
    expect(metrics.started.length).toBe(1);
    expect(metrics.ended.length).toBe(1);
  });

  test("tell how a run ended", async () => {
    const metrics = new Recorder();
    const runner = makeRunner({ onConcurrentRun: "supersede" });
    const caller = await way.open(runtimeWith({ metrics, runner }));
    await caller.run("failing", inputOf("t", "r1"));
    await caller.runAndLeave("silent", inputOf("t", "r2"));
    await caller.runAndLeave("silent", inputOf("t", "r3"));
    await caller.stop("silent", "t");
    await vi.waitFor(() => expect(metrics.ended.length).toBe(3));
    expect(Object.fromEntries(metrics.ended.map(({ runId, status }) => [runId, status]))).toEqual({
      r1: "errored",
      r2: "superseded",
      r3: "stopped",
    });
    expect(metrics.failures).toEqual([]);
  });

  test("tell of threads that are live at once", async () => {
    const metrics = new Recorder();
    const runtime = runtimeWith({ metrics });
    const caller = await way.open(runtime);
    await caller.runAndLeave("silent", inputOf("t1", "r"));
    await caller.runAndLeave("silent", inputOf("t2", "r"));
    expect(metrics.live).toEqual([1, 2]);
    expect(await runtime.health()).toMatchObject({ status: "ok", liveThreads: 2 });
  });

  test("tell of requests that failed", async () => {
    const metrics = new Recorder();
    const caller = await way.open(runtimeWith({ metrics }));
    await expect(caller.run("nobody", inputOf("t", "r"))).rejects.toMatchObject({ status: 404 });
    expect(metrics.failures).toEqual([
      { path: "/agent/nobody/run", error: expect.objectContaining({ code: "unknown-agent" }) },
    ]);
  });

  test("whose hooks throw change nothing", async () => {
    const fail = (): never => {
      throw new Error("the hook failed");
    };
    const metrics: RuntimeMetrics = { runStarted: fail, runEnded: fail, liveThreads: fail, error: fail };
    const runtime = runtimeWith({ metrics });
    const caller = await way.open(runtime);
    expect((await caller.run("counter", inputOf("t", "r"))).length).toBeGreaterThan(0);
    await expect(caller.run("nobody", inputOf("t", "r"))).rejects.toMatchObject({ status: 404 });
    await vi.waitFor(async () => expect(await runtime.health()).toMatchObject({ liveThreads: 0 }));
  });

  test("that are not there leave the live threads counted", async () => {
    const runtime = runtimeWith();
    const caller = await way.open(runtime);
    await caller.runAndLeave("silent", inputOf("t", "r"));
    expect(await runtime.health()).toMatchObject({ liveThreads: 1 });
    await caller.stop("silent", "t");
    await vi.waitFor(async () => expect(await runtime.health()).toMatchObject({ liveThreads: 0 }));
  });
});
