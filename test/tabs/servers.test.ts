import { connect } from "@nats-io/transport-node";
import { EventType, type AbstractAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { natsSpace } from "ag-ui-local-runtime/sync";
import { startHost } from "ag-ui-local-runtime/node";
import { type AgentContext, defineAgent } from "ag-ui-local-runtime/worker";
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { type NatsServers, startNats } from "../setup/nats.mjs";
import type { Tab } from "./driver/browser.js";
import { launch } from "./driver/launch.js";
import { deviceWorkerName } from "./pages/sync-name.js";

/*
 * A host in Node that runs agents for browsers, over a real NATS server.
 */

const engine = inject("engine");
const T = "thread";
let nats: NatsServers;
let tests = 0;

beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats?.stop());

type Browser = Awaited<ReturnType<typeof launch>>;

const urlOf = (space: string, device: string): string => {
  const worker = deviceWorkerName({ dbName: space, servers: nats.wsUrls, space, device });
  return `${inject("pages")}sync-device.html?worker=${encodeURIComponent(worker)}`;
};

/** A tab that shows the thread, its worker in step with `devices` others. */
async function open(browser: Browser, space: string, device: string, devices: number): Promise<Tab> {
  const tab = await browser.newTab(urlOf(space, device));
  await tab.waitFor(() => "synced" in window);
  await tab.evaluate((id) => window.synced.open(id, "writer"), T);
  await tab.waitFor((many) => {
    const { sync } = window.synced;
    return sync?.isCurrent === true && sync.devices.length === many;
  }, devices);
  return tab;
}

const view = (tab: Tab) => tab.evaluate((id) => window.synced.view(id), T);
const shows = (tab: Tab, text: string) => tab.waitFor((id, it) => window.synced.view(id).text === it, T, text);
const isIdle = (tab: Tab) => tab.waitFor((id) => window.synced.view(id).run.is === "idle", T);

/** Writes "one two", and "three" when it is let on. */
function writer() {
  const executed: string[] = [];
  let letOn!: () => void;
  const gate = new Promise<void>((resolve) => (letOn = resolve));
  const agent = defineAgent<BaseEvent>(async function* (
    { runId }: RunAgentInput,
    { signal }: AgentContext,
  ): AsyncGenerator<BaseEvent> {
    executed.push(runId);
    const messageId = `text-${runId}`;
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
    for (const delta of ["one ", "two "]) yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta } as BaseEvent;
    await Promise.race([gate, aborted]);
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "three" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
  });
  return { agent, executed, letOn };
}

async function serverWith(space: string, agent: AbstractAgent) {
  const at = natsSpace({ servers: nats.urls, space, connect });
  const host = await startHost({ agents: { writer: agent }, sync: { space: at, device: "Server" } });
  onTestFinished(() => host.close());
  return host;
}

test("a run goes on on a server when the browser that asked for it is killed, and is there when it is back", async () => {
  const space = `servers-${process.pid}-${tests++}`;
  const { agent, executed, letOn } = writer();
  await serverWith(space, agent);
  let phone = await launch(engine, {});
  const laptop = await launch(engine, {});
  onTestFinished(async () => {
    await phone.close();
    await laptop.close();
  });
  const a = await open(phone, space, "Phone", 2);
  const b = await open(laptop, space, "Laptop", 3);
  await a.evaluate((id) => window.synced.start(id, {}, "run-one"), T);
  for (const tab of [a, b]) await shows(tab, "one two ");
  expect(await a.evaluate((id) => window.synced.deviceOf(id, "run-one"), T)).toBe("Server");
  const { profile } = phone;
  await phone.kill();
  letOn();
  await shows(b, "one two three");
  await isIdle(b);
  phone = await launch(engine, { profile });
  const back = await open(phone, space, "Phone", 3);
  await shows(back, "one two three");
  await isIdle(back);
  expect((await view(back)).messages).toEqual((await view(b)).messages);
  expect(await back.evaluate((id) => window.synced.tree(id), T)).toEqual({ "run-one": "finished after nothing" });
  expect(executed).toEqual(["run-one"]);
  // It goes on with the thread, from the other device.
  await b.evaluate((id) => window.synced.start(id, {}, "run-two"), T);
  for (const tab of [b, back]) {
    await tab.waitFor(async (id) => (await window.synced.tree(id))["run-two"] === "finished after run-one", T);
    await tab.waitFor((id) => window.synced.view(id).messages.length === 4, T);
  }
});

test("a run on a server is stopped from any device; without a server it is refused, and no thread is stuck", async () => {
  const space = `servers-${process.pid}-${tests++}`;
  const { agent } = writer();
  const host = await serverWith(space, agent);
  const phone = await launch(engine, {});
  onTestFinished(() => phone.close());
  const a = await open(phone, space, "Phone", 2);
  const other = await open(phone, space, "Phone", 2);
  await a.evaluate((id) => window.synced.start(id, {}, "run-one"), T);
  for (const tab of [a, other]) await shows(tab, "one two ");
  expect(await other.evaluate((id) => window.synced.stop(id), T)).toBe(true);
  for (const tab of [a, other]) await isIdle(tab);
  expect(await a.evaluate((id) => window.synced.tree(id), T)).toEqual({ "run-one": "stopped after nothing" });
  await host.close();
  await a.waitFor(() => window.synced.sync?.devices.length === 1);
  await a.evaluate((id) => window.synced.start(id, {}, "run-two"), T);
  await a.waitFor((id) => window.synced.view(id).outcomes.length === 2, T);
  expect((await view(a)).outcomes.at(-1)).toMatchObject({ code: "unknown-agent" });
  expect(await a.evaluate((id) => window.synced.tree(id), T)).toEqual({ "run-one": "stopped after nothing" });
});
