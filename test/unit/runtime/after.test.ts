import { EventType, type BaseEvent } from "@ag-ui/client";
import {
  AgentRuntime,
  createRuntimeHandler,
  type AgentRuntimeOptions,
  type RuntimeFailure,
} from "ag-ui-local-runtime/runtime";
import { Observable, of } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import { agentOf, counter, gated, inputOf, makeRunner } from "../runner/kit.js";
import { recorder, runtimeWith, type Told } from "./kit.js";
import { connectedTab, WAYS, type Caller, type Way } from "./ways.js";

/** A caller of a runtime that tells of requests. */
async function observed(way: Way, options: Partial<AgentRuntimeOptions> = {}) {
  const { told, afterRequestMiddleware } = recorder();
  const runtime = runtimeWith({ afterRequestMiddleware, ...options });
  return { told, runtime, caller: await way.open(runtime) };
}

const runsOf = (told: readonly Told[]): readonly (string | undefined)[] =>
  told.flatMap(({ runId }) => (runId === undefined ? [] : [runId]));

/** Waits until so many requests were told of. */
const toldOf = (told: readonly Told[], count: number): Promise<void> =>
  vi.waitFor(() => expect(told.length).toBeGreaterThanOrEqual(count));

/** Everything that was told once one more request was told of. */
async function allTold(told: readonly Told[], caller: Caller): Promise<readonly Told[]> {
  await caller.list();
  await vi.waitFor(() => expect(told.at(-1)).toMatchObject({ texts: [] }));
  return told.slice(0, -1);
}

/** An agent that waits in the middle. */
function waiting() {
  const { gate, letOn } = gated();
  return { letOn, agents: { counter: agentOf(counter(3, (step) => (step === 1 ? gate : undefined))) } };
}

describe.each(WAYS)("afterRequestMiddleware, $name", (way) => {
  const runPath = "/agent/counter/run";

  test("is told of a run once it is settled, with its id and messages", async () => {
    const { told, caller } = await observed(way);
    await caller.run("counter", inputOf("t", "r"));
    await toldOf(told, 1);
    expect(await allTold(told, caller)).toEqual([
      { path: runPath, status: 200, threadId: "t", runId: "r", texts: ["0 1 2 "] },
    ]);
  });

  test("is told of a run that errored", async () => {
    const { told, caller } = await observed(way);
    await caller.run("failing", inputOf("t", "r"));
    await toldOf(told, 1);
    expect(told).toEqual([{ path: "/agent/failing/run", status: 200, threadId: "t", runId: "r", texts: [] }]);
  });

  test("is told of a run that was stopped, and of the stop", async () => {
    const { told, caller } = await observed(way);
    await caller.runAndLeave("silent", inputOf("t", "r"));
    expect(await caller.stop("silent", "t")).toBe(true);
    await toldOf(told, 2);
    expect(runsOf(told)).toEqual(["r"]);
  });

  test("is told of a run that was superseded, and of the one that came after it", async () => {
    const { told, caller } = await observed(way, {
      runner: makeRunner({ onConcurrentRun: "supersede" }),
    });
    await caller.runAndLeave("silent", inputOf("t", "r1"));
    await caller.run("counter", inputOf("t", "r2"));
    await toldOf(told, 2);
    expect(runsOf(told).toSorted()).toEqual(["r1", "r2"]);
  });

  test("is told of a run whose reader left once it is settled, with all of its messages", async () => {
    const { agents, letOn } = waiting();
    const { told, caller } = await observed(way, { agents });
    await caller.runAndLeave("counter", inputOf("t", "r"));
    await caller.list();
    await toldOf(told, 1);
    expect(runsOf(told)).toEqual([]);
    letOn();
    await toldOf(told, 2);
    expect(told.at(-1)).toEqual({ path: runPath, status: 200, threadId: "t", runId: "r", texts: ["0 1 2 "] });
  });

  test("is told of a run that found its thread busy, without an id", async () => {
    const { told, caller } = await observed(way);
    await caller.runAndLeave("silent", inputOf("t", "r1"));
    await expect(caller.run("counter", inputOf("t", "r2"))).rejects.toMatchObject({ status: 409 });
    await toldOf(told, 1);
    expect(told).toEqual([{ path: runPath, status: 409, texts: [] }]);
  });

  test("is told of a run of an unknown agent", async () => {
    const { told, caller } = await observed(way);
    await expect(caller.run("nobody", inputOf("t", "r"))).rejects.toMatchObject({ status: 404 });
    await toldOf(told, 1);
    expect(told).toEqual([{ path: "/agent/nobody/run", status: 404, texts: [] }]);
  });

  test("is told of a run whose agent could not be made", async () => {
    const { told, caller } = await observed(way, {
      agents: {
        broken: () => {
          throw new Error("not loaded");
        },
      },
    });
    await expect(caller.run("broken", inputOf("t", "r"))).rejects.toThrow();
    await toldOf(told, 1);
    expect(told).toEqual([{ path: "/agent/broken/run", status: 500, texts: [] }]);
  });

  test("is not told of a request that was refused before", async () => {
    let isOpen = false;
    const { told, caller } = await observed(way, {
      beforeRequestMiddleware: () => {
        if (!isOpen) throw { status: 401 };
      },
    });
    await expect(caller.run("counter", inputOf("t", "r1"))).rejects.toMatchObject({ status: 401 });
    isOpen = true;
    await caller.run("counter", inputOf("t", "r2"));
    await toldOf(told, 1);
    expect(runsOf(await allTold(told, caller))).toEqual(["r2"]);
  });

  test("is told of a reading of a thread, with the thread's messages", async () => {
    const { told, caller } = await observed(way);
    await caller.run("counter", inputOf("t", "r"));
    await toldOf(told, 1);
    await caller.connect("counter", "t");
    await toldOf(told, 2);
    expect(told[1]).toEqual({
      path: "/agent/counter/connect",
      status: 200,
      threadId: "t",
      texts: ["from r-u", "0 1 2 "],
    });
  });

  test.each<[string, (caller: Caller) => Promise<unknown>, string, string | undefined]>([
    ["messages", (caller) => caller.messages("t"), "/threads/t/messages", "t"],
    ["events", (caller) => caller.events("t"), "/threads/t/events", "t"],
    ["state", (caller) => caller.state("t"), "/threads/t/state", "t"],
    ["the list", (caller) => caller.list(), "/threads", undefined],
    ["the clearing", (caller) => caller.clear(), "/threads/clear", undefined],
  ])("is told of a reading of %s", async (_, read, path, threadId) => {
    const { told, caller } = await observed(way);
    await caller.run("counter", inputOf("t", "r"));
    await toldOf(told, 1);
    await read(caller);
    await toldOf(told, 2);
    expect(told[1]).toMatchObject({ path: path, ...(threadId !== undefined && { threadId }), texts: [] });
    expect(told[1]).not.toHaveProperty("runId");
  });

  test("is told once of a run that two ask for at once", async () => {
    const { told, caller } = await observed(way);
    const both = await Promise.all(["r", "r"].map((runId) => caller.run("counter", inputOf("t", runId))));
    expect(both[0]).toEqual(both[1]);
    await toldOf(told, 2);
    const all = await allTold(told, caller);
    expect(all.length).toBe(2);
    expect(runsOf(all)).toEqual(["r"]);
  });

  test("is told without an id of who asks again for a run that is settled", async () => {
    const { told, caller } = await observed(way);
    await caller.run("counter", inputOf("t", "r"));
    await toldOf(told, 1);
    const again = await caller.run("counter", inputOf("t", "r"));
    expect(again.at(-1)?.type).toBe(EventType.RUN_FINISHED);
    await toldOf(told, 2);
    expect(told[1]).toEqual({ path: runPath, status: 200, threadId: "t", texts: [] });
  });

  test("that throws changes nothing, and is told to metrics", async () => {
    const failures: RuntimeFailure[] = [];
    const error = new Error("the hook failed");
    const { caller } = await observed(way, {
      afterRequestMiddleware: () => {
        throw error;
      },
      metrics: { error: (failure) => failures.push(failure) },
    });
    expect((await caller.run("counter", inputOf("t", "r"))).at(-1)?.type).toBe(EventType.RUN_FINISHED);
    await vi.waitFor(() => expect(failures).toEqual([{ path: runPath, error }]));
    expect(await caller.list()).toEqual(["t"]);
  });

  test("that never ends holds nothing up", async () => {
    const { caller } = await observed(way, { afterRequestMiddleware: () => new Promise(() => undefined) });
    for (const runId of ["r1", "r2"]) {
      expect((await caller.run("counter", inputOf("t", runId))).at(-1)?.type).toBe(EventType.RUN_FINISHED);
    }
  });
});

test("a run is told of once that two tabs and HTTP read", async () => {
  const { agents, letOn } = waiting();
  const { told, afterRequestMiddleware } = recorder();
  const runtime = runtimeWith({ agents, afterRequestMiddleware });
  const http = await WAYS[0]!.open(runtime);
  const tabs = [connectedTab(runtime), connectedTab(runtime)].map((tab) => tab.agent("counter", { threadId: "t" }));
  await http.runAndLeave("counter", inputOf("t", "r"));
  const reading = [...tabs.map((tab) => tab.connectAgent()), http.connect("counter", "t")];
  await vi.waitFor(() => tabs.forEach(({ messages }) => expect(messages.at(-1)?.content).toBe("0 ")));
  letOn();
  await Promise.all(reading);
  await toldOf(told, 4);
  expect(runsOf(told)).toEqual(["r"]);
  expect(told.filter(({ runId }) => runId === undefined).map(({ texts }) => texts)).toEqual(
    Array.from({ length: 3 }, () => ["from r-u", "0 1 2 "]),
  );
});

test("an attachment of a tab is told of when the tab goes", async () => {
  const { told, afterRequestMiddleware } = recorder();
  const runtime = runtimeWith({ afterRequestMiddleware });
  const tab = connectedTab(runtime);
  const agent = tab.agent("counter", { threadId: "t" });
  await agent.runAgent({ runId: "r" });
  await toldOf(told, 1);
  expect(runsOf(told)).toEqual(["r"]);
  const reader = tab.agent("counter", { threadId: "t" });
  reader.follow();
  await reader.connectAgent();
  await tab.close();
  await toldOf(told, 2);
  expect(told.at(-1)).toMatchObject({ path: "/agent/counter/connect", threadId: "t", texts: ["0 1 2 "] });
});

test("an attachment of a following agent ends for the time of its own run, and is told of then", async () => {
  const { told, afterRequestMiddleware } = recorder();
  const tab = connectedTab(runtimeWith({ afterRequestMiddleware }));
  const agent = tab.agent("counter", { threadId: "t" });
  agent.follow();
  await agent.connectAgent();
  await agent.runAgent({ runId: "r" });
  await toldOf(told, 2);
  expect(told.map(({ path }) => path).toSorted()).toEqual(["/agent/counter/connect", "/agent/counter/run"]);
  expect(runsOf(told).filter((runId) => runId !== undefined)).toEqual(["r"]);
});

test("a suggestion is told of without an id: nothing of it is kept", async () => {
  const { told, afterRequestMiddleware } = recorder();
  const handler = createRuntimeHandler({ runtime: runtimeWith({ afterRequestMiddleware }) });
  const request = new Request("http://localhost/agent/counter/suggest", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(inputOf("t", "r")),
  });
  await (await handler(request)).text();
  await toldOf(told, 1);
  expect(told).toEqual([{ path: "/agent/counter/suggest", status: 200, threadId: "t", texts: [] }]);
});

test("a suggestion is stopped by its thread", async () => {
  const handler = createRuntimeHandler({ runtime: runtimeWith() });
  const post = (path: string, body: unknown) =>
    handler(
      new Request(`http://localhost${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    );
  const streaming = await post("/agent/silent/suggest", inputOf("t", "r"));
  const stopped = await post("/agent/silent/stop/t", { runId: "r" });
  expect(await stopped.json()).toMatchObject({ stopped: true });
  expect(await streaming.text()).toContain(EventType.RUN_FINISHED);
});

test("who asks again for a settled run is told of when it was read, not before", async () => {
  const { told, afterRequestMiddleware } = recorder();
  const runtime = runtimeWith({ afterRequestMiddleware });
  const caller = await WAYS[0]!.open(runtime);
  await caller.run("counter", inputOf("t", "r"));
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(inputOf("t", "r"));
  const request = new Request("http://localhost/agent/counter/run", { method: "POST", headers, body });
  const again = await createRuntimeHandler({ runtime })(request);
  await toldOf(told, 1);
  expect((await allTold(told, caller)).length).toBe(1);
  await again.text();
  await vi.waitFor(() =>
    expect(told.at(-1)).toEqual({ path: "/agent/counter/run", status: 200, threadId: "t", texts: [] }),
  );
});

test("what a route fails with is what the middleware is shown", async () => {
  const shown: unknown[] = [];
  const runtime = runtimeWith({
    afterRequestMiddleware: async ({ response }) => void shown.push(await response.json()),
    filterEvent: () => {
      throw new Error("no");
    },
  });
  const answer = await createRuntimeHandler({ runtime })(new Request("http://localhost/threads/t/messages"));
  const body: unknown = await answer.json();
  await vi.waitFor(() => expect(shown).toEqual([body]));
  expect(body).toMatchObject({ error: "internal_error" });
});

test("a reader over HTTP that has left when it is answered counts as gone", async () => {
  const { told, afterRequestMiddleware } = recorder();
  const runtime = runtimeWith({ afterRequestMiddleware });
  const leaving = AbortSignal.abort();
  const body = JSON.stringify({ ...inputOf("t", "r"), messages: [] });
  const headers = { "content-type": "application/json" };
  const request = new Request("http://localhost/agent/counter/connect", {
    method: "POST",
    headers,
    body,
    signal: leaving,
  });
  await createRuntimeHandler({ runtime })(request);
  await toldOf(told, 1);
  expect(told).toEqual([{ path: "/agent/counter/connect", status: 200, threadId: "t", texts: [] }]);
});

describe("a runner of another make", () => {
  /** Its one event counts how often its content is looked at. */
  function counting() {
    let looks = 0;
    const events: BaseEvent[] = [
      { type: EventType.RUN_STARTED, threadId: "t", runId: "r" },
      {
        type: EventType.CUSTOM,
        name: "seen",
        get value() {
          looks++;
          return 1;
        },
      },
      { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" },
    ];
    const runner = {
      run: () => of(...events),
      connect: () => of(),
      isRunning: async () => false,
      stop: async () => false,
    };
    return { runner, looks: () => looks };
  }

  async function startAndLeave(options: Partial<AgentRuntimeOptions>): Promise<void> {
    const runtime = new AgentRuntime({ agents: { counter: agentOf(counter(1)) }, ...options });
    const request = new Request("http://localhost/agent/counter/run", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(inputOf("t", "r")),
    });
    await (await createRuntimeHandler({ runtime })(request)).body!.cancel();
  }

  test("is asked to keep nothing where nobody is told", async () => {
    const { runner, looks } = counting();
    await startAndLeave({ runner });
    // By its reader's buffer alone, which is bounded.
    expect(looks()).toBe(1);
  });

  test("is told of once its run is over, whoever reads it", async () => {
    const { runner, looks } = counting();
    const { told, afterRequestMiddleware } = recorder();
    await startAndLeave({ runner, afterRequestMiddleware });
    await toldOf(told, 1);
    expect(told).toEqual([{ path: "/agent/counter/run", status: 200, threadId: "t", runId: "r", texts: [] }]);
    expect(looks()).toBeGreaterThan(1);
  });

  test("is told of where its run fails", async () => {
    const { told, afterRequestMiddleware } = recorder();
    const runner = {
      ...counting().runner,
      run: () => new Observable<BaseEvent>((it) => it.error(new Error("failed"))),
    };
    await startAndLeave({ runner, afterRequestMiddleware });
    await toldOf(told, 1);
    expect(told).toMatchObject([{ threadId: "t", runId: "r" }]);
  });
});
