import "fake-indexeddb/auto";
import { expect, onTestFinished, test } from "vitest";
import { ThreadStore } from "../../../src/client/store/thread-store.js";
import { gatedAgent, hostOf, network, until } from "./kit.js";

const contents = (store: ThreadStore) => store.getSnapshot().messages.map(({ content }) => content);
const waiting = (store: ThreadStore): string[] =>
  store
    .getSnapshot()
    .waiting.map(({ messages, reason }) => `${messages.map(({ content }) => String(content)).join()} ${reason.is}`);

test("what is sent while an answer streams waits beside the messages, in every tab, and comes with its run (L8)", async () => {
  const { agent, executed, open } = gatedAgent();
  const { connect } = hostOf({ agents: { gated: agent } });
  const [one, other] = [connect(), connect()].map((runtime) => {
    const store = new ThreadStore(runtime, { agentId: "gated", threadId: "t" });
    onTestFinished(store.subscribe(() => undefined));
    return store;
  }) as [ThreadStore, ThreadStore];
  await one.send("first");
  await until(() => expect(contents(other)).toEqual(["first", ""]));
  const second = await one.send("second", { onBusy: "queue" });
  const third = await one.send("third", { onBusy: "queue" });
  expect(one.getSnapshot().isSending).toBe(false);
  await until(() => expect(waiting(other)).toEqual(["second busy", "third behind"]));
  await until(() => expect(waiting(one)).toEqual(["second busy", "third behind"]));
  expect(contents(one)).toEqual(["first", ""]);
  await expect(one.send("refused")).rejects.toMatchObject({ code: "thread-busy" });
  expect(await other.moveWaiting(third, second)).toBe(true);
  await until(() => expect(waiting(one)).toEqual(["third busy", "second behind"]));
  const fourth = await other.send("fourth", { onBusy: "queue" });
  expect(await one.cancelWaiting(fourth)).toBe(true);
  open();
  await until(() => expect(contents(other)).toEqual(["first", "first", "third", "third", "second", "second"]));
  await until(() => expect(contents(one)).toEqual(contents(other)));
  await until(() => expect(waiting(one)).toEqual([]));
  expect(executed).toHaveLength(3);
});

test("what is sent without a network waits for it, where its sender says so", async () => {
  const { agent, open } = gatedAgent();
  open();
  const net = network(false);
  const { connect } = hostOf({
    agents: { gated: agent },
    network: net,
    agentPolicies: { gated: { needsNetwork: true } },
  });
  const store = new ThreadStore(connect(), { agentId: "gated", threadId: "t" });
  onTestFinished(store.subscribe(() => undefined));
  await expect(store.send("refused")).rejects.toMatchObject({ code: "offline" });
  expect(contents(store)).toEqual([]);
  await store.send("later", { whenOffline: "wait" });
  await until(() => expect(waiting(store)).toEqual(["later offline"]));
  expect(contents(store)).toEqual([]);
  net.set(true);
  await until(() => expect(contents(store)).toEqual(["later", "later"]));
});

test("messages sent in one breath are a run each, in their order, and stand before their own answers (L2, issue 16)", async () => {
  const { agent, executed, open } = gatedAgent();
  const { connect } = hostOf({ agents: { gated: agent } });
  const [one, other] = [connect(), connect()].map((runtime) => {
    const store = new ThreadStore(runtime, { agentId: "gated", threadId: "t" });
    onTestFinished(store.subscribe(() => undefined));
    return store;
  }) as [ThreadStore, ThreadStore];
  await Promise.all(["first", "second", "third"].map((text) => one.send(text, { onBusy: "queue" })));
  await until(() => expect(waiting(other)).toEqual(["second busy", "third behind"]));
  await until(() => expect(contents(one)).toEqual(["first", ""]));
  open();
  const all = ["first", "first", "second", "second", "third", "third"];
  await until(() => expect([contents(one), contents(other)]).toEqual([all, all]));
  expect(executed).toHaveLength(3);
});
