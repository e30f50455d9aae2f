import { expect, onTestFinished, test } from "vitest";
import { PROTOCOL_VERSION, type Hello } from "../../../src/wire/shapes.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, counter, freshDb } from "../runner/kit.js";

const context = { type: "RAW", value: { headers: {} } };
const listed = { type: "APPLY", path: ["listThreads"], argumentList: [context, { type: "RAW", value: {} }] };

/** What a tab may post past comlink's own client: everything but the last is dropped, without an answer. */
const POSTED: readonly unknown[] = [
  null,
  "APPLY",
  { ...listed, path: ["constructor"] },
  { ...listed, path: ["toString"] },
  { ...listed, path: ["__proto__"] },
  { ...listed, path: ["listThreads", "call"] },
  { ...listed, path: [["listThreads"]] },
  { ...listed, path: [] },
  { ...listed, path: "listThreads" },
  { ...listed, argumentList: [{ type: "HANDLER", name: "proxy", value: null }] },
  { ...listed, argumentList: undefined },
  { type: "GET", path: ["listThreads"] },
  { type: "SET", path: ["listThreads"], value: { type: "RAW", value: null } },
  { type: "CONSTRUCT", path: ["listThreads"], argumentList: [] },
  { type: "ENDPOINT", path: [] },
  { type: "RELEASE", path: [] },
  listed,
];

test("a tab reaches nothing in its host but the calls that there are", async () => {
  const host = serveRuntime({ dbName: freshDb(), agents: { counter: agentOf(counter(1)) } });
  onTestFinished(() => host.close());
  const raw = host.connect();
  const hello = await new Promise<Hello>((resolve) => (raw.onmessage = ({ data }) => resolve(data)));
  expect(hello.protocol).toBe(PROTOCOL_VERSION);
  const answers = new Promise<readonly unknown[]>((resolve) => {
    const heard: unknown[] = [];
    hello.port.onmessage = ({ data }: MessageEvent<{ readonly id: string }>) => {
      heard.push(data);
      if (data.id === String(POSTED.length - 1)) resolve(heard);
    };
  });
  POSTED.forEach((posted, n) =>
    hello.port.postMessage(typeof posted === "object" && posted !== null ? { ...posted, id: String(n) } : posted),
  );
  expect(await answers).toEqual([{ type: "RAW", id: String(POSTED.length - 1), value: { ok: [] } }]);
});
