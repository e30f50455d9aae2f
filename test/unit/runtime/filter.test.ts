import { EventType, type BaseEvent } from "@ag-ui/client";
import {
  createRuntimeHandler,
  type AgentRuntime,
  type AgentRuntimeOptions,
  type FilterEvent,
  type RuntimeFailure,
} from "ag-ui-local-runtime/runtime";
import { describe, expect, test, vi } from "vitest";
import { agentOf, gated, inputOf, makeRunner, textOf, user } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { connectedTab, WAYS, type Caller } from "./ways.js";

/** Says and keeps a secret, and tells something of its own. */
const careless = agentOf(async function* ({ runId }) {
  const messageId = `${runId}-a`;
  yield { type: EventType.CUSTOM, name: "internal", value: "the secret" };
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "this is " };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "the secret" };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
  yield { type: EventType.STATE_SNAPSHOT, snapshot: { kept: "the secret" } };
  yield { type: EventType.STATE_DELTA, delta: [{ op: "add", path: "/more", value: "the secret" }] };
});

const input = inputOf("t", "r", [user("u", "tell me the secret")]);

/** An event without the secret. */
const redacted = (event: BaseEvent): BaseEvent =>
  JSON.parse(JSON.stringify(event).replaceAll("the secret", "…")) as BaseEvent;

const withoutCustom: FilterEvent = (event) => (event.type === EventType.CUSTOM ? undefined : event);

const carelessRuntime = (options: Partial<AgentRuntimeOptions>): AgentRuntime =>
  runtimeWith({ agents: { careless }, ...options });

/** Everything that can be read of the thread, by each of a caller's calls. */
const readings = (caller: Caller): readonly (readonly [string, () => Promise<unknown>])[] => [
  ["connect", () => caller.connect("careless", "t")],
  ["messages", () => caller.messages("t")],
  ["events", () => caller.events("t")],
  ["state", () => caller.state("t")],
];

describe.each(WAYS)("filterEvent, $name", (way) => {
  test("leaves types of events out, wherever they are read", async () => {
    const runtime = carelessRuntime({ filterEvent: withoutCustom });
    const caller = await way.open(runtime);
    const run = await caller.run("careless", input);
    const connected = await caller.connect("careless", "t");
    const events = await caller.events("t");
    for (const read of [run, connected, events]) {
      expect(read.map(({ type }) => type)).not.toContain(EventType.CUSTOM);
      expect(read.at(-1)?.type).toBe(EventType.RUN_FINISHED);
    }
    expect(textOf(run)).toBe("this is the secret");
  });

  test("replaces text in deltas, snapshots, messages and state", async () => {
    const caller = await way.open(carelessRuntime({ filterEvent: redacted }));
    const run = await caller.run("careless", input);
    expect(JSON.stringify(run)).not.toContain("the secret");
    expect(textOf(run)).toBe("this is …");
    for (const [name, read] of readings(caller)) {
      const told = JSON.stringify(await read());
      expect(told, name).not.toContain("the secret");
      expect(told, name).toContain("…");
    }
    expect(await caller.state("t")).toEqual({ kept: "…", more: "…" });
  });

  test("leaves the log as it was", async () => {
    const runner = makeRunner();
    const caller = await way.open(carelessRuntime({ runner, filterEvent: redacted }));
    await caller.run("careless", input);
    await caller.connect("careless", "t");
    expect((await runner.getThreadMessages("t")).map(({ content }) => content)).toEqual([
      "tell me the secret",
      "this is the secret",
    ]);
    expect(await runner.getThreadState("t")).toEqual({ kept: "the secret", more: "the secret" });
    expect((await runner.getRunEvents("r")).map(({ event }) => event.type)).toContain(EventType.CUSTOM);
  });

  test("that changes what it is given changes neither the log nor what another reader gets", async () => {
    const runner = makeRunner();
    let isFirst = true;
    const runtime = carelessRuntime({
      runner,
      filterEvent: (event, { request }) => {
        isFirst = request.headers.get("x-user") === "first";
        if (isFirst && typeof event["delta"] === "string") event["delta"] = "gone";
        if (isFirst && event.type === EventType.MESSAGES_SNAPSHOT) (event["messages"] as unknown[]).length = 0;
        return event;
      },
    });
    const first = await way.open(runtime, { "x-user": "first" });
    const second = await way.open(runtime, { "x-user": "second" });
    // Both read the same chunks.
    const [gone, kept] = await Promise.all([first.run("careless", input), second.run("careless", input)]);
    expect(textOf(gone)).not.toContain("secret");
    expect(textOf(kept)).toBe("this is the secret");
    expect(await first.messages("t")).toEqual([]);
    expect((await second.messages("t")).map(({ content }) => content)).toEqual([
      "tell me the secret",
      "this is the secret",
    ]);
    expect((await runner.getThreadMessages("t")).length).toBe(2);
  });

  test("is told who asks, for what, and of which thread", async () => {
    const seen = new Set<string>();
    const runtime = carelessRuntime({
      filterEvent: (event, { request, path, threadId }) => {
        seen.add(`${request.headers.get("x-user")} ${path} ${threadId}`);
        return request.headers.get("x-user") === "ada" ? event : redacted(event);
      },
    });
    const ada = await way.open(runtime, { "x-user": "ada" });
    const bob = await way.open(runtime, { "x-user": "bob" });
    expect(textOf(await ada.run("careless", input))).toBe("this is the secret");
    expect(JSON.stringify(await bob.connect("careless", "t"))).not.toContain("the secret");
    expect(JSON.stringify(await ada.connect("careless", "t"))).toContain("the secret");
    expect(seen).toEqual(
      new Set(["ada /agent/careless/run t", "bob /agent/careless/connect t", "ada /agent/careless/connect t"]),
    );
  });

  test.each<[string, FilterEvent]>([
    [
      "throws",
      () => {
        throw new Error("cannot hide the secret");
      },
    ],
    ["returns a Promise", (async (event: BaseEvent) => event) as unknown as FilterEvent],
    ["returns what is no event", () => ({}) as BaseEvent],
  ])("that %s ends each reading with an error: nothing leaves", async (_, filterEvent) => {
    const failures: RuntimeFailure[] = [];
    let isOn = false;
    const runtime = carelessRuntime({
      filterEvent: (event, context) => (isOn ? filterEvent(event, context) : event),
      metrics: { error: (failure) => failures.push(failure) },
    });
    const caller = await way.open(runtime);
    await caller.run("careless", input);
    isOn = true;
    for (const [name, read] of readings(caller)) {
      failures.length = 0;
      const answer = await read().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      expect(answer, name).toHaveProperty("error");
      expect(String((answer as { readonly error: unknown }).error), name).not.toContain("secret");
      expect(failures.length, name).toBe(1);
    }
  });

  test("that throws in the middle of a run ends what is read, and never the run", async () => {
    const runner = makeRunner();
    const caller = await way.open(
      carelessRuntime({
        runner,
        filterEvent: (event) => {
          if (event.type === EventType.TEXT_MESSAGE_CONTENT) throw new Error("cannot hide the secret");
          return event;
        },
      }),
    );
    const read = await caller.run("careless", input).catch(() => [{ type: EventType.RUN_ERROR } as BaseEvent]);
    // Over HTTP the head is out by then.
    expect(read.at(-1)?.type).toBe(EventType.RUN_ERROR);
    expect(textOf(read)).toBe("");
    expect(JSON.stringify(read)).not.toContain("cannot hide");
    await vi.waitFor(async () => expect((await runner.getRun("r"))?.status).toBe("finished"));
  });
});

describe("cursors of what is filtered", () => {
  /** Streams numbers with events between them that are left out; waits where it is told to. */
  const numbers = (count: number, gate?: (step: number) => Promise<void> | undefined) =>
    agentOf(async function* ({ runId }) {
      const messageId = `${runId}-a`;
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
      for (let step = 0; step < count; step++) {
        await gate?.(step);
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${step} ` };
        // Several chunks, some of which nothing is left of.
        await new Promise<void>((resolve) => setImmediate(resolve));
        yield { type: EventType.CUSTOM, name: "internal", value: step };
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
      yield { type: EventType.TEXT_MESSAGE_END, messageId };
      yield { type: EventType.CUSTOM, name: "internal", value: "end" };
    });

  const TEXT = "0 1 2 3 4 5 ";

  test("a reader over HTTP goes on from each of its ids, and gets each event once", async () => {
    const runtime = runtimeWith({ agents: { numbers: numbers(6) }, filterEvent: withoutCustom });
    const handler = createRuntimeHandler({ runtime });
    const read = async (verb: "run" | "connect", lastEventId?: string) => {
      const request = new Request(`http://localhost/agent/numbers/${verb}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...(lastEventId && { "last-event-id": lastEventId }) },
        body: JSON.stringify(inputOf("t", "r")),
      });
      const blocks = (await (await handler(request)).text()).split("\n\n").filter((block) => block !== "");
      return blocks.map((block) => ({
        id: /^id: (.*)$/m.exec(block)?.[1],
        event: JSON.parse(/^data: (.*)$/m.exec(block)![1]!) as BaseEvent,
      }));
    };
    const all = await read("run");
    expect(textOf(all.map(({ event }) => event))).toBe(TEXT);
    for (const [at, { id }] of all.entries()) {
      expect(id).toBeDefined();
      const rest = await read("connect", id);
      const events = [...all.slice(0, at + 1), ...rest].map(({ event }) => event);
      expect(textOf(events)).toBe(TEXT);
      expect(events.filter(({ type }) => type === EventType.CUSTOM)).toEqual([]);
      expect(events.at(-1)?.type).toBe(EventType.RUN_FINISHED);
    }
  });

  test("a tab that comes in the middle, and one that follows, have the whole answer", async () => {
    const { gate, letOn } = gated();
    const agents = { numbers: numbers(6, (step) => (step === 3 ? gate : undefined)) };
    const runtime = runtimeWith({ agents, filterEvent: withoutCustom });
    const agentIn = () => connectedTab(runtime).agent("numbers", { threadId: "t" });
    const runs = agentIn();
    const follows = agentIn();
    follows.follow();
    const running = runs.runAgent({ runId: "r" });
    const answerOf = (agent: typeof runs) => agent.messages.at(-1)?.content;
    await vi.waitFor(() => [runs, follows].forEach((agent) => expect(answerOf(agent)).toBe("0 1 2 ")));
    const reloaded = agentIn();
    const attached = reloaded.connectAgent();
    await vi.waitFor(() => expect(answerOf(reloaded)).toBe("0 1 2 "));
    letOn();
    await Promise.all([running, attached]);
    await vi.waitFor(() => expect(answerOf(follows)).toBe(TEXT));
    for (const agent of [runs, follows, reloaded]) expect(answerOf(agent)).toBe(TEXT);
  });

  test("a tab that comes back by its cursor gets what it misses, and nothing twice", async () => {
    const { gate, letOn } = gated();
    const agents = { numbers: numbers(6, (step) => (step === 3 ? gate : undefined)) };
    const runtime = runtimeWith({ agents, filterEvent: withoutCustom });
    const tab = connectedTab(runtime);
    const runner = tab.runner();
    const first: BaseEvent[] = [];
    const running = runner.run({ threadId: "t", agent: { agentId: "numbers" }, input: inputOf("t", "r") }).subscribe();
    const cursor = await new Promise<object>((resolve) => {
      const reading = runner.connectWithCursor({ threadId: "t", follow: true }).subscribe(({ events, cursor: at }) => {
        first.push(...events);
        if (textOf(first) !== "0 1 2 ") return;
        reading.unsubscribe();
        resolve(at);
      });
    });
    letOn();
    const rest: BaseEvent[] = [];
    await runner
      .connectWithCursor({ threadId: "t", after: cursor as never })
      .forEach(({ events }) => void rest.push(...events));
    expect(textOf(rest)).toBe("3 4 5 ");
    running.unsubscribe();
  });
});

describe("what a tab reads by itself is filtered", () => {
  const read = async (ask: (tab: ReturnType<typeof connectedTab>) => Promise<unknown>) => {
    const seen: string[] = [];
    const runtime = carelessRuntime({
      filterEvent: (event, { path, threadId }) => {
        seen.push(`${path} ${threadId}`);
        return redacted(event);
      },
    });
    const tab = connectedTab(runtime);
    await (await WAYS[0]!.open(runtime)).run("careless", input);
    seen.length = 0;
    const told = JSON.stringify(await ask(tab));
    expect(told).not.toContain("the secret");
    expect(told).toContain("…");
    return new Set(seen);
  };

  test("a page of messages", async () => {
    expect(await read((tab) => tab.threads.messages("t", { limit: 1 }))).toEqual(new Set(["/threads/t/messages t"]));
  });

  test("the events of a run, whose thread the filter is told also where the call does not name it", async () => {
    expect(await read((tab) => tab.runner().getRunEvents("r"))).toEqual(new Set(["/runs/r/events t"]));
    expect(await read((tab) => tab.runner().getRunEvents("r", { threadId: "t" }))).toEqual(
      new Set(["/threads/t/runs/r/events t"]),
    );
  });

  test("each event of a run on its own, as it was recorded", async () => {
    const runtime = carelessRuntime({ filterEvent: withoutCustom });
    const tab = connectedTab(runtime);
    await (await WAYS[0]!.open(runtime)).run("careless", input);
    const events = await tab.runner().getRunEvents("r");
    expect(textOf(events.map(({ event }) => event))).toBe("this is the secret");
    expect(events.map(({ event }) => event.type)).not.toContain(EventType.CUSTOM);
    // The number of each is its own, whatever is left out.
    expect(new Set(events.map(({ seq }) => seq)).size).toBe(events.length);
    expect(events.at(-1)!.seq).toBeGreaterThanOrEqual(events.length);
  });

  test("a run whose text becomes longer, whole", async () => {
    const filterEvent: FilterEvent = (event) =>
      typeof event["delta"] === "string"
        ? { ...event, delta: event["delta"].replaceAll("the secret", "what nobody is to know") }
        : event;
    const caller = await WAYS.at(-1)!.open(carelessRuntime({ filterEvent }));
    expect(textOf(await caller.run("careless", input))).toBe("this is what nobody is to know");
  });

  test("a run whose text stays as it is, in the deltas of its agent", async () => {
    const caller = await WAYS.at(-1)!.open(carelessRuntime({ filterEvent: (event) => ({ ...event, seen: true }) }));
    const deltas = (await caller.run("careless", input)).flatMap(({ delta }) =>
      typeof delta === "string" ? [delta] : [],
    );
    expect(deltas).toEqual(["this is ", "the secret"]);
  });

  test("a thread as an agent of the tab has it", async () => {
    await read(async (tab) => {
      const agent = tab.agent("careless", { threadId: "t" });
      await agent.connectAgent();
      return { messages: agent.messages, state: agent.state as unknown };
    });
  });
});
