import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { aiAgent, type AiRun } from "ag-ui-local-runtime/ai";
import { failureOf } from "../../../src/ai/provider-error.js";
import { redactor } from "../../../src/ai/redact.js";
import { expectLinear } from "../linear.js";
import { freshDb } from "../runner/kit.js";
import { servedModel } from "./kit.js";

const it = servedModel();

const KEY = "planted-Key_4711";
afterEach(() => vi.restoreAllMocks());

/** Everything in all databases of this file. */
async function dump(): Promise<string> {
  const whole = (request: IDBRequest): Promise<unknown> =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const texts: string[] = [];
  for (const { name } of await indexedDB.databases()) {
    const db = (await whole(indexedDB.open(name!))) as IDBDatabase; // what `open` gives
    for (const store of db.objectStoreNames) {
      texts.push(JSON.stringify(await whole(db.transaction(store).objectStore(store).getAll())));
    }
    db.close();
  }
  return texts.join("\n");
}

/** What is posted to other contexts, and what is logged. */
function overheard() {
  const posted: unknown[] = [];
  const logged: unknown[] = [];
  // Channels of Node post by ports as well.
  const post = MessagePort.prototype.postMessage as (...given: unknown[]) => unknown;
  vi.spyOn(MessagePort.prototype, "postMessage").mockImplementation(function (this: MessagePort, ...given: unknown[]) {
    posted.push(textOf(given[0]));
    return post.apply(this, given);
  });
  for (const level of ["debug", "info", "log", "warn", "error"] as const) {
    vi.spyOn(console, level).mockImplementation(
      (...said) => void logged.push(said.map((each) => (each instanceof Error ? `${each.stack}` : each))),
    );
  }
  return { posted, logged };
}

/** Ports and the like are no text. */
const textOf = (value: unknown): string => JSON.stringify(value) ?? "";

test("issue 16.3: a key that the page gives reaches the model's server, and no log, frame, event or error", async () => {
  const { posted, logged } = overheard();
  const seen: AiRun["headers"][] = [];
  const assistant = aiAgent({
    model: ({ headers }) => {
      seen.push(headers);
      if (headers["x-fail"] !== undefined) throw new Error(`no model for ${headers["x-model-key"]}`);
      const apiKey = headers["x-model-key"] ?? "";
      return createOpenAICompatible({ name: "scripted", baseURL: `${it.server.url}?key=${apiKey}`, apiKey })(
        "scripted",
      );
    },
    tools: {
      leak: {
        parameters: {},
        execute: (_: unknown, { headers }) => {
          throw new Error(`cannot use ${headers["x-model-key"]}`);
        },
      },
    },
    settings: { maxRetries: 0 },
  });
  const host = serveRuntime({ agents: { assistant }, dbName: freshDb() });
  let isFailing = false;
  const runtime = connectRuntime({
    hosts: { page: async () => host.connect() },
    headers: () => ({ "x-model-key": KEY, ...(isFailing && { "x-fail": "1" }) }),
  });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const agent = runtime.agent("assistant", { threadId: "t" });
  const ends: string[] = [];
  agent.subscribe({
    onRunErrorEvent: ({ event }) => void ends.push(`${event.code}: ${event.message}`),
    onRunFinishedEvent: () => void ends.push("finished"),
  });
  const ask = async (content: string): Promise<void> => {
    agent.addMessage({ id: content, role: "user", content });
    await agent.runAgent();
  };
  it.server.script(
    { calls: [{ name: "leak", args: {} }] },
    { text: ["an answer to look for"] },
    {
      status: 401,
      headers: { "x-key": KEY },
      body: JSON.stringify({ error: { message: `Incorrect API key provided: ${KEY}`, type: "x" } }),
    },
    {
      status: 500,
      body: JSON.stringify({ error: { message: `GET http://a:${KEY}@host/?key=${KEY} failed (Bearer ${KEY})` } }),
    },
    { text: ["half"], raw: `data: {"error":{"message":"${KEY} is over its quota"}}\n\n` },
  );
  for (const question of ["first", "second", "third", "fourth"]) await ask(question);
  isFailing = true;
  await ask("fifth");

  expect(it.server.requests.map(({ headers }) => headers["authorization"])).toEqual(Array(5).fill(`Bearer ${KEY}`));
  expect(seen).toHaveLength(5);
  expect(ends.map((end) => end.split(": ")[0])).toEqual([
    "finished",
    "AUTHENTICATION",
    "PROVIDER_UNAVAILABLE",
    "PROVIDER_UNAVAILABLE",
    "AGENT_FAILED",
  ]);
  expect(ends.join()).not.toContain(KEY);
  expect(JSON.stringify(agent.messages)).toContain("[hidden]");
  expect(JSON.stringify(agent.messages)).not.toContain(KEY);
  expect(JSON.stringify(logged)).not.toContain(KEY);
  const kept = await dump();
  expect(kept).toContain("an answer to look for");
  expect(kept).not.toContain(KEY);
  // The page's own calls carry it to the host, nothing carries it back.
  const carrying = posted.filter((message) => String(message).includes(KEY));
  expect(carrying.length).toBeGreaterThan(0);
  expect(carrying.filter((message) => !String(message).includes('"type":"APPLY"'))).toEqual([]);
  expect(posted.some((message) => String(message).includes("an answer to look for"))).toBe(true);
});

test.each([
  ["Incorrect API key provided: sk-proj-abc123def456", "Incorrect API key provided: [hidden]"],
  ["header Authorization: Bearer abc.def-123", "header Authorization: [hidden]"],
  ["at https://user:pass@host.test/v1/chat?key=abc&x=1 (500)", "at https://host.test/v1/chat (500)"],
  ["key AIzaSyA1234567890abcdef", "key [hidden]"],
  [
    "model claude-sonnet-4-20250514 of meta-llama/Llama-3.3-70B-Instruct is not loaded",
    "model claude-sonnet-4-20250514 of meta-llama/Llama-3.3-70B-Instruct is not loaded",
  ],
])("keys in the code of a worker are known by their form: %s", (text, told) => {
  expect(redactor({})(text)).toBe(told);
});

test("a key is hidden wherever a server's words are cut", () => {
  const key = "sk-proj-abc123def456";
  for (let before = 470; before <= 500; before++) {
    const { message } = failureOf(new Error(`${"x ".repeat(before / 2)}${key} is wrong`), redactor({}), 0);
    expect(message).not.toContain("sk-");
  }
});

test("a key that a header brings encoded is hidden as it is, too", () => {
  const key = "ab+cd/ef";
  const redact = redactor({ "x-model-key": encodeURIComponent(key), "x-other": "100%" });
  expect(redact(`not ${key}, nor ${encodeURIComponent(key)}`)).toBe("not [hidden], nor [hidden]");
});

test.each(["a-", "http://a/", "bearer "])(
  "a text of many times %j is searched for secrets in linear time (L19)",
  (text) => {
    const redact = redactor({});
    expectLinear(1_000, (n) => {
      const long = text.repeat(n);
      return () => void redact(long);
    });
  },
);
