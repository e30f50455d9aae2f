import type { RunAgentInput } from "@ag-ui/core";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { describe, expect, test } from "vitest";
import { requestRewriting } from "../../../recipes/request-rewriting.js";
import { inputOf, textOf, user } from "../../../../test/unit/runner/kit.js";
import { answering, runtimeWith } from "../../../../test/unit/runtime/kit.js";
import { connectedTab, WAYS } from "../../../../test/unit/runtime/ways.js";

const rewriting = (...given: Parameters<typeof requestRewriting>) =>
  runtimeWith({
    agents: {
      teller: answering(({ messages }) =>
        messages.map(({ role, content }) => `${role}: ${content as string}`).join("|"),
      ),
      props: answering(({ forwardedProps }) => JSON.stringify(forwardedProps)),
    },
    beforeRequestMiddleware: requestRewriting(...given),
  });

describe.each(WAYS)("requestRewriting, $name", (way) => {
  test("puts a system message in front", async () => {
    const caller = await way.open(rewriting({ system: "be brief" }));
    expect(textOf(await caller.run("teller", inputOf("t", "r", [user("u", "hello")])))).toBe(
      "system: be brief|user: hello",
    );
  });

  test("adds forwardedProps, which win over the caller's", async () => {
    const caller = await way.open(rewriting({ forwardedProps: { tenant: "a" } }));
    const input = { ...inputOf("t", "r"), forwardedProps: { tenant: "b", colour: "red" } };
    expect(JSON.parse(textOf(await caller.run("props", input)))).toEqual({ tenant: "a", colour: "red" });
  });

  test("leaves everything else alone", async () => {
    const caller = await way.open(rewriting({ system: "be brief" }));
    await caller.run("teller", inputOf("t", "r"));
    expect(await caller.list()).toEqual(["t"]);
    expect(await caller.stop("teller", "t")).toBe(false);
  });
});

test("an agent of a tab is given the rule once, however many runs there are", async () => {
  const agent = connectedTab(rewriting({ system: "be brief" })).agent("teller", { threadId: "t" });
  for (const content of ["one", "two"]) {
    agent.addMessage(user(content, content));
    await agent.runAgent();
  }
  const answers = agent.messages.filter(({ role }) => role === "assistant").map(({ content }) => content);
  expect(answers[0]).toBe("system: be brief|user: one");
  expect(answers[1]).toBe(`system: be brief|user: one|assistant: ${answers[0] as string}|user: two`);
});

test("a thread keeps the rule that it has; the agent's own rule is in front in every thread, and kept in none", async () => {
  let system = "be brief";
  const said = ({ messages }: RunAgentInput) => messages.map(({ role, content }) => `${role}: ${content as string}`);
  const teller = answering((input) => said(input).join("|"));
  const ruled = answering((input) => said(input).join("|"));
  ruled.use((input, next) =>
    next.run({ ...input, messages: [{ id: "rule", role: "system", content: system }, ...input.messages] }),
  );
  const runtime = runtimeWith({
    agents: { teller, ruled },
    beforeRequestMiddleware: (call) =>
      call.resolved.agentId === "teller" ? requestRewriting({ system })(call) : undefined,
  });
  const tab = connectedTab(runtime);
  const firstsOf = async (agentId: string): Promise<unknown[]> => {
    const agent = tab.agent(agentId, { threadId: agentId });
    const firsts = [];
    for (const rule of ["be brief", "be long"]) {
      system = rule;
      agent.addMessage(user(rule, "hello"));
      await agent.runAgent();
      firsts.push(String(agent.messages.at(-1)?.content).split("|")[0]);
    }
    return [...firsts, agent.messages.filter(({ role }) => role === "system").length];
  };
  expect(await firstsOf("teller")).toEqual(["system: be brief", "system: be brief", 1]);
  expect(await firstsOf("ruled")).toEqual(["system: be brief", "system: be long", 0]);
});

test.each([
  ["a route of its own", "multi-route", "/agent/teller/suggest", (body: object) => body],
  [
    "an envelope",
    "single-route",
    "/",
    (body: object) => ({ method: "agent/suggest", params: { agentId: "teller" }, body }),
  ],
] as const)("a suggestion by %s is given the rule", async (_, mode, path, wrapped) => {
  const handler = createRuntimeHandler({ runtime: rewriting({ system: "be brief" }), mode });
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(wrapped(inputOf("t", "r", [user("u", "hello")])));
  const answer = await handler(new Request(`http://localhost${path}`, { method: "POST", headers, body }));
  expect(await answer.text()).toContain("system: be brief|user: hello");
});

test.each(["/api/agent/teller/run", "/api/agent/teller/suggest", "/api"])(
  "a request relayed to %s is given the rule",
  async (path) => {
    const tab = connectedTab(rewriting({ system: "be brief" }));
    const input = inputOf("t", "r", [user("u", "hello")]);
    const body = path === "/api" ? { method: "agent/run", params: { agentId: "teller" }, body: input } : input;
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await tab.fetch(path, init, { basePath: "/api" });
    expect(await answer.text()).toContain("system: be brief|user: hello");
  },
);

test("what is no input is refused by the runtime", async () => {
  const handler = createRuntimeHandler({ runtime: rewriting({ system: "be brief" }) });
  for (const body of ["null", "{}", '{"messages":[null]}']) {
    const headers = { "content-type": "application/json" };
    const answer = await handler(new Request("http://localhost/agent/teller/run", { method: "POST", headers, body }));
    expect(answer.status).toBe(400);
  }
});
