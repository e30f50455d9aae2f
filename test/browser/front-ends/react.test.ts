import { createElement as h, memo, StrictMode, Suspense, useState, type ReactNode } from "react";
import { createRoot, hydrateRoot } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Message } from "@ag-ui/core";
import type { RuntimeConnection } from "../../../src/client/index.js";
import {
  RuntimeProvider,
  ThreadProvider,
  useFrontendTool,
  useRuntime,
  useRuntimeStatus,
  useThread,
  useThreads,
  useThreadState,
  type Thread,
} from "../../../src/react/index.js";
import { reactPage, SERVED } from "../../unit/front-ends/hydrated-page.js";
import { DELTAS, knownThread, linksOf, pageRuntime, root } from "./kit.js";

const options = { agentId: "echo" };

/** Renders in StrictMode, as `create-vite` does. */
function render(runtime: RuntimeConnection | (() => RuntimeConnection), node: ReactNode): HTMLElement {
  const element = root();
  const mounted = createRoot(element);
  onTestFinished(() => mounted.unmount());
  mounted.render(h(StrictMode, null, h(RuntimeProvider, { runtime }, node)));
  return element;
}

const text = (element: HTMLElement): string => element.innerText.trim();

test("a chat: what is sent, streams, in two places at once; the list of threads; the status", async () => {
  let chat!: Thread;
  function Chat(): ReactNode {
    chat = useThread("t", options);
    return h(
      "div",
      null,
      ...chat.messages.map(({ id, role, content }) => h("p", { key: id }, `${role}: ${String(content)}`)),
    );
  }
  function Threads(): ReactNode {
    const { threads, status } = useThreads();
    return h("p", null, `${status}: ${threads.map(({ title }) => title).join()}`);
  }
  function Status(): ReactNode {
    return h("p", null, useRuntimeStatus().is, " ", String(useRuntime() !== undefined));
  }
  const element = render(pageRuntime(), [
    h(Chat, { key: 1 }),
    h(Chat, { key: 2 }),
    h(Threads, { key: 3 }),
    h(Status, { key: 4 }),
  ]);
  await vi.waitFor(() => expect(text(element)).toBe("ready:\n\nconnected true"));
  await chat.send("hello");
  const said = "user: hello\n\nassistant: you said hello";
  await vi.waitFor(() => expect(text(element)).toBe(`${said}\n\n${said}\n\nready: hello\n\nconnected true`));
});

test("a function makes the connection once, whatever is rendered twice", async () => {
  const connect = vi.fn(pageRuntime);
  const Shown = (): ReactNode => h("p", null, useRuntimeStatus().is);
  const elements = [render(connect, h(Shown)), render(connect, h(Shown))];
  await vi.waitFor(() => expect(elements.map(text)).toEqual(["connected", "connected"]));
  expect(connect).toHaveBeenCalledTimes(1);
});

test("a connection that was closed is shown as closed; a provider that comes then connects anew", async () => {
  const connect = vi.fn(pageRuntime);
  let runtime: RuntimeConnection | undefined;
  const Shown = (): ReactNode => {
    runtime = useRuntime();
    return h("p", null, `${useRuntimeStatus().is} ${useThread("t", options).status}`);
  };
  const first = render(connect, h(Shown));
  await vi.waitFor(() => expect(text(first)).toBe("connected ready"));
  const closed = runtime!;
  await closed.close();
  const late = render(closed, h(Shown));
  await vi.waitFor(() => expect(text(late)).toBe("closed failed"));
  await vi.waitFor(() => expect(text(first)).toBe("closed ready"));
  const next = render(connect, h(Shown));
  await vi.waitFor(() => expect(text(next)).toBe("connected ready"));
  expect(connect).toHaveBeenCalledTimes(2);
});

test("1,000 deltas into the last of 200 messages render that message, and not each by itself", async () => {
  const runtime = pageRuntime();
  const renders = new Map<string, number>();
  let list = 0;
  const Line = memo(function Line({ message }: { message: Message }): ReactNode {
    renders.set(message.id, (renders.get(message.id) ?? 0) + 1);
    return h("p", null, String(message.content).length);
  });
  let chat!: Thread;
  function Chat(): ReactNode {
    chat = useThread("t", options);
    list++;
    return h("div", null, ...chat.messages.map((message) => h(Line, { key: message.id, message })));
  }
  const element = render(runtime, h(Chat));
  await vi.waitFor(() => expect(chat.status).toBe("ready"));
  for (let n = 0; n < 99; n++) {
    await chat.send(String(n));
    await vi.waitFor(() => expect(chat.run.is).toBe("idle"));
  }
  await vi.waitFor(() => expect(element.querySelectorAll("p")).toHaveLength(198));
  renders.clear();
  list = 0;
  await chat.send("many");
  await vi.waitFor(() => expect(element.lastElementChild!.lastElementChild!.textContent).toBe(String(DELTAS)));
  const answer = chat.messages.at(-1)!.id;
  const question = chat.messages.at(-2)!.id;
  // Nothing but the two new ones; StrictMode renders each twice.
  expect([...renders.keys()].sort()).toEqual([answer, question].sort());
  expect(renders.get(answer)).toBeLessThanOrEqual(list);
  // Fifty deltas per frame; a busy machine may draw some of them in two.
  expect(list / 2).toBeLessThan(DELTAS / 5);
});

test("a thread without an id begins with its first message; taking its id keeps what is shown, a new one is empty", async () => {
  let chat!: Thread;
  let setId!: (id: string | undefined) => void;
  function Chat(): ReactNode {
    const [id, set] = useState<string | undefined>(undefined);
    setId = set;
    chat = useThread(id, options);
    return h("p", null, `${chat.messages.length} ${id === undefined ? "fresh" : "given"}`);
  }
  const element = render(pageRuntime(), h(Chat));
  await vi.waitFor(() => expect(chat.status).toBe("ready"));
  await chat.send("hello");
  await vi.waitFor(() => expect(text(element)).toBe("2 fresh"));
  const { threadId } = chat;
  setId(threadId);
  await vi.waitFor(() => expect(text(element)).toBe("2 given"));
  expect(chat.threadId).toBe(threadId);
  setId(undefined);
  await vi.waitFor(() => expect(text(element)).toBe("0 fresh"));
  expect(chat.threadId).not.toBe(threadId);
  setId(threadId);
  await vi.waitFor(() => expect(text(element)).toBe("2 given"));
});

test("a part of the state renders when that part changes", async () => {
  let renders = 0;
  let runs: unknown;
  function Same(): ReactNode {
    renders++;
    return h(
      "p",
      null,
      useThreadState((state: { same?: string }) => state.same ?? "none"),
    );
  }
  function Runs(): ReactNode {
    runs = useThreadState((state: { runs?: number }) => state.runs);
    return null;
  }
  let chat!: Thread;
  function Chat(): ReactNode {
    chat = useThread("t", options);
    return null;
  }
  const inThread = h(ThreadProvider, { threadId: "t", ...options }, h(Same), h(Runs));
  const element = render(pageRuntime(), [h("div", { key: 1 }, inThread), h(Chat, { key: 2 })]);
  await vi.waitFor(() => expect(chat.status).toBe("ready"));
  await chat.send("one");
  await vi.waitFor(() => expect([runs, text(element)]).toEqual([1, "same"]));
  const before = renders;
  await vi.waitFor(() => expect(chat.run.is).toBe("idle"));
  await chat.send("two");
  await vi.waitFor(() => expect(runs).toBe(2));
  expect(renders).toBe(before);
});

test("a selector that makes a new object each time renders with each state, and no oftener", async () => {
  const error = vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => error.mockRestore());
  let shown: unknown;
  function Runs(): ReactNode {
    shown = useThreadState((state: { runs?: number }) => ({ runs: state.runs ?? 0 }));
    return h("p", null, JSON.stringify(shown));
  }
  const runtime = pageRuntime();
  const app = h(RuntimeProvider, { runtime }, h(ThreadProvider, { threadId: "t", ...options }, h(Runs)));
  const element = root();
  element.innerHTML = renderToString(app);
  const mounted = hydrateRoot(element, app);
  onTestFinished(() => mounted.unmount());
  const agent = runtime.agent("echo", { threadId: "t" });
  agent.addMessage({ id: "u", role: "user", content: "hello" });
  await agent.runAgent();
  await vi.waitFor(() => expect(text(element)).toBe('{"runs":1}'));
  expect(error).not.toHaveBeenCalled();
});

test("suspends until the history is there", async () => {
  const runtime = pageRuntime();
  const Chat = (): ReactNode => h("p", null, `read: ${useThread("t", { ...options, suspense: true }).messages.length}`);
  const element = render(runtime, h(Suspense, { fallback: h("p", null, "reading") }, h(Chat)));
  await vi.waitFor(() => expect(text(element)).toBe("reading"));
  await vi.waitFor(() => expect(text(element)).toBe("read: 0"));
});

test("suspends for no thread that does not exist yet, and not for ever in a page that a server rendered", async () => {
  const runtime = pageRuntime();
  const Chat = ({ id }: { readonly id?: string }): ReactNode =>
    h("p", null, `${useThread(id, { ...options, suspense: true }).messages.length}`);
  const app = (id?: string): ReactNode =>
    h(RuntimeProvider, { runtime }, h(Suspense, { fallback: "reading" }, h(Chat, id === undefined ? {} : { id })));
  const fresh = render(runtime, app());
  await vi.waitFor(() => expect(text(fresh)).toBe("0"));
  const agent = runtime.agent("echo", { threadId: "t" });
  agent.addMessage({ id: "u", role: "user", content: "hello" });
  await agent.runAgent();
  const element = root();
  element.innerHTML = "<!--$--><p>0</p><!--/$-->";
  const mounted = hydrateRoot(element, app("t"));
  onTestFinished(() => mounted.unmount());
  await vi.waitFor(() => expect(text(element)).toBe("2"));
});

test("what a server renders is hydrated without a difference, also where the page knows more by then", async () => {
  const error = vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => error.mockRestore());
  const connect = await knownThread();
  const element = root();
  element.innerHTML = SERVED;
  const mounted = hydrateRoot(element, reactPage(connect));
  onTestFinished(() => mounted.unmount());
  await vi.waitFor(() => expect(text(element)).toMatch(/connected ready$/));
  await vi.waitFor(() =>
    expect(linksOf(element)).toEqual([
      ["#t", "ready 2"],
      [expect.stringMatching(/^#./), "ready 0"],
    ]),
  );
  expect(error).not.toHaveBeenCalled();
});

test("without a provider the hooks say what to do", () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  const Status = (): ReactNode => h("p", null, useRuntimeStatus().is);
  expect(() => renderToString(h(Status))).toThrow("<RuntimeProvider");
  const State = (): ReactNode => h("p", null, useThreadState(String));
  expect(() => renderToString(h(State))).toThrow("<ThreadProvider>");
});

test("a tool of a component is run once in StrictMode, by the handler of the latest rendering", async () => {
  const handled: string[] = [];
  let chat!: Thread;
  let next!: (word: string) => void;
  function Chat(): ReactNode {
    const [word, setWord] = useState("first");
    next = setWord;
    chat = useThread("t", options);
    useFrontendTool<{ n: number }>({ name: "tool", description: "A tool", parameters: {} }, ({ n }) => {
      handled.push(word);
      return `${word} ${n}`;
    });
    return h(
      "p",
      null,
      chat.messages.map(({ role, content }) => (role === "assistant" ? String(content ?? "") : "")).join(" "),
    );
  }
  const element = render(pageRuntime(), h(Chat));
  await vi.waitFor(() => expect(chat.status).toBe("ready"));
  next("second");
  await vi.waitFor(() => expect(text(element)).toBe(""));
  await chat.send("use tool");
  await vi.waitFor(() => expect(text(element)).toContain("you said second 1"));
  expect(handled).toEqual(["second"]);
  expect(chat.toolCalls).toEqual([]);
});

test("without a handler the call is shown, and answered by a person", async () => {
  let chat!: Thread;
  function Chat(): ReactNode {
    useFrontendTool({ name: "tool", description: "A tool", parameters: {} });
    chat = useThread("t", options);
    return h(
      "div",
      null,
      ...chat.toolCalls.map(({ toolCallId, name, status }) =>
        h(
          "button",
          { key: toolCallId, onClick: () => void chat.answerToolCall(toolCallId, "yes") },
          `${name} ${status}`,
        ),
      ),
      ...chat.messages.map(({ id, role, content }) => h("p", { key: id }, `${role}: ${String(content ?? "")}`)),
    );
  }
  const element = render(pageRuntime(), h(Chat));
  await vi.waitFor(() => expect(chat.status).toBe("ready"));
  await chat.send("use tool");
  await vi.waitFor(() => expect(element.querySelector("button")?.innerText).toBe("tool open"));
  element.querySelector("button")!.click();
  await vi.waitFor(() => expect(text(element)).toContain("assistant: you said yes"));
});
