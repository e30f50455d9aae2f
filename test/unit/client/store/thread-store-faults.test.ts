import { defer, throwError, type BehaviorSubject } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { ThreadStore } from "../../../../src/client/store/thread-store.js";
import type { ThreadRun } from "../../../../src/client/thread-run.js";
import { RunnerError } from "../../../../src/run/errors.js";
import { gated } from "../../runner/kit.js";
import { echo, host, idle } from "./thread-store-kit.js";

/*
 * What the framework of a page hands over, and a connection that fails.
 */

/** As `reactive` of Vue and `$state` of Svelte make them. */
const proxied = <T extends object>(value: T): T =>
  new Proxy(value, {
    get: (target, key, self) => {
      const found: unknown = Reflect.get(target, key, self);
      return typeof found === "object" && found !== null ? proxied(found) : found;
    },
  });

test("proxies may be given as content, parameters and state", async () => {
  const { open } = host({ echo: echo() });
  const { store } = open("echo");
  store.setState(proxied({ deep: { n: 1 } }));
  await store.send(proxied([{ type: "text" as const, text: "hello" }]), {
    forwardedProps: proxied({ theme: { dark: true } }),
  });
  await idle(store);
  expect(store.getSnapshot().state).toEqual({ deep: { n: 1 } });
});

test("what waits is shown although its list could not be read at first", async () => {
  const { gate, letOn } = gated();
  const { connect } = host({ echo: echo(gate) });
  const runtime = connect();
  let failures = 0;
  const { waiting } = runtime;
  const watch = waiting.watch.bind(waiting);
  vi.spyOn(waiting, "watch").mockImplementation((threadId) =>
    defer(() => (++failures === 1 ? throwError(() => new RunnerError("outdated")) : watch(threadId))),
  );
  const store = new ThreadStore(runtime, { agentId: "echo", threadId: "t" });
  onTestFinished(store.subscribe(() => undefined));
  await store.send("wait");
  await store.send("next", { onBusy: "queue" });
  await vi.waitFor(() => expect(store.getSnapshot().waiting).toHaveLength(1), { timeout: 10_000 });
  letOn();
  await vi.waitFor(() => expect(store.getSnapshot().waiting).toEqual([]), { timeout: 10_000 });
});

test("a stop that cannot be asked for is told, and can be tried again", async () => {
  const { gate, letOn } = gated();
  const { open } = host({ echo: echo(gate) });
  const { store } = open("echo");
  await store.send("wait");
  const { link } = store.agent as unknown as { link: { call: (...of: unknown[]) => Promise<unknown> } };
  const call = link.call.bind(link);
  const calling = vi
    .spyOn(link, "call")
    .mockImplementation((name, ...of) => (name === "stop" ? Promise.reject(new Error("no token")) : call(name, ...of)));
  store.stop();
  await vi.waitFor(() =>
    expect(store.getSnapshot()).toMatchObject({ isStopping: false, failure: { message: "no token" } }),
  );
  calling.mockRestore();
  store.stop();
  await idle(store, "stopped");
  letOn();
});

test("the first answer of a new thread is shown while it streams, not as loading", async () => {
  const { gate, letOn } = gated();
  const { open } = host({ echo: echo(gate) });
  const { store } = open("echo");
  await store.send("wait");
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", run: { is: "running" } }));
  letOn();
  await idle(store);
});

test("a stop that could not be asked for while nobody listened is told to whoever comes later", async () => {
  const { gate, letOn } = gated();
  onTestFinished(letOn);
  const { open } = host({ echo: echo(gate) });
  const { store, stop } = open("echo");
  await store.send("wait");
  const { link } = store.agent as unknown as { link: { call: (...of: unknown[]) => Promise<unknown> } };
  const call = link.call.bind(link);
  let refuse!: (error: Error) => void;
  const refused = new Promise((_, reject) => (refuse = reject));
  vi.spyOn(link, "call").mockImplementation((name, ...of) => (name === "stop" ? refused : call(name, ...of)));
  store.stop();
  expect(store.getSnapshot().isStopping).toBe(true);
  stop();
  refuse(new Error("no token"));
  await refused.catch(() => undefined);
  onTestFinished(store.subscribe(() => undefined));
  await vi.waitFor(() =>
    expect(store.getSnapshot()).toMatchObject({ isStopping: false, error: { message: "no token" } }),
  );
});

test("a run that takes the place of one that was to be stopped is not shown as stopping", async () => {
  const { gate, letOn } = gated();
  onTestFinished(letOn);
  const { open } = host({ echo: echo(gate) });
  const { store } = open("echo");
  await store.send("wait");
  const { link, runState$ } = store.agent as unknown as {
    link: { call: (...of: unknown[]) => Promise<unknown> };
    runState$: BehaviorSubject<ThreadRun>;
  };
  vi.spyOn(link, "call").mockImplementation(() => new Promise(() => undefined));
  store.stop();
  expect(store.getSnapshot().isStopping).toBe(true);
  // As a snapshot tells it, of a thread that went on while this tab slept.
  runState$.next({ is: "running", runId: "next", runIndex: 1 });
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ run: { runId: "next" }, isStopping: false }));
  vi.restoreAllMocks();
});

test("a message under an id that the thread has is refused: it would be shown twice", async () => {
  const { gate, letOn } = gated();
  const { open } = host({ echo: echo(gate) });
  const { store } = open("echo");
  await store.send("wait", { messageId: "m" });
  const known = { code: "invalid-input", details: { field: "messageId" } };
  await expect(store.send("wait", { messageId: "m", onBusy: "queue" })).rejects.toMatchObject(known);
  await store.send("next", { messageId: "n", onBusy: "queue" });
  await vi.waitFor(() => expect(store.getSnapshot().waiting).toHaveLength(1));
  await expect(store.send("next", { messageId: "n", onBusy: "queue" })).rejects.toMatchObject(known);
  letOn();
  await vi.waitFor(() => expect(store.getSnapshot().messages).toHaveLength(4));
  await idle(store);
  await expect(store.send("again", { messageId: "n" })).rejects.toMatchObject(known);
  expect(
    store
      .getSnapshot()
      .messages.filter(({ role }) => role === "user")
      .map(({ id }) => id),
  ).toEqual(["m", "n"]);
});
