import { HttpAgent, type Message } from "@ag-ui/client";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { installRuntimeFetch, type FetchTarget } from "../../../src/client/install-runtime-fetch.js";
import { defineAgent } from "../../../src/worker/define-agent.js";
import { AgentRuntime } from "../../../src/runtime/agent-runtime.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { times } from "../property.js";
import { collect, counter, freshDb, inputOf, user } from "../runner/kit.js";
import { FakePage, patientServiceWorkerOf } from "../service-worker/kit.js";

beforeAll(() => {
  vi.stubGlobal("location", { origin: "http://site.test", href: "http://site.test/" });
  return () => vi.unstubAllGlobals();
});

/** Whoever has a list of a thread's messages and sends it: what it lacks, it may never have had. */
interface Sender {
  messages: Message[];
  /** Takes the thread as it is now. */
  connect(): Promise<void>;
  run(runId: string): Promise<unknown>;
}

/** Ways in. Those that know what their page was given can tell what it has cut. */
const KNOWING = ["page", "service worker", "tab"] as const;
const WAYS = ["runner", "http", ...KNOWING] as const;
type Way = (typeof WAYS)[number];
const knows = (way: Way): boolean => (KNOWING as readonly Way[]).includes(way);

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** One thread, and how to come by senders of it. */
function world() {
  const runner = new IndexedDBAgentRunner({ dbName: freshDb(), stopGraceMs: 50 });
  const agents = { counter: defineAgent(counter(1), { agentId: "counter" }) };
  const handler = createRuntimeHandler({ runtime: new AgentRuntime({ agents, runner }), basePath: "/api" });
  const host = serveRuntime({ agents, runner });
  closing.push(
    () => runner.close(),
    () => host.close(),
  );
  const connection = () => {
    const runtime = connectRuntime({
      hosts: { page: async () => host.connect() },
      startTimeoutMs: 60_000,
      callTimeoutMs: 60_000,
    });
    closing.push(() => runtime.close());
    return runtime;
  };

  const overFetch = (send: (url: string, init: RequestInit) => Promise<Response>): Sender => {
    const agentAt = (route: string, messages: Message[]): HttpAgent => {
      const url = `http://site.test/api/agent/counter/${route}`;
      return new HttpAgent({ url, threadId: "t", initialMessages: messages, fetch: send });
    };
    const sender: Sender = {
      messages: [],
      async connect() {
        const agent = agentAt("connect", []);
        await agent.runAgent();
        sender.messages = agent.messages;
      },
      async run(runId) {
        const agent = agentAt("run", sender.messages);
        await agent.runAgent({ runId });
        sender.messages = agent.messages;
      },
    };
    return sender;
  };

  const senders: Readonly<Record<Way, () => Sender>> = {
    runner: () => {
      const sender: Sender = {
        messages: [],
        connect: async () => void (sender.messages = [...(await runner.getThreadMessages("t"))]),
        run: async (runId) => {
          const input = inputOf("t", runId, sender.messages);
          await collect(runner.run({ threadId: "t", agent: agents.counter.clone(), input }));
          sender.messages = [...sender.messages, { id: `${runId}-a`, role: "assistant", content: "0 " }];
        },
      };
      return sender;
    },
    http: () => overFetch((url, init) => handler(new Request(url, init))),
    page: () => {
      const target: FetchTarget = { fetch, location: { href: "http://site.test/", origin: "http://site.test" } };
      installRuntimeFetch(connection(), { basePath: "/api", target });
      return overFetch((url, init) => target.fetch(url, init));
    },
    "service worker": () => {
      const page = new FakePage(`page-${closing.length}`);
      page.answer(connection());
      const worker = patientServiceWorkerOf(60_000, page);
      return overFetch((url, init) => worker.fetch(new URL(url).pathname, init, page.id).response!);
    },
    tab: () => {
      const agent = connection().agent("counter", { threadId: "t" });
      return {
        get messages() {
          return agent.messages;
        },
        set messages(messages) {
          agent.setMessages(messages);
        },
        connect: async () => void (await agent.connectAgent()),
        run: (runId) => agent.runAgent({ runId }),
      };
    },
  };
  return { sender: (way: Way) => senders[way](), path: () => runner.getThreadMessages("t") };
}

const ids = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);

describe.each(WAYS)("a sender by way of %s", (way) => {
  test("that has not seen the newest turn adds to the thread (L20)", async () => {
    const { sender, path } = world();
    const [a, b] = [sender(way), sender(way)];
    a.messages = [user("one")];
    await a.run("r1");
    await b.connect();
    b.messages = [...b.messages, user("two")];
    await b.run("r2");
    a.messages = [...a.messages, user("three")];
    await a.run("r3");
    expect(ids(await path())).toEqual(["one", "r1-a", "two", "r2-a", "three", "r3-a"]);
  });

  test(`that cuts the newest turn and says something else ${knows(way) ? "edits" : "adds to the thread"} (L20)`, async () => {
    const { sender, path } = world();
    const a = sender(way);
    a.messages = [user("one")];
    await a.run("r1");
    a.messages = [...a.messages, user("two")];
    await a.run("r2");
    a.messages = [...a.messages.slice(0, 2), user("other")];
    await a.run("r3");
    const kept = knows(way) ? [] : ["two", "r2-a"];
    expect(ids(await path())).toEqual(["one", "r1-a", ...kept, "other", "r3-a"]);
  });

  test("that stands on a left branch adds what it says, and says nothing of that branch again (L20)", async () => {
    const { sender, path } = world();
    const [a, b] = [sender(way), sender(way)];
    a.messages = [user("one")];
    await a.run("r1");
    await b.connect();
    b.messages = [...b.messages, user("two")];
    await b.run("r2");
    // Regenerated from the first answer on.
    a.messages = a.messages.slice(0, 1);
    await a.run("r3");
    expect(ids(await path())).toEqual(["one", "r3-a"]);
    b.messages = [...b.messages, user("three")];
    await b.run("r4");
    expect(ids(await path())).toEqual(["one", "r3-a", "three", "r4-a"]);
    b.messages = [...b.messages, user("four")];
    await b.run("r5");
    expect(ids(await path())).toEqual(["one", "r3-a", "three", "r4-a", "four", "r5-a"]);
  });

  test("that regenerates an answer branches (L20)", async () => {
    const { sender, path } = world();
    const a = sender(way);
    a.messages = [user("one")];
    await a.run("r1");
    a.messages = [...a.messages, user("two")];
    await a.run("r2");
    a.messages = a.messages.slice(0, 3);
    await a.run("r3");
    expect(ids(await path())).toEqual(["one", "r1-a", "two", "r3-a"]);
  });
});

test("a page that left in the middle of an answer adds to it (L20)", async () => {
  const { sender, path } = world();
  const a = sender("page");
  a.messages = [user("one")];
  await a.run("r1");
  // Another page's turn, which it is not shown.
  const b = sender("page");
  await b.connect();
  b.messages = [...b.messages, user("two")];
  await b.run("r2");
  await a.connect();
  a.messages = [...a.messages.slice(0, 2), user("three")];
  await a.run("r3");
  expect(ids(await path())).toEqual(["one", "r1-a", "three", "r3-a"]);
});

test("over HTTP, a header names the message before which a run branches", async () => {
  const runner = new IndexedDBAgentRunner({ dbName: freshDb(), stopGraceMs: 50 });
  const agents = { counter: defineAgent(counter(1), { agentId: "counter" }) };
  const handler = createRuntimeHandler({ runtime: new AgentRuntime({ agents, runner }) });
  onTestFinished(() => runner.close());
  const run = async (runId: string, messages: Message[], headers: Record<string, string> = {}): Promise<number> => {
    const response = await handler(
      new Request("http://site.test/agent/counter/run", {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(inputOf("t", runId, messages)),
      }),
    );
    await response.text();
    return response.status;
  };
  await run("r1", [user("one")]);
  await run("r2", [user("zwei ü")]);
  const before = (id: string) => ({ "AG-UI-Branch-Before": id });
  expect(await run("r3", [user("other")], before(encodeURIComponent("zwei ü")))).toBe(200);
  expect(ids(await runner.getThreadMessages("t"))).toEqual(["one", "r1-a", "other", "r3-a"]);
  expect(await run("r4", [user("more")], before("gone"))).toBe(400);
  expect(await run("r5", [user("more")], before("%"))).toBe(400);
  expect(ids(await runner.getThreadMessages("t"))).toEqual(["one", "r1-a", "other", "r3-a"]);
});

type Step = {
  readonly who: number;
  readonly does: "add" | "edit" | "cut" | "regenerate" | "connect";
  readonly at: number;
};

const same = (a: Message, b: Message | undefined): boolean => a.id === b?.id && a.content === b.content;

test("whatever stale and fresh senders do, no turn leaves the path unasked, and what is asked for branches (L20)", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...WAYS), { minLength: 2, maxLength: 4 }),
      fc.array(
        fc.record<Step>({
          who: fc.nat({ max: 3 }),
          does: fc.constantFrom("add", "add", "edit", "cut", "regenerate", "connect"),
          at: fc.nat({ max: 7 }),
        }),
        { minLength: 3, maxLength: 12 },
      ),
      async (ways, steps) => {
        const { sender, path } = world();
        const senders = ways.map((way) => ({ way, sender: sender(way) }));
        try {
          for (const [n, { who, does, at }] of steps.entries()) {
            const { way, sender: it } = senders[who % senders.length]!;
            if (does === "connect") {
              await it.connect();
              continue;
            }
            const before = await path();
            const held = it.messages;
            const users = held.filter(({ role }) => role === "user");
            const chosen = users[at % Math.max(users.length, 1)];
            const place = chosen === undefined ? held.length : held.indexOf(chosen);
            const isAdding = does === "add" || chosen === undefined || (does === "cut" && place === 0);
            const fresh = user(`n${n}`);
            const cut = isAdding ? [] : held.slice(does === "regenerate" ? place + 1 : place);
            const kept = held.slice(0, held.length - cut.length);
            const sent =
              does === "edit" && !isAdding
                ? [...kept, user(chosen.id, `other ${n}`)]
                : does === "regenerate" && !isAdding
                  ? kept
                  : [...kept, fresh];
            it.messages = sent;
            await it.run(`r${n}`);
            const after = await path();

            const placeOf = (messages: readonly Message[], from = 0): number => {
              const gone = new Set(ids(messages));
              const found = before.findIndex(({ id }, nth) => nth >= from && gone.has(id));
              return found < 0 ? before.length : found;
            };
            const lastOf = (messages: readonly Message[]): number =>
              before.findLastIndex(({ id }) => ids(messages).includes(id));
            // Only the end of what the thread has is cut, and what is in front of all that was sent stays.
            const firstSent = before.findIndex(({ id }) => ids(sent).includes(id));
            const cutAt = lastOf(cut) > lastOf(sent) ? placeOf(cut, firstSent + 1) : before.length;
            // What the sender asked to leave, by what it was known to have, or by what it sent. A client may hold messages in
            // another order than the thread.
            let asked = before.length;
            if (!isAdding && does === "edit") asked = placeOf([chosen]);
            const leaves = before[asked];
            if (!isAdding && does === "edit" && knows(way)) asked = Math.min(asked, cutAt);
            if (!isAdding && does === "cut" && knows(way)) asked = cutAt;
            if (!isAdding && does === "regenerate") {
              if (knows(way)) asked = cutAt;
              else if (kept.every(({ id }) => ids([...before]).includes(id))) {
                asked = 1 + before.findLastIndex(({ id }) => ids(kept).includes(id));
              }
              // Somebody edited the question meanwhile: what the sender asks again is what it has.
              const question = before.find(({ id }) => id === chosen.id);
              if (question !== undefined && !same(question, chosen)) asked = Math.min(asked, placeOf([chosen]));
            }
            const told = `${way} ${does} ${ids(sent).join()} on ${ids([...before]).join()}: ${ids([...after]).join()}`;
            expect(
              before.slice(0, asked).every((message, nth) => same(message, after[nth])),
              told,
            ).toBe(true);
            const gone = does === "edit" ? leaves : before[asked];
            if (gone !== undefined)
              expect(
                after.some((message) => same(gone, message)),
                told,
              ).toBe(false);
            expect(after.at(-1)?.id, told).toBe(`r${n}-a`);
            // Whatever else it holds stands in the thread, on this branch or on one that was left.
            if (isAdding) expect(ids(after.slice(before.length)), told).toEqual([fresh.id, `r${n}-a`]);
          }
        } finally {
          for (const close of closing.splice(0).toReversed()) await close();
        }
      },
    ),
    times(20),
  );
}, 600_000);
