import { createApp, defineComponent, h, ref, type ComputedRef } from "vue";
import { expect, onTestFinished, test, vi } from "vitest";
import type { RuntimeConnection } from "../../../src/client/index.js";
import {
  runtimePlugin,
  useRuntime,
  useRuntimeStatus,
  useThread,
  useThreads,
  type Thread,
} from "../../../src/vue/index.js";
import { SERVED, vuePage } from "../../unit/front-ends/hydrated-page.js";
import { knownThread, linksOf, pageRuntime, root } from "./kit.js";

test("a chat in Vue: messages, list of threads, status; another thread; what a component held ends with it", async () => {
  const threadId = ref<string | undefined>(undefined);
  let chat!: ComputedRef<Thread>;
  const App = defineComponent(() => {
    chat = useThread(threadId, { agentId: "echo" });
    const threads = useThreads({ limit: 10 });
    const status = useRuntimeStatus();
    expect(useRuntime()).toBeDefined();
    return () =>
      h("div", [
        ...chat.value.messages.map(({ id, role, content }) => h("p", { key: id }, `${role}: ${String(content)}`)),
        h(
          "p",
          `${threads.value.status}: ${threads.value.threads.map(({ title }) => title).join()}; ${status.value.is}`,
        ),
      ]);
  });
  const element = root();
  const app = createApp(App).use(runtimePlugin(pageRuntime));
  app.mount(element);
  const lines = (): string[] => [...element.querySelectorAll("p")].map((line) => line.innerText);
  await vi.waitFor(() => expect(lines()).toEqual(["ready: ; connected"]));
  await chat.value.send("hello");
  const said = ["user: hello", "assistant: you said hello"];
  await vi.waitFor(() => expect(lines()).toEqual([...said, "ready: hello; connected"]));
  const first = chat.value.threadId;
  threadId.value = first;
  await vi.waitFor(() => expect(chat.value.threadId).toBe(first));
  await vi.waitFor(() => expect(lines().slice(0, 2)).toEqual(said));
  threadId.value = undefined;
  // Not the messages of the one with the calls of the other.
  expect(chat.value.messages).toEqual([]);
  await vi.waitFor(() => expect(lines()).toEqual(["ready: hello; connected"]));
  expect(chat.value.threadId).not.toBe(first);
  app.unmount();
});

test("apps share the connection of one function; once it was closed, the next app connects anew", async () => {
  const connect = vi.fn(pageRuntime);
  let runtime!: RuntimeConnection;
  const Status = defineComponent(() => {
    const status = useRuntimeStatus();
    runtime = useRuntime()!;
    return () => h("p", status.value.is);
  });
  const mounted = (): HTMLElement => {
    const element = root();
    const app = createApp(Status).use(runtimePlugin(connect));
    app.mount(element);
    onTestFinished(() => app.unmount());
    return element;
  };
  const both = [mounted(), mounted()];
  await vi.waitFor(() => expect(both.map(({ innerText }) => innerText)).toEqual(["connected", "connected"]));
  expect(connect).toHaveBeenCalledTimes(1);
  await runtime.close();
  await vi.waitFor(() => expect(both.map(({ innerText }) => innerText)).toEqual(["closed", "closed"]));
  const next = mounted();
  await vi.waitFor(() => expect(next.innerText).toBe("connected"));
  expect(connect).toHaveBeenCalledTimes(2);
});

test("what a server renders is hydrated without a difference, also where the page knows more by then", async () => {
  const error = vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => error.mockRestore());
  const connect = await knownThread();
  const element = root();
  element.innerHTML = SERVED;
  const app = vuePage(connect);
  app.mount(element);
  onTestFinished(() => app.unmount());
  await vi.waitFor(() => expect(element.innerText).toMatch(/connected ready$/));
  await vi.waitFor(() =>
    expect(linksOf(element)).toEqual([
      ["#t", "ready 2"],
      [expect.stringMatching(/^#./), "ready 0"],
    ]),
  );
  expect(error).not.toHaveBeenCalled();
});

test("without the plugin the composables say what to do", () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  const app = createApp(defineComponent(() => (useThreads(), () => null)));
  expect(() => app.mount(root())).toThrow("app.use(runtimePlugin");
});
