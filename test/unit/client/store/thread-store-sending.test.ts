import { expect, onTestFinished, test, vi } from "vitest";
import { ThreadStore } from "../../../../src/client/store/thread-store.js";
import { agentOf, gated } from "../../runner/kit.js";
import { hostOf } from "../../waiting/kit.js";
import { echo, host, idle } from "./thread-store-kit.js";

/*
 * What is sent before it can be: its files are being read, or the thread is.
 */

/** A host that answers readers once it is let on. */
function slowReading() {
  const { gate, letOn } = gated();
  onTestFinished(letOn);
  const { gate: hold, letOn: goOn } = gated();
  onTestFinished(goOn);
  const { connect } = hostOf({
    agents: { echo: echo(hold) },
    beforeRequestMiddleware: async ({ resolved: { route } }) => {
      if (route === "agent/connect") await gate;
    },
  });
  const store = new ThreadStore(connect(), { agentId: "echo", threadId: "t" });
  onTestFinished(store.subscribe(() => undefined));
  return { connect, store, letOn, goOn };
}

const contents = (store: ThreadStore): unknown[] => store.getSnapshot().messages.map(({ content }) => content);
const userIds = (store: ThreadStore): string[] =>
  store.getSnapshot().messages.flatMap(({ id, role }) => (role === "user" ? [id] : []));

test("a message that comes before the history is shown at once, and its run begins behind the history, which is there", async () => {
  const { connect, store, letOn, goOn } = slowReading();
  const before = connect().agent("echo", { threadId: "t" });
  before.addMessage({ id: "old", role: "user", content: "old" });
  await before.runAgent();
  const sending = store.send("wait");
  expect(store.getSnapshot()).toMatchObject({ status: "loading", isSending: true });
  expect(contents(store)).toEqual(["wait"]);
  letOn();
  await sending;
  await vi.waitFor(() => expect(contents(store)).toEqual(["old", "1 old", "wait", "3 "]));
  expect(store.getSnapshot()).toMatchObject({ status: "ready", isSending: false, run: { is: "running" } });
  goOn();
  await idle(store);
});

test("a history that does not come holds no message", async () => {
  const { setTimeout } = globalThis;
  const timers = vi
    .spyOn(globalThis, "setTimeout")
    .mockImplementation(((work: () => void, ms?: number) => setTimeout(work, ms === 4_000 ? 0 : ms)) as never);
  onTestFinished(() => timers.mockRestore());
  const { store } = slowReading();
  await store.send("wait");
  expect(store.getSnapshot()).toMatchObject({ isSending: false });
  await vi.waitFor(() => expect(store.getSnapshot().run.is).toBe("running"));
});

test("a stop takes a message back that waits for the history", async () => {
  const { store, letOn } = slowReading();
  const sending = store.send("wait");
  store.stop();
  await expect(sending).rejects.toMatchObject({ code: "cancelled" });
  expect(store.getSnapshot()).toMatchObject({ isSending: false, messages: [] });
  letOn();
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", messages: [] }));
});

/** A file that is read once it is let on. */
function slowFile() {
  const { gate, letOn } = gated();
  const file = new Blob(["abc"], { type: "text/plain" });
  const bytes = file.arrayBuffer.bind(file);
  vi.spyOn(file, "arrayBuffer").mockImplementation(() => gate.then(bytes));
  return { file, letOn };
}

async function ready() {
  const { store, seen } = host({ echo: echo() }).open("echo");
  await vi.waitFor(() => expect(store.getSnapshot().status).toBe("ready"));
  return { store, seen };
}

test("a message whose files are being read is being sent: a second one is refused, and one that may wait comes behind it", async () => {
  const { store } = await ready();
  const { file, letOn } = slowFile();
  const first = store.send("see", { attachments: [file], messageId: "first" });
  expect(store.getSnapshot()).toMatchObject({ isSending: true, messages: [] });
  await expect(store.send("see", { attachments: [file] })).rejects.toMatchObject({ code: "thread-busy" });
  expect(store.getSnapshot().isSending).toBe(true);
  const second = store.send("next", { onBusy: "queue", messageId: "second" });
  letOn();
  await Promise.all([first, second]);
  await vi.waitFor(() => expect(userIds(store)).toEqual(["first", "second"]));
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ run: { is: "idle" }, isSending: false }));
});

test("a stop takes a message back whose files are being read, and it never comes", async () => {
  const { store, seen } = await ready();
  const { file, letOn } = slowFile();
  const sending = store.send("see", { attachments: [file] });
  store.stop();
  await expect(sending).rejects.toMatchObject({ code: "cancelled" });
  expect(store.getSnapshot().isSending).toBe(false);
  letOn();
  await store.send("next");
  await idle(store);
  await vi.waitFor(() => expect(contents(store)).toEqual(["next", "1 next"]));
  expect(seen.flatMap(({ messages }) => messages.map(({ content }) => content))).not.toContain("see");
});

test("a file that cannot be read is told, and the next message is sent", async () => {
  const { store } = await ready();
  const { file } = slowFile();
  vi.spyOn(file, "arrayBuffer").mockRejectedValue(new Error("it is gone"));
  await expect(store.send("see", { attachments: [file] })).rejects.toThrow("it is gone");
  expect(store.getSnapshot()).toMatchObject({ isSending: false, failure: { message: "it is gone" } });
  await store.send("next");
  await idle(store);
});

test("a message comes behind one that still waits, also if the file of one between them cannot be read", async () => {
  const { store } = await ready();
  const { file, letOn } = slowFile();
  const first = store.send("see", { attachments: [file], messageId: "first" });
  const { file: broken } = slowFile();
  vi.spyOn(broken, "arrayBuffer").mockRejectedValue(new Error("it is gone"));
  await expect(store.send("see", { attachments: [broken], onBusy: "queue" })).rejects.toThrow("it is gone");
  const third = store.send("next", { onBusy: "queue", messageId: "third" });
  expect(store.agent.messages).toEqual([]);
  letOn();
  await Promise.all([first, third]);
  await vi.waitFor(() => expect(userIds(store)).toEqual(["first", "third"]));
});

test.each<[string, (store: ThreadStore) => void]>([
  ["a stop", (store) => store.stop()],
  ["a state that is set", (store) => store.setState({ n: 1 })],
])("%s clears the error of the call before it", async (_name, call) => {
  const { store } = await ready();
  await expect(store.regenerate("nobody")).rejects.toMatchObject({ code: "invalid-input" });
  expect(store.getSnapshot().error).toBeDefined();
  call(store);
  expect(store.getSnapshot()).toMatchObject({ error: undefined, failure: undefined });
});

test("a new thread that could not be read is ready when its follower has read it, not at the store's own next try", async () => {
  let isLocked = true;
  const { connect } = hostOf({
    agents: { never: agentOf(async function* () {}) },
    beforeRequestMiddleware: () => {
      if (isLocked) throw new Response("not now", { status: 403 });
    },
  });
  const store = new ThreadStore(connect(), { agentId: "never", threadId: "t" });
  const { agent } = store;
  const connectAgent = agent.connectAgent.bind(agent);
  const tries = vi.spyOn(agent, "connectAgent").mockImplementationOnce(() => connectAgent());
  tries.mockImplementation(() => new Promise(() => undefined));
  onTestFinished(store.subscribe(() => undefined));
  await vi.waitFor(() => expect(store.getSnapshot().status).toBe("failed"));
  isLocked = false;
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", error: undefined }), 10_000);
});
