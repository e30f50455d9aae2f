import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { LabTabs, numbers, useBrowser } from "./driver/scripted.js";

const engine = inject("engine");
const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

const busy = { ok: false, name: "RunnerError", code: "thread-busy", message: "Thread already running" };

/** A test of what only this engine does. */
const testOn = (only: typeof engine, name: string, run: () => Promise<void>): void => {
  if (engine === only) test(name, run);
};

/** A tab on a fresh thread. */
const tabOn = async (agentId: string, host = "one", threadId = "thread") =>
  (await tabs.open(host)).follow(agentId, threadId);

describe("following", () => {
  test("a tab that reloads three times in a run, beside another, has every number once (L2)", async () => {
    const a = await tabOn("count");
    const b = await tabOn("count");
    await b.hold("thread");
    await a.start("thread", { n: 300, everyMs: 15, heldAt: 250 });
    for (const least of [20, 80, 140]) {
      await a.counted("thread", least);
      await a.tab.reload();
      await a.follow("count", "thread");
    }
    await b.letGo("thread");
    expect((await a.settled("thread")).text).toBe(numbers(300));
    expect((await b.settled("thread")).text).toBe(numbers(300));
  });

  test("a tab opened after the run has the whole of it (L2)", async () => {
    const a = await tabOn("count");
    await a.run("thread", { n: 500 });
    const b = await tabOn("count");
    await b.tab.waitFor(() => window.lab.view("thread").text !== "");
    const { messages } = await b.view("thread");
    expect(messages).toEqual([`user: {"n":500}`, `assistant: ${numbers(500)}`]);
  });

  test("a tab on another host of the database sees the run grow and end (L2)", async () => {
    const a = await tabOn("count", "one");
    const b = await tabOn("count", "two");
    await a.start("thread", { n: 100, everyMs: 10 });
    await b.counted("thread", 5);
    expect(await b.settled("thread")).toMatchObject({ text: numbers(100), run: { last: { status: "finished" } } });
  });

  test.each(["no", "before", "between"])(
    "readings that overlap, with a question open and follow() (%s), each bring the thread (L2)",
    async (follow) => {
      const a = await tabs.open("one");
      const shown = await a.tab.evaluate(async (when) => {
        const asker = window.lab.runtime.agent("asker", { threadId: "asked" });
        asker.addMessage({ id: "may", role: "user", content: "may I?" });
        await asker.runAgent();
        const agent = window.lab.runtime.agent("asker", { threadId: "asked" });
        const told: string[] = [];
        const tell = (): void => {
          const questions = agent.pendingInterrupts.map(({ id }) => id);
          told.push(`${agent.messages.map(({ role }) => role).join()} ${questions.join()}`);
        };
        if (when === "before") agent.follow();
        // What React's StrictMode makes of an effect that clears the messages and connects, twice.
        for (let round = 0; round < 2; round++) {
          agent.setMessages([]);
          const one = agent.connectAgent();
          const detached = agent.detachActiveRun();
          if (when === "between") agent.follow();
          agent.setMessages([]);
          const two = agent.connectAgent();
          await Promise.all([one, detached, two]);
          tell();
        }
        return told;
      }, follow);
      expect(shown).toEqual(["user,assistant question", "user,assistant question"]);
    },
  );

  test.each([false, true])(
    "connects that are detached in the middle of a live run, messages cleared between, each show it (follow: %s; L2, L11)",
    async (follows) => {
      type Kept = typeof globalThis & { over?: Promise<string> };
      const [a, b] = [await tabOn("count"), await tabs.open("one")];
      await a.hold("thread");
      await a.start("thread", { n: 100, everyMs: 1, heldAt: 50 });
      await a.counted("thread", 5);
      const shown = await b.tab.evaluate(async (follow) => {
        const agent = window.lab.runtime.agent("count", { threadId: "thread" });
        const textOf = (): string => {
          const content = agent.messages.findLast(({ role }) => role === "assistant")?.content;
          return typeof content === "string" ? content : "";
        };
        const live = async (): Promise<string> => {
          while (!textOf().startsWith("0 1 2")) await new Promise((resolve) => setTimeout(resolve, 5));
          return agent.messages.map(({ role }) => role).join();
        };
        if (follow) agent.follow();
        const told: string[] = [];
        for (let round = 0; round < 5; round++) {
          agent.setMessages([]);
          const one = agent.connectAgent();
          // At once, as StrictMode does, and once the live run shows.
          if (round % 2 === 1) told.push(await live());
          const detached = agent.detachActiveRun();
          agent.setMessages([]);
          const two = agent.connectAgent();
          told.push(await live());
          await agent.detachActiveRun();
          await Promise.all([one, detached, two]);
        }
        agent.setMessages([]);
        (globalThis as Kept).over = agent.connectAgent().then(textOf);
        told.push(await live());
        return told;
      }, follows);
      expect(shown).toEqual(Array(8).fill("user,assistant"));
      await a.letGo("thread");
      expect(await b.tab.evaluate(() => (globalThis as Kept).over)).toBe(numbers(100));
      expect(await a.settled("thread")).toMatchObject({ text: numbers(100), run: { last: { status: "finished" } } });
    },
  );

  test("a run goes on when the tab that started it closes (L11)", async () => {
    const a = await tabOn("count");
    const b = await tabOn("count");
    await b.hold("thread");
    await a.start("thread", { n: 100, everyMs: 15, heldAt: 50 });
    await b.counted("thread", 5);
    await a.tab.close();
    await b.letGo("thread");
    expect((await b.settled("thread")).text).toBe(numbers(100));
  });

  test("a branch that begins in one tab is followed in the others, here and in another host, long threads too (L2)", async () => {
    const editor = await tabOn("echo");
    for (const text of ["one", "two", "three"]) expect(await editor.run("thread", text)).toEqual({ ok: true });
    const followers = [await tabOn("echo"), await tabOn("echo", "two")];
    for (const { tab } of [editor, ...followers]) {
      await tab.waitFor(() => window.lab.view("thread").messages.length === 6);
    }
    // One that has the last messages only edits the second question.
    const outcome = await editor.tab.evaluate(async () => {
      const agent = window.lab.runtime.agent("echo", { threadId: "thread", messageLimit: 4 });
      await agent.connectAgent();
      agent.setMessages([{ ...agent.messages[0]!, id: "edited", content: "other" } as (typeof agent.messages)[number]]);
      await agent.runAgent();
      const shown = agent.messages.map(({ content }) => content);
      while (agent.hasEarlier) await agent.loadEarlier();
      return { shown, all: agent.messages.map(({ content }) => content) };
    });
    expect(outcome).toEqual({ shown: ["other", "other"], all: ["one", "one", "other", "other"] });
    for (const { tab } of [editor, ...followers]) {
      await tab.waitFor(
        () => window.lab.view("thread").messages.join() === "user: one,assistant: one,user: other,assistant: other",
      );
    }
  });

  test("a page that fetches adds to a turn that it has not seen, and cuts off one that it has (L20)", async () => {
    const [a, b] = [await tabs.open("one"), await tabs.open("one")];
    /** Runs `echo` with messages of these ids, by the tab's HTTP face, and tells the thread's. */
    const run = (lab: typeof a, runId: string, sent: readonly string[]): Promise<string[]> =>
      lab.tab.evaluate(
        async (id, messageIds) => {
          const messages = messageIds.map((messageId) =>
            messageId.startsWith("echo-")
              ? { id: messageId, role: "assistant", content: "" }
              : { id: messageId, role: "user", content: messageId },
          );
          const input = {
            threadId: "fetched",
            runId: id,
            messages,
            state: {},
            tools: [],
            context: [],
            forwardedProps: {},
          };
          const headers = { "content-type": "application/json" };
          const { runtime } = window.lab;
          const init = { method: "POST", headers, body: JSON.stringify(input) };
          await (await runtime.fetch("/agent/echo/run", init)).text();
          const told = (await (await runtime.fetch("/threads/fetched/messages")).json()) as {
            messages: { id: string }[];
          };
          return told.messages.map((message) => message.id);
        },
        runId,
        sent,
      );
    await run(a, "r1", ["one"]);
    expect(await run(b, "r2", ["two"])).toEqual(["one", "echo-r1", "two", "echo-r2"]);
    // It has not seen the second turn.
    const path = ["one", "echo-r1", "two", "echo-r2", "three", "echo-r3"];
    expect(await run(a, "r3", ["one", "echo-r1", "three"])).toEqual(path);
    // It has seen the third.
    expect(await run(a, "r4", ["one", "echo-r1", "other"])).toEqual([...path.slice(0, 4), "other", "echo-r4"]);
  });

  testOn("chromium", "the reload of the only tab does not end a run (L11, extendedLifetime)", async () => {
    const a = await tabOn("count");
    await a.start("thread", { n: 200, everyMs: 15 });
    await a.counted("thread", 10);
    expect(await a.tab.evaluate(() => window.lab.status)).toMatchObject({ survives: "reload" });
    await a.tab.reload();
    await a.follow("count", "thread");
    expect(await a.settled("thread")).toMatchObject({ text: numbers(200), run: { last: { status: "finished" } } });
  });

  testOn("firefox", "a run that the reload of the only tab ended is shown as broken (L9)", async () => {
    const a = await tabOn("count");
    await a.start("thread", { n: 100_000, everyMs: 15 });
    await a.counted("thread", 10);
    expect(await a.tab.evaluate(() => window.lab.status)).toMatchObject({ survives: "tab-close" });
    const { text } = await a.view("thread");
    await a.tab.reload();
    await a.follow("count", "thread");
    const view = await a.settled("thread");
    expect(view.run).toMatchObject({ is: "idle", last: { status: "broken" } });
    expect(view.ends).toMatchObject([{ type: "RUN_ERROR", code: "RUN_BROKEN" }]);
    // L8: what was shown is still there.
    expect(view.text.startsWith(text)).toBe(true);
    expect(numbers(100_000).startsWith(view.text)).toBe(true);
  });

  testOn("firefox", "a thread with a broken run takes the next one (L9)", async () => {
    const a = await tabOn("count");
    await a.start("thread", { n: 100_000, everyMs: 15 });
    await a.counted("thread", 3);
    await a.tab.reload();
    await a.follow("count", "thread");
    await a.settled("thread");
    expect(await a.run("thread", { n: 5 })).toEqual({ ok: true });
    expect((await a.view("thread")).text).toBe(numbers(5));
  });
});

describe("a run started right after follow()", () => {
  test("is known as running (L2)", async () => {
    const a = await tabOn("silent");
    await a.start("thread", "wait");
    await a.running("thread");
    await a.stop("thread");
    await a.settled("thread");
  });

  test("reaches the subscriber once (L2)", async () => {
    const a = await tabOn("echo");
    await a.run("thread", "hello");
    const b = await tabOn("echo");
    await b.tab.waitFor(() => window.lab.view("thread").text === "hello");
    expect((await a.view("thread")).ends).toEqual([{ type: "RUN_FINISHED" }]);
  });
});

/** How often a claim follows an end. */
const TIMES = Math.ceil((engine === "chromium" ? 1_000 : 200) * Math.min(1, inject("propertyFactor")));

describe("one run per thread", () => {
  for (const [name, host] of [
    ["a second run of a thread is refused in another tab", "one"],
    ["a second run of a thread is refused by another host of the database", "two"],
  ] as const) {
    test(`${name} (L5)`, async () => {
      const a = await tabOn("count", "one");
      await a.start("thread", { n: 100_000, everyMs: 20 }, "the-run");
      await a.counted("thread", 1);
      const b = await tabOn("count", host, "other");
      expect(await b.runUnseen("count", "thread")).toEqual({ ...busy, runId: "the-run" });
      await a.stop("thread");
      await a.settled("thread");
      expect(await b.runUnseen("count", "thread", { n: 1 })).toEqual({ ok: true });
    });
  }

  test("a tab that sees the run is refused as well (L5)", async () => {
    const a = await tabOn("count");
    const b = await tabOn("count");
    await a.start("thread", { n: 100_000, everyMs: 20 }, "the-run");
    await b.running("thread");
    expect(await b.run("thread", {})).toEqual({ ...busy, runId: "the-run" });
    await b.stop("thread");
    await b.settled("thread");
  });

  test("of runs started at once on two hosts one is taken, the other refused (L5)", async () => {
    const [a, b] = [await tabOn("count", "one", "x"), await tabOn("count", "two", "x")];
    for (let round = 0; round < 20; round++) {
      const order = { n: 20, everyMs: 5 };
      const [ofA, ofB] = await Promise.all([
        a.runUnseen("count", `race-${round}`, order),
        b.runUnseen("count", `race-${round}`, order),
      ]);
      const outcomes = [ofA, ofB];
      // Over a remote protocol the two need not overlap; two runs that both succeed came one after the other.
      expect(outcomes.some(({ ok }) => ok)).toBe(true);
      for (const outcome of outcomes) if (!outcome.ok) expect(outcome).toMatchObject(busy);
    }
  });

  test(`a run started when the one before has ended is never refused: ${TIMES} times (L5)`, async () => {
    const a = await tabOn("echo", "one", "x");
    const refusals = await a.tab.evaluate(async (times) => {
      const agent = window.lab.runtime.agent("echo", { threadId: "thread" });
      const failures: string[] = [];
      for (let i = 0; i < times; i++) {
        agent.addMessage({ id: `m${i}`, role: "user", content: String(i) });
        try {
          await agent.runAgent();
        } catch (error) {
          failures.push(`${i}: ${String(error)}`);
        }
        // What is measured is the claim; a long history would measure the client.
        if (i % 50 === 49) agent.threadId = `thread-${i}`;
      }
      return failures;
    }, TIMES);
    expect(refusals).toEqual([]);
  });

  test(`a run started by the subscriber on RUN_FINISHED is never refused: ${TIMES} times (L5)`, async () => {
    const a = await tabOn("echo", "one", "x");
    const refusals = await a.tab.evaluate(
      (times) =>
        new Promise<string[]>((resolve) => {
          const failures: string[] = [];
          let ended = 0;
          const next = (i: number): void => {
            if (i === times) return;
            const agent = window.lab.runtime.agent("echo", { threadId: `thread-${Math.floor(i / 50)}` });
            agent.addMessage({ id: `m${i}`, role: "user", content: String(i) });
            agent
              .runAgent({}, { onRunFinishedEvent: () => next(i + 1) })
              .catch((error: unknown) => {
                failures.push(`${i}: ${String(error)}`);
                next(i + 1);
              })
              .finally(() => {
                if (++ended === times) resolve(failures);
              });
          };
          next(0);
        }),
      TIMES,
    );
    expect(refusals).toEqual([]);
  });
});

describe("stop", () => {
  for (const agent of ["count", "silent", "stubborn"]) {
    test(`a tab of another host stops the agent "${agent}" (L7, L11)`, async () => {
      const a = await tabOn(agent, "one");
      const b = await tabOn(agent, "two");
      await a.start("thread", { n: 100_000, everyMs: 20 });
      await b.running("thread");
      await b.stop("thread");
      for (const tab of [a, b]) {
        const { run, ends } = await tab.settled("thread");
        expect(run).toMatchObject({ last: { status: "stopped" } });
        expect(ends).toEqual([{ type: "RUN_FINISHED", outcome: "cancelled" }]);
      }
    });
  }

  test("a stopped run resolves runAgent (L12)", async () => {
    const a = await (await tabs.open()).takePart("silent", "thread");
    await a.start("thread", "wait");
    await a.running("thread");
    await a.stop("thread");
    await a.tab.waitFor(() => window.lab.view("thread").outcomes.length > 0);
    expect((await a.view("thread")).outcomes).toEqual([{ ok: true }]);
  });
});

describe("failures", () => {
  test("an agent that throws ends its run with its message, and the thread is free (L7)", async () => {
    const a = await (await tabs.open()).takePart("fail", "thread");
    await a.run("thread", "first");
    const { ends, messages } = await a.settled("thread");
    expect(ends).toMatchObject([{ type: "RUN_ERROR", message: "the script broke" }]);
    expect(messages).toEqual(["user: first", "assistant: as far as here"]);
    expect(await a.runUnseen("echo", "thread")).toEqual({ ok: true });
  });

  test("why a run failed is told in every tab, of whichever host, before and after it (L2)", async () => {
    const a = await (await tabs.open()).takePart("fail", "thread");
    const before = [await (await tabs.open()).follow("fail", "thread")];
    before.push(await (await tabs.open("two")).follow("fail", "thread"));
    await a.run("thread", "first");
    const later = [await (await tabs.open()).follow("fail", "thread")];
    later.push(await (await tabs.open("two")).follow("fail", "thread"));
    for (const tab of [a, ...before, ...later]) {
      expect((await tab.settled("thread")).run).toMatchObject({
        last: { status: "errored", error: { message: "the script broke", code: "AGENT_FAILED" } },
      });
    }
  });

  test("an agent that the host does not have is refused (L13)", async () => {
    const a = await tabOn("echo");
    expect(await a.runUnseen("nobody", "thread")).toMatchObject({
      ok: false,
      name: "RunnerError",
      code: "unknown-agent",
      message: expect.stringMatching(/: "nobody" \(there are .*"echo"/),
    });
  });

  test("connectAgent() of an agent that follows a thread without runs resolves (L13)", async () => {
    const a = await tabs.open();
    const ended = await a.tab.evaluate(async () => {
      const agent = window.lab.runtime.agent("echo", { threadId: "nothing yet" });
      agent.follow();
      const late = new Promise<string>((resolve) => setTimeout(resolve, 100_000, "it hangs"));
      return Promise.race([agent.connectAgent().then(() => "resolved"), late]);
    });
    expect(ended).toBe("resolved");
  });

  test("an empty thread id is refused (L13)", async () => {
    const a = await tabOn("echo");
    expect(await a.runUnseen("echo", "")).toMatchObject({ ok: false, name: "RunnerError", code: "invalid-input" });
  });

  test("a page prints no errors while it runs, follows and stops", async () => {
    const a = await tabOn("count");
    const b = await tabOn("count");
    await a.start("thread", { n: 100_000, everyMs: 10 });
    await b.counted("thread", 3);
    await b.stop("thread");
    await a.settled("thread");
    await b.settled("thread");
    expect([...a.tab.errors, ...b.tab.errors]).toEqual([]);
  });
});
