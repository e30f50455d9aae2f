import { mount, unmount } from "svelte";
import { expect, onTestFinished, test, vi } from "vitest";
import type {
  RuntimeConnection,
  RuntimeStatus,
  ThreadListSnapshot,
  ThreadSnapshot,
} from "../../../src/client/index.js";
import { getRuntime, runtimeStatus, setRuntime, thread, threads, type Thread } from "../../../src/svelte/index.js";
import { pageRuntime, root } from "./kit.js";

/** A component is a function; `script` is what would stand in its script tag. */
const mounted = (script: () => void): void => {
  const app = mount(script as unknown as Parameters<typeof mount>[0], { target: root() });
  onTestFinished(() => unmount(app));
};

test("a chat in Svelte: messages, list of threads, status; another reader of the thread sees the same", async () => {
  let chat!: Thread;
  const seen: { thread?: ThreadSnapshot; other?: ThreadSnapshot; list?: ThreadListSnapshot; status?: string } = {};
  mounted(() => {
    setRuntime(pageRuntime);
    expect(getRuntime()).toBeDefined();
    chat = thread("t", { agentId: "echo" });
    onTestFinished(chat.subscribe((it) => (seen.thread = it)));
    onTestFinished(thread("t", { agentId: "echo", messageLimit: 1 }).subscribe((it) => (seen.other = it)));
    onTestFinished(threads({ limit: 10 }).subscribe((it) => (seen.list = it)));
    onTestFinished(runtimeStatus().subscribe(({ is }) => (seen.status = is)));
  });
  expect(seen).toMatchObject({ thread: { status: "loading" }, list: { status: "loading" } });
  await vi.waitFor(() => expect(seen).toMatchObject({ thread: { status: "ready" }, list: { status: "ready" } }));
  await chat.send("hello");
  await vi.waitFor(() => {
    expect(seen.thread!.messages.map(({ content }) => content)).toEqual(["hello", "you said hello"]);
    expect(seen.other!.messages.at(-1)).toMatchObject({ content: "you said hello" });
    expect(seen).toMatchObject({ list: { threads: [{ title: "hello" }] }, status: "connected" });
  });
});

test("however often it is mounted, a component connects once; after the connection was closed, it connects anew", async () => {
  const connect = vi.fn(pageRuntime);
  let runtime!: RuntimeConnection;
  /** What the status of a mounted component is. */
  const shown = (): (() => string | undefined) => {
    let status: RuntimeStatus | undefined;
    mounted(() => {
      setRuntime(connect);
      runtime = getRuntime()!;
      onTestFinished(runtimeStatus().subscribe((now) => (status = now)));
    });
    return () => status?.is;
  };
  const both = [shown(), shown()];
  await vi.waitFor(() => expect(both.map((status) => status())).toEqual(["connected", "connected"]));
  expect(connect).toHaveBeenCalledTimes(1);
  await runtime.close();
  expect(both.map((status) => status())).toEqual(["closed", "closed"]);
  const next = shown();
  await vi.waitFor(() => expect(next()).toBe("connected"));
  expect(connect).toHaveBeenCalledTimes(2);
});

test("without a runtime the stores say what to do", () => {
  expect(() => mounted(() => void threads())).toThrow("setRuntime");
});
