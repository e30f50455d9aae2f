import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { describe, expect, test } from "vitest";
import { agentOf, counter, inputOf, makeRunner, user } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { serve } from "./node-kit.js";

const LIMIT = 4 * 1024 * 1024;
const input = inputOf("t", "r", [user("u")]);

/** JSON of `body`, in which a text "HERE" stands for as many zeros as fit into the default limit. */
const full = (body: unknown, item = "0,"): string => {
  const [before, after] = JSON.stringify(body).split('"HERE"') as [string, string];
  const room = LIMIT - before.length - after.length - 2;
  return `${before}[${item.repeat(Math.floor(room / item.length)).slice(0, -1)}]${after}`;
};

async function served(): Promise<(body: string, path?: string) => Promise<Response>> {
  const { url } = await serve(createNodeHandler(createRuntimeHandler({ runtime: runtimeWith() })));
  return (body, path = "/agent/counter/run") =>
    fetch(`${url}${path}`, { method: "POST", headers: { "content-type": "application/json" }, body });
}

describe("a body over HTTP", () => {
  test("may have 4 MB, and not a byte more (L19)", async () => {
    const post = await served();
    const text = JSON.stringify({ ...input, forwardedProps: { pad: "" } });
    const padded = (bytes: number): string =>
      text.replace('"pad":""', () => `"pad":"${"x".repeat(bytes - text.length)}"`);
    expect((await post(padded(LIMIT))).status).toBe(200);
    const refused = await post(padded(LIMIT + 1));
    expect([refused.status, await refused.json()]).toEqual([413, { error: "Payload too large" }]);
  });

  test.each<[string, unknown]>([
    ["messages.0", { ...input, messages: "HERE" }],
    ["tools.0", { ...input, tools: "HERE" }],
    ["context.0", { ...input, context: "HERE" }],
    ["resume.0", { ...input, resume: "HERE" }],
    ["messages.0.content.0", { ...input, messages: [{ id: "m", role: "user", content: "HERE" }] }],
    ["messages.0.content.0", { ...input, messages: [{ id: "m", role: "tool", toolCallId: "c", content: "HERE" }] }],
    ["messages.0.toolCalls.0", { ...input, messages: [{ id: "m", role: "assistant", toolCalls: "HERE" }] }],
  ])("of two million zeros in %s is refused with the first issues, by each route (L19)", async (place, body) => {
    const post = await served();
    for (const route of ["run", "connect", "suggest"]) {
      const answer = await post(full(body), `/agent/counter/${route}`);
      const { details } = (await answer.json()) as { details: string };
      expect(answer.status).toBe(400);
      expect(details.startsWith(`${place}: must be of type object; `)).toBe(true);
      expect(details.split("; ")).toHaveLength(11);
    }
  });

  test("that is nested deeper than 200 levels, or has a field __proto__, is refused", async () => {
    const post = await served();
    const with_ = (state: string): string => JSON.stringify(input).replace('"state":{}', `"state":${state}`);
    const told = async (state: string): Promise<unknown> => (await post(with_(state))).json();
    const depth = 2_000_000;
    expect(await told(`${"[".repeat(depth)}${"]".repeat(depth)}`)).toHaveProperty(
      "details",
      expect.stringContaining("200"),
    );
    expect(await told('{"a":{"__proto__":{"x":1}}}')).toHaveProperty("details", expect.stringContaining("__proto__"));
    // Of a field that is given twice the last one counts, for everybody who parses JSON.
    const twice = with_("{}").replace('"runId"', '"runId":7,"runId"');
    expect((await post(twice)).status).toBe(200);
  });
});

test.each<[string, object]>([
  ["input.messages[0]", { messages: [{ id: "m", role: "user", content: Array(1_000_000).fill(0) }] }],
  ["input.messages[0]", { messages: Array(1_000_000).fill(0) }],
  ["input.tools[0]", { tools: Array(1_000_000).fill(7) }],
  ["input.resume[0]", { resume: Array(1_000_000).fill(7) }],
  ["input.context[0]", { context: Object.assign([], { length: 4_000_000_000 }) }],
  ["input.state", { state: nested(201) }],
  ["input.messages[0]", { messages: [{ ...user("m"), metadata: doubled(60) }] }],
])("a runner refuses %s that is too much, before anything runs (L19)", (field, hostile) => {
  const run = { threadId: "t", agent: agentOf(counter(1)), input: { ...input, ...hostile } };
  expect(() => makeRunner().run(run)).toThrow(expect.objectContaining({ code: "invalid-input", details: { field } }));
});

function nested(depth: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < depth; level++) value = [value];
  return value;
}

function doubled(depth: number): object {
  let value: object = {};
  for (let level = 0; level < depth; level++) value = { a: value, b: value };
  return value;
}
