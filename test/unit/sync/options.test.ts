import { expect, test } from "vitest";
import { AgentRuntime } from "../../../src/runtime/agent-runtime.js";
import { startHost } from "../../../src/runtime/node.js";
import type { AgentRuntimeOptions } from "../../../src/runtime/options.js";
import { agentOf, counter, makeMemoryRunner } from "../runner/kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";

const SYNC = { servers: "ws://127.0.0.1:9222", space: "dev" };
const make = (options: object) => () => new AgentRuntime({ agents: {}, ...options } as AgentRuntimeOptions); // wrong on purpose

test.each([
  ["no servers", { space: "dev" }],
  ["an empty list of servers", { servers: [], space: "dev" }],
  ["no space", { servers: SYNC.servers }],
  ["a space that is null", { ...SYNC, space: null }],
  ["a space with a dot in its name", { ...SYNC, space: "a.b" }],
  ["a device without a name", { ...SYNC, device: "" }],
  ["an option that does not exist", { ...SYNC, server: "ws://127.0.0.1" }],
  ["text", "dev"],
])("sync with %s is refused", (_, sync) => {
  expect(make({ sync })).toThrow(expect.objectContaining({ code: "invalid-input" }));
});

test.each([
  ["a runner of one's own", () => ({ runner: makeMemoryRunner() })],
  ["a limit of threads where all come", () => ({ limits: { maxThreads: 5 } })],
  [
    "a limit of threads where all come, as asked",
    () => ({ limits: { maxThreads: 5 }, sync: { ...SYNC, keep: "all" } }),
  ],
  ["a limit of runs", () => ({ limits: { maxRunsPerThread: 5 }, sync: { ...SYNC, keep: "opened" } })],
  ["a limit of bytes", () => ({ limits: { maxThreads: 5, maxBytes: 5 }, sync: { ...SYNC, keep: "opened" } })],
  ["a limit that is no number", () => ({ limits: { maxThreads: "5" }, sync: { ...SYNC, keep: "opened" } })],
])("sync is refused beside %s", (_, beside) => {
  expect(make({ sync: SYNC, ...beside() })).toThrow(expect.objectContaining({ code: "invalid-input" }));
});

test("sync takes a limit of threads where only those come that are opened", () => {
  expect(make({ sync: { ...SYNC, keep: "opened" }, limits: { maxThreads: 5 } })).not.toThrow();
});

test("sync takes servers and a name, or a space of another engine, and encryption beside it", () => {
  expect(make({ sync: SYNC })).not.toThrow();
  expect(make({ sync: { space: new MemorySpace(new MemoryServer()) } })).not.toThrow();
  expect(make({ sync: { space: () => new MemorySpace(new MemoryServer()) } })).not.toThrow();
  expect(make({ sync: SYNC, encryption: {} })).not.toThrow();
});

test("a host with more agents than others take from it is refused", async () => {
  const agents = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`agent-${at}`, agentOf(counter(1))]));
  const sync = () => ({ space: new MemorySpace(new MemoryServer()) });
  await expect(startHost({ agents: agents(1_001), sync: sync() })).rejects.toMatchObject({
    code: "invalid-input",
    details: { field: "agents" },
  });
  await (await startHost({ agents: agents(1_000), sync: sync() })).close();
});
