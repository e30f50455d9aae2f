import { EventType, type BaseEvent } from "@ag-ui/client";
import { AgentRuntime, createRuntimeHandler, type FilterEvent } from "ag-ui-local-runtime/runtime";
import { describe, expect, onTestFinished, test } from "vitest";
import { agentOf, counter, freshDb, gated, inputOf, makeRunner, rebuild, user } from "./kit.js";

const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Request =>
  new Request(`http://localhost${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });

interface Read {
  readonly id: string | undefined;
  readonly event: BaseEvent;
}

function parse(text: string): readonly Read[] {
  return text.split("\n\n").flatMap((block) => {
    const lines = block.split("\n");
    const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
    const id = lines.find((line) => line.startsWith("id: "))?.slice(4);
    return data === undefined ? [] : [{ id, event: JSON.parse(data) as BaseEvent }];
  });
}

const V1 = { protocolVersion: "1.0" };

/** A host of its own on the database. */
function hostOn(dbName: string, filterEvent?: FilterEvent, agent = agentOf(counter(4))) {
  const runner = makeRunner({ dbName });
  const runtime = new AgentRuntime({ runner, agents: { counter: agent }, ...(filterEvent && { filterEvent }) });
  onTestFinished(() => runtime.close());
  const handler = createRuntimeHandler({ runtime });
  return {
    runner,
    handler,
    run: async (runId: string, messages = [user(`${runId}-u`)]): Promise<readonly Read[]> =>
      parse(await (await handler(post("/agent/counter/run", { ...inputOf("t", runId, messages), ...V1 }))).text()),
    connect: async (id?: string): Promise<readonly Read[]> => {
      const headers = id === undefined ? {} : { "last-event-id": id };
      const answer = await handler(post("/agent/counter/connect", { ...inputOf("t", "c", []), ...V1 }, headers));
      expect(answer.status).toBe(200);
      return parse(await answer.text());
    },
  };
}

const eventsOf = (reads: readonly Read[]): readonly BaseEvent[] => reads.map(({ event }) => event);

/** Every text of an agent without its numbers, in whatever it comes. */
const withoutNumbers: FilterEvent = (event) => {
  if (event.type === EventType.TEXT_MESSAGE_CONTENT) return { ...event, delta: unnumbered(event["delta"]) };
  if (event.type !== EventType.MESSAGES_SNAPSHOT) return event;
  const messages = (event["messages"] as readonly { readonly role: string; readonly content: unknown }[]).map(
    (message) => (message.role === "assistant" ? { ...message, content: unnumbered(message.content) } : message),
  );
  return { ...event, messages };
};
const unnumbered = (text: unknown): string => String(text).replace(/\d/g, "");

/** No text of an agent at all. */
const withoutDeltas: FilterEvent = (event) => {
  if (event.type === EventType.TEXT_MESSAGE_CONTENT) return undefined;
  if (event.type !== EventType.MESSAGES_SNAPSHOT) return event;
  const messages = (event["messages"] as readonly { readonly role: string }[]).map((message) =>
    message.role === "assistant" ? { ...message, content: "" } : message,
  );
  return { ...event, messages };
};

const FILTERS: readonly (readonly [string, FilterEvent | undefined])[] = [
  ["unfiltered", undefined],
  ["with other texts", withoutNumbers],
  ["without the deltas", withoutDeltas],
];

describe.each(FILTERS)("Last-Event-ID, %s (L2)", (_name, filter) => {
  test("goes on behind each event of a run in another host, as if never cut", async () => {
    const dbName = freshDb();
    const one = hostOn(dbName, filter);
    await one.run("r0");
    const reads = await one.run("r1");
    await one.run("r2", [user("r2-u")]);
    const whole = await rebuild(eventsOf(await one.connect()));
    const two = hostOn(dbName, filter);
    const before = await (async () => {
      const fresh = hostOn(freshDb(), filter);
      await fresh.run("r0");
      return eventsOf(await fresh.connect());
    })();
    const ids = reads.flatMap(({ id }, at) => (id === undefined ? [] : [[id, at] as const]));
    expect(ids.length).toBeGreaterThan(2);
    for (const [id, at] of ids) {
      const rest = eventsOf(await two.connect(id));
      const joined = [...before, ...eventsOf(reads.slice(0, at + 1)), ...rest];
      expect((await rebuild(joined)).messages, `behind ${id}`).toEqual(whole.messages);
    }
  });

  test("goes on behind each event of a live run, in another host", async () => {
    const dbName = freshDb();
    const { gate, letOn } = gated();
    const one = hostOn(dbName, filter, agentOf(counter(6, (step) => (step === 3 ? gate : undefined))));
    const answer = await one.handler(post("/agent/counter/run", { ...inputOf("t", "r0"), ...V1 }));
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const marker = filter === withoutDeltas ? "TEXT_MESSAGE_START" : "TEXT_MESSAGE_CONTENT";
    while (!text.includes(marker)) text += (await reader.read()).value ?? "";
    const soFar = parse(text);
    const two = hostOn(dbName, filter);
    const resumed = soFar.map(async ({ id }, at) => ({ at, rest: eventsOf(await two.connect(id)) }));
    letOn();
    const whole = await (async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return parse(text);
        text += value;
      }
    })();
    const truth = await rebuild(eventsOf(whole));
    for (const { at, rest } of await Promise.all(resumed)) {
      expect((await rebuild([...eventsOf(soFar.slice(0, at + 1)), ...rest])).messages).toEqual(truth.messages);
    }
  });

  test("is answered with the thread as it is where a branch came between", async () => {
    const dbName = freshDb();
    const one = hostOn(dbName, filter);
    const first = await one.run("r0", [user("u0")]);
    const second = await one.run("r1", [user("u1")]);
    // The first question is asked anew.
    await one.run("r2", [user("u0", "otherwise")]);
    const two = hostOn(dbName, filter);
    const whole = await rebuild(eventsOf(await two.connect()));
    for (const { id } of [...first, ...second]) {
      if (id === undefined) continue;
      const rest = eventsOf(await two.connect(id));
      expect((await rebuild([...eventsOf(first), ...eventsOf(second), ...rest])).messages).toEqual(whole.messages);
    }
  });

  test("of a deleted thread, and of one that was made anew, shows nothing of the old one", async () => {
    const dbName = freshDb();
    const one = hostOn(dbName, filter);
    const reads = await one.run("r0", [user("u0")]);
    await one.runner.deleteThread("t");
    const two = hostOn(dbName, filter);
    for (const { id } of reads) {
      const rest = eventsOf(await two.connect(id));
      expect((await rebuild(rest)).messages, JSON.stringify(rest)).toEqual([]);
    }
    await one.run("n0", [user("n0")]);
    const whole = await rebuild(eventsOf(await two.connect()));
    for (const { id } of reads) {
      if (id === undefined) continue;
      const rest = eventsOf(await two.connect(id));
      expect((await rebuild([...eventsOf(reads), ...rest])).messages).toEqual(whole.messages);
    }
  });
});
