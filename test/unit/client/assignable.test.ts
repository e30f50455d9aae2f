import type { AbstractAgent as Agent1, HttpAgent as HttpAgent1 } from "@ag-ui/client";
import type { AbstractAgent as Agent0 } from "ag-ui-client-0";
import { expect, onTestFinished, test } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { LocalAgent } from "../../../src/client/local-agent.js";

/** What a front end takes that comes with a client of its own, as CopilotKit does. */
const frontEnd = (props: { readonly agents: Readonly<Record<string, Agent0>> }): Agent0[] =>
  Object.values(props.agents);

// Held by the compiler: `tsc -p tsconfig.json`.
test("an agent is one of the client's, of 1.0 and of 0.0.59, without a cast", async () => {
  const runtime = connectRuntime({ hosts: { page: () => Promise.reject(new Error("none")) } });
  onTestFinished(() => runtime.close());
  const own = runtime.agent("a");
  const first: LocalAgent = own;
  const current: Agent1 = own;
  const old: Agent0 = runtime.agent("a");
  const [given] = frontEnd({ agents: { a: runtime.agent("a", { threadId: "t" }) } });
  const both = runtime.agent<Agent0>("a");
  const taken: Agent0 = both;
  const unfollow: () => void = both.follow();
  onTestFinished(unfollow);
  // @ts-expect-error a LocalAgent has no address
  const none: HttpAgent1 = runtime.agent("a");
  // @ts-expect-error what is no agent at all
  const nothing: string = runtime.agent("a");
  for (const agent of [first, current, old, given, taken, none, nothing]) expect(agent).toBeInstanceOf(LocalAgent);
});
