import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../../src/client/connect-runtime.js";
import { ThreadStore } from "../../../../src/client/store/thread-store.js";
import { RunnerError } from "../../../../src/run/errors.js";
import { serveRuntime } from "../../../../src/worker/serve-runtime.js";
import { agentOf, freshDb, gated } from "../../runner/kit.js";
import { echo, host, idle } from "./thread-store-kit.js";

const said = (messages: readonly Message[]): string[] =>
  messages.map(({ role, content }) => `${role}: ${JSON.stringify(content)}`);

describe("a thread", () => {
  test("is loading, then ready, also where it has nothing; tabs show the same", async () => {
    const { open } = host({ echo: echo() });
    const [a, b] = [open("echo"), open("echo")];
    expect(a.store.getSnapshot()).toMatchObject({ status: "loading", messages: [], run: { is: "idle" } });
    await vi.waitFor(() => expect(b.store.getSnapshot().status).toBe("ready"));
    await a.store.send("hello");
    await idle(b.store);
    const expected = ['user: "hello"', 'assistant: "1 hello"'];
    await vi.waitFor(() => expect(said(a.store.getSnapshot().messages)).toEqual(expected));
    await vi.waitFor(() => expect(said(b.store.getSnapshot().messages)).toEqual(expected));
  });

  test("its message is shown at the call, its run begins before `send` resolves", async () => {
    const { gate, letOn } = gated();
    const { store, seen } = host({ echo: echo(gate) }).open("echo");
    const runId = await store.send("wait");
    const first = seen.find(({ messages }) => messages.length > 0)!;
    expect([first.isSending, first.run.is, ...said(first.messages)]).toEqual([true, "idle", 'user: "wait"']);
    await vi.waitFor(() =>
      expect(store.getSnapshot()).toMatchObject({ isSending: false, run: { is: "running", runId } }),
    );
    letOn();
    await idle(store);
  });

  test("a second message while a run is live is refused, and not part of the thread", async () => {
    const { gate, letOn } = gated();
    const { store } = host({ echo: echo(gate) }).open("echo");
    await store.send("wait");
    await expect(store.send("second")).rejects.toMatchObject({ code: "thread-busy" });
    expect(store.getSnapshot()).toMatchObject({ isSending: false, error: { code: "thread-busy" } });
    expect(said(store.getSnapshot().messages)).not.toContain('user: "second"');
    letOn();
    await idle(store);
    await store.send("third");
    expect(store.getSnapshot().error).toBeUndefined();
    await idle(store);
    await vi.waitFor(() => expect(said(store.getSnapshot().messages).at(-1)).toBe('assistant: "3 third"'));
  });

  test("of two messages in one tick the second is refused, and never comes back", async () => {
    const { store, seen } = host({ echo: echo() }).open("echo");
    const [first, second] = await Promise.allSettled([store.send("one"), store.send("two")]);
    expect([first.status, second]).toMatchObject([
      "fulfilled",
      { status: "rejected", reason: { code: "thread-busy" } },
    ]);
    await idle(store);
    await store.send("three");
    await idle(store);
    const expected = ['user: "one"', 'assistant: "1 one"', 'user: "three"', 'assistant: "3 three"'];
    await vi.waitFor(() => expect(said(store.getSnapshot().messages)).toEqual(expected));
    expect(seen.flatMap(({ messages }) => said(messages))).not.toContain('user: "two"');
  });

  test("a message has the id that it was given", async () => {
    const { store } = host({ echo: echo() }).open("echo");
    await store.send("one", { messageId: "of-a-draft" });
    await idle(store);
    expect(store.getSnapshot().messages[0]!.id).toBe("of-a-draft");
  });

  test("another agent that is named runs, and goes on to", async () => {
    const loud = agentOf(async function* ({ runId }) {
      const messageId = `${runId}-a`;
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "LOUD" };
      yield { type: EventType.TEXT_MESSAGE_END, messageId };
    });
    const { store } = host({ echo: echo(), loud }).open("echo");
    const last = (): string => said(store.getSnapshot().messages).at(-1)!;
    await store.send("one");
    await idle(store);
    await store.send("two", { agentId: "loud" });
    await vi.waitFor(() => expect(last()).toBe('assistant: "LOUD"'));
    await idle(store);
    await store.send("three");
    await vi.waitFor(() =>
      expect(said(store.getSnapshot().messages).slice(-2)).toEqual(['user: "three"', 'assistant: "LOUD"']),
    );
    await idle(store);
    await store.regenerate(store.getSnapshot().messages.at(-1)!.id, { agentId: "echo" });
    await vi.waitFor(() => expect(last()).toBe('assistant: "5 three"'));
  });

  test("a stop is shown as requested, then as the run's end", async () => {
    const { store, seen } = host({ echo: echo(new Promise(() => undefined)) }).open("echo");
    await store.send("wait");
    store.stop();
    expect(store.getSnapshot().isStopping).toBe(true);
    await idle(store, "stopped");
    expect(store.getSnapshot().isStopping).toBe(false);
    expect(seen.some(({ isStopping }) => isStopping)).toBe(true);
  });

  test("a run that fails is told by `run`; the question is run again", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => void vi.restoreAllMocks());
    const { store } = host({ echo: echo() }).open("echo");
    await store.send("fail");
    await idle(store, "errored");
    expect(store.getSnapshot()).toMatchObject({ error: undefined, run: { last: { error: { message: "no" } } } });
    const { runId } = (store.getSnapshot().run as { last: { runId: string } }).last;
    const again = await store.retry();
    await vi.waitFor(() => expect(store.getSnapshot().run).toMatchObject({ is: "idle", last: { runId: again } }));
    expect(again).not.toBe(runId);
    expect(said(store.getSnapshot().messages).filter((it) => it.startsWith("user"))).toEqual(['user: "fail"']);
  });

  test("what to tell the reader: why the last run failed, or the last call, until the next run or call; in all tabs", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => void vi.restoreAllMocks());
    const { gate, letOn } = gated();
    const { open } = host({ echo: echo(gate) });
    const [{ store }, other] = [open("echo"), open("echo")];
    const failures = (): unknown[] => [store, other.store].map((it) => it.getSnapshot().failure?.message);
    expect(failures()).toEqual([undefined, undefined]);
    await store.send("fail");
    await vi.waitFor(() => expect(failures()).toEqual(["no", "no"]));
    await store.send("wait");
    await vi.waitFor(() => expect(other.store.getSnapshot().run.is).toBe("running"));
    expect(failures()).toEqual([undefined, undefined]);
    await other.store.send("second").catch(() => undefined);
    expect(other.store.getSnapshot()).toMatchObject({ failure: { code: "thread-busy" } });
    expect(other.store.getSnapshot().failure).toBe(other.store.getSnapshot().error);
    letOn();
    for (const it of [store, other.store]) await idle(it);
    await other.store.send("third");
    await idle(other.store);
    await vi.waitFor(() => expect(failures()).toEqual([undefined, undefined]));
  });

  test("what to tell the reader: nothing of a stop; that the thread was deleted", async () => {
    const { connect, open } = host({ echo: echo(new Promise(() => undefined)) });
    const { store } = open("echo");
    await store.send("wait");
    store.stop();
    await idle(store, "stopped");
    expect(store.getSnapshot().failure).toBeUndefined();
    await connect().threads.delete("t");
    await vi.waitFor(() => expect(store.getSnapshot().failure).toMatchObject({ code: "unknown-thread" }));
  });

  test("an answer is regenerated, a question edited, in all tabs", async () => {
    const { open } = host({ echo: echo() });
    const [{ store }, other] = [open("echo"), open("echo")];
    for (const content of ["one", "two"]) {
      await store.send(content);
      await idle(store);
    }
    await vi.waitFor(() => expect(said(other.store.getSnapshot().messages)).toHaveLength(4));
    const [question, answer] = store.getSnapshot().messages;
    await store.regenerate(answer!.id);
    await idle(store);
    const regenerated = ['user: "one"', 'assistant: "1 one"'];
    await vi.waitFor(() => expect(said(other.store.getSnapshot().messages)).toEqual(regenerated));
    expect(other.store.getSnapshot().messages[1]!.id).not.toBe(answer!.id);
    await store.edit(question!.id, "uno");
    await idle(store);
    const edited = ['user: "uno"', 'assistant: "1 uno"'];
    await vi.waitFor(() => expect(said(other.store.getSnapshot().messages)).toEqual(edited));
    expect(said(store.getSnapshot().messages)).toEqual(edited);
  });

  test("what cannot be edited or regenerated is refused by name, and changes nothing", async () => {
    const { store } = host({ echo: echo() }).open("echo");
    await store.send("one");
    await idle(store);
    const before = said(store.getSnapshot().messages);
    await expect(store.edit("nobody", "x")).rejects.toMatchObject({ code: "invalid-input", message: /nobody/ });
    await expect(store.edit(store.getSnapshot().messages[1]!.id, "x")).rejects.toMatchObject({ code: "invalid-input" });
    await expect(store.regenerate("nobody")).rejects.toMatchObject({ code: "invalid-input" });
    expect(said(store.getSnapshot().messages)).toEqual(before);
  });

  test("an edit that is refused leaves the thread as it was", async () => {
    const { gate, letOn } = gated();
    const { store } = host({ echo: echo(gate) }).open("echo");
    await store.send("one");
    await idle(store);
    await store.send("wait");
    const [first] = store.getSnapshot().messages;
    await expect(store.edit(first!.id, "uno")).rejects.toMatchObject({ code: "thread-busy" });
    letOn();
    await idle(store);
    await vi.waitFor(() =>
      expect(said(store.getSnapshot().messages)).toEqual([
        'user: "one"',
        'assistant: "1 one"',
        'user: "wait"',
        'assistant: "3 wait"',
      ]),
    );
  });

  test("interrupts are shown in all tabs, answered in one, gone in all", async () => {
    const asker = agentOf(async function* ({ threadId, runId, resume }) {
      if (resume === undefined) {
        const interrupts = [{ id: "ask", reason: "confirm" }];
        yield {
          type: EventType.RUN_FINISHED,
          threadId,
          runId,
          outcome: { type: "interrupt", interrupts },
        } as BaseEvent;
        return;
      }
      const messageId = `${runId}-a`;
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: JSON.stringify(resume[0]!.payload) };
      yield { type: EventType.TEXT_MESSAGE_END, messageId };
    });
    const { open } = host({ asker });
    const [a, b] = [open("asker"), open("asker")];
    await a.store.send("may I?");
    for (const { store } of [a, b]) {
      await vi.waitFor(() => expect(store.getSnapshot().interrupts.map(({ id }) => id)).toEqual(["ask"]));
    }
    await expect(b.store.send("never mind")).rejects.toMatchObject({ code: "interrupts-open" });
    await b.store.respond({ interruptId: "ask", status: "resolved", payload: "yes" });
    for (const { store } of [a, b]) {
      await vi.waitFor(() => expect(said(store.getSnapshot().messages).at(-1)).toBe('assistant: "\\"yes\\""'));
      expect(store.getSnapshot().interrupts).toEqual([]);
    }
  });

  test("an expired interrupt can only be cancelled; an edit of the question leaves it behind", async () => {
    const asker = agentOf(async function* ({ threadId, runId, messages }) {
      if (messages.at(-1)!.content !== "may I?") return;
      const interrupts = [{ id: "ask", reason: "confirm", expiresAt: "2020-01-01T00:00:00Z" }];
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
    });
    const { store } = host({ asker }).open("asker");
    await store.send("may I?");
    await vi.waitFor(() => expect(store.getSnapshot().interrupts).toHaveLength(1));
    const refusal = { code: "interrupts-open", details: { expired: ["ask"] } };
    await expect(store.respond({ interruptId: "ask", status: "resolved" })).rejects.toMatchObject(refusal);
    await store.edit(store.getSnapshot().messages[0]!.id, "never mind");
    await idle(store);
    await vi.waitFor(() => expect(store.getSnapshot().interrupts).toEqual([]));
    expect(said(store.getSnapshot().messages)).toEqual(['user: "never mind"']);
  });

  test("attachments are parts of the message", async () => {
    const { store } = host({ echo: echo() }).open("echo");
    const attachments = [new File(["abc"], "a.txt", { type: "text/plain" }), new Blob(["x"], { type: "image/png" })];
    await store.send("see", { attachments });
    await idle(store);
    expect(store.getSnapshot().messages[0]!.content).toEqual([
      { type: "text", text: "see" },
      {
        type: "document",
        source: { type: "data", value: "YWJj", mimeType: "text/plain" },
        metadata: { filename: "a.txt" },
      },
      { type: "image", source: { type: "data", value: "eA==", mimeType: "image/png" } },
    ]);
  });

  test("the last question is run again also where it is not loaded; without one that is said", async () => {
    const { open } = host({ echo: echo() });
    const empty = open("echo", "other").store;
    await expect(empty.retry()).rejects.toMatchObject({ code: "invalid-input" });
    const { store: writer } = open("echo");
    await writer.send("one");
    await idle(writer);
    const { store } = open("echo", "t", 1);
    await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", earlier: "more" }));
    expect(said(store.getSnapshot().messages)).toEqual(['assistant: "1 one"']);
    await store.retry();
    await idle(store);
    await vi.waitFor(() => expect(said(store.getSnapshot().messages)).toEqual(['user: "one"', 'assistant: "1 one"']));
  });

  test("earlier messages are loaded where they are wanted", async () => {
    const { open } = host({ echo: echo() });
    const { store: writer } = open("echo");
    for (const content of ["one", "two", "three"]) {
      await writer.send(content);
      await idle(writer);
    }
    const { store } = open("echo", "t", 2);
    await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", earlier: "more" }));
    expect(said(store.getSnapshot().messages)).toEqual(['user: "three"', 'assistant: "5 three"']);
    const loading = store.loadEarlier(10);
    await vi.waitFor(() => expect(store.getSnapshot().earlier).toBe("loading"));
    await loading;
    expect(store.getSnapshot()).toMatchObject({ earlier: "none" });
    expect(store.getSnapshot().messages).toHaveLength(6);
  });
});

describe("what was read of a thread", () => {
  async function written() {
    const served = host({ echo: echo() });
    const { store } = served.open("echo");
    await store.send("old");
    await idle(store);
    return served;
  }

  test("is nothing where nobody listened to the end of the reading", async () => {
    const { connect } = await written();
    const store = new ThreadStore(connect(), { agentId: "echo", threadId: "t" });
    store.subscribe(() => undefined)();
    // The following ends in between.
    await new Promise((resolve) => setImmediate(resolve));
    const ready: number[] = [];
    const look = (): void => {
      const { status, messages } = store.getSnapshot();
      if (status === "ready") ready.push(messages.length);
    };
    onTestFinished(store.subscribe(look));
    await vi.waitFor(() => expect(ready.length).toBeGreaterThan(0));
    expect(new Set(ready)).toEqual(new Set([2]));
    expect(said(store.getSnapshot().messages)).toEqual(['user: "old"', 'assistant: "1 old"']);
  });

  test("is not what was sent meanwhile", async () => {
    const { open } = await written();
    const { store, seen } = open("echo");
    await store.send("new");
    await idle(store);
    await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready" }));
    const ready = seen.filter(({ status }) => status === "ready").map(({ messages }) => said(messages)[0]);
    expect(new Set(ready)).toEqual(new Set(['user: "old"']));
    expect(said(store.getSnapshot().messages)).toHaveLength(4);
  });

  test("stays, with a page that came while an edit was refused", async () => {
    const { connect, open } = host({ echo: echo(new Promise(() => undefined)) });
    const { store: writer } = open("echo");
    for (const content of ["one", "two", "three"]) {
      await writer.send(content);
      await idle(writer);
    }
    const { store } = open("echo", "t", 2);
    await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", earlier: "more" }));
    const refused = connect().agent("echo", { threadId: "t" });
    refused.addMessage({ id: "w", role: "user", content: "wait" });
    refused.runAgent().catch(() => undefined);
    // The host has the run before this store hears of it.
    const runAgent = vi.spyOn(store.agent, "runAgent").mockImplementation(async () => {
      await store.agent.loadEarlier(10);
      throw new RunnerError("thread-busy");
    });
    await expect(store.edit(store.getSnapshot().messages[0]!.id, "3")).rejects.toMatchObject({ code: "thread-busy" });
    runAgent.mockRestore();
    await vi.waitFor(() => expect(said(store.getSnapshot().messages)[0]).toBe('user: "one"'));
    await vi.waitFor(() => expect(said(store.getSnapshot().messages)).toContain('user: "three"'));
    // A stop is for what is shown as running.
    await vi.waitFor(() => expect(store.getSnapshot().run.is).toBe("running"));
    store.stop();
    await idle(store, "stopped");
  });
});

describe("a snapshot", () => {
  test("is the same until something changes, and so are the messages that did not change", async () => {
    const { open } = host({ echo: echo() });
    const { store, seen } = open("echo");
    await store.send("one");
    await idle(store);
    await vi.waitFor(() => expect(store.getSnapshot().messages).toHaveLength(2));
    const first = store.getSnapshot();
    const told = seen.length;
    // Nothing runs: nothing changes.
    store.stop();
    expect(store.getSnapshot()).toBe(first);
    expect(seen).toHaveLength(told);
    const [one, two] = first.messages;
    seen.length = 0;
    await store.send("two");
    await idle(store);
    expect(seen.length).toBeGreaterThan(0);
    for (const { messages } of seen) expect([messages[0], messages[1]]).toEqual([one, two]);
    for (const { messages } of seen) expect(messages[0] === one && messages[1] === two).toBe(true);
    // What was handed out before was not changed.
    expect(first.messages).toHaveLength(2);
  });

  test("a thousand deltas tell listeners a few times, not a thousand", async () => {
    const many = agentOf(async function* ({ runId }) {
      const messageId = `${runId}-a`;
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
      for (let n = 0; n < 1_000; n++) yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "x" };
      yield { type: EventType.TEXT_MESSAGE_END, messageId };
    });
    const { store, seen } = host({ many }).open("many");
    await store.send("go");
    await idle(store);
    await vi.waitFor(() => expect(store.getSnapshot().messages.at(-1)!.content).toHaveLength(1_000));
    expect(seen.length).toBeLessThan(200);
  });

  test("a listener that leaves and comes at once changes nothing; the last that leaves ends the following", async () => {
    const { open } = host({ echo: echo() });
    const { store, stop } = open("echo");
    const other = open("echo");
    await vi.waitFor(() => expect(store.getSnapshot().status).toBe("ready"));
    const follow = vi.spyOn(store.agent, "follow");
    stop();
    const again = store.subscribe(() => undefined);
    await Promise.resolve();
    expect(follow).not.toHaveBeenCalled();
    await other.store.send("one");
    await vi.waitFor(() => expect(store.getSnapshot().messages).toHaveLength(2));
    again();
    again();
    await Promise.resolve();
    await idle(other.store);
    await other.store.send("two");
    await idle(other.store);
    expect(store.getSnapshot().messages).toHaveLength(2);
    // Whoever comes back is told of what it has missed.
    onTestFinished(store.subscribe(() => undefined));
    await vi.waitFor(() => expect(store.getSnapshot().messages).toHaveLength(4));
  });
});

test("a thread that cannot be read says why, and is read again", async () => {
  let broken = true;
  const served = serveRuntime({
    dbName: freshDb(),
    agents: { echo: echo() },
    beforeRequestMiddleware: () => {
      if (broken) throw new Response("not now", { status: 403 });
    },
  });
  onTestFinished(() => served.close());
  const runtime = connectRuntime({ hosts: { page: async () => served.connect() } });
  onTestFinished(() => runtime.close());
  const store = new ThreadStore(runtime, { agentId: "echo", threadId: "t" });
  onTestFinished(store.subscribe(() => undefined));
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "failed", error: { code: "refused" } }));
  await expect(store.send("hello")).rejects.toMatchObject({ code: "refused" });
  expect(store.getSnapshot()).toMatchObject({ status: "failed", messages: [] });
  broken = false;
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", error: undefined }));
});
