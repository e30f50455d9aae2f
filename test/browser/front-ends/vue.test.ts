import { createApp, defineComponent, h, ref, type ComputedRef } from "vue";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  runtimePlugin,
  useRuntime,
  useRuntimeStatus,
  useThread,
  useThreads,
  type Thread,
} from "../../../src/vue/index.js";
import { pageRuntime, root } from "./kit.js";

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

test("without the plugin the composables say what to do", () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  const app = createApp(defineComponent(() => (useThreads(), () => null)));
  expect(() => app.mount(root())).toThrow("app.use(runtimePlugin");
});
