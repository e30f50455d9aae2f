import { EventType } from "@ag-ui/client";
import { InMemoryAgentRunner } from "../../src/runner/in-memory-agent-runner.js";
import { AgentRuntime } from "../../src/runtime/agent-runtime.js";
import { createRuntimeHandler } from "../../src/runtime/http/handler.js";
import { defineAgent } from "../../src/worker/define-agent.js";
import type { Context } from "./context.js";
import { figure, inTurn } from "./figures.js";

const REQUESTS = 250;

const hello = defineAgent(async function* ({ runId }) {
  const messageId = `${runId}-a`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "hello" };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
});

let served = 0;

/** Runs the agent once in a thread of its own, as a handler of a server in Node does, without a database. */
async function serve(runtime: AgentRuntime): Promise<void> {
  const id = `r${served++}`;
  const input = { threadId: id, runId: id, messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
  const request = new Request("http://localhost/agent/hello/run", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(input),
  });
  await (await createRuntimeHandler({ runtime })(request)).text();
}

/** @param dbName names the store: all runtimes of one name share it */
const make = (dbName: string): AgentRuntime =>
  new AgentRuntime({ agents: { hello }, runner: new InMemoryAgentRunner({ dbName }) });

/**
 * What a handler of Next.js may make for each request, beside one runtime for all: the goal is 1.5 times for a runtime. A
 * runner besides costs more with each that is not collected yet, since all of one store hear one another.
 */
export async function perRequest({ samples, figures }: Context): Promise<void> {
  const one = make("bench-one");
  const runner = new InMemoryAgentRunner({ dbName: "bench-runtimes" });
  const timed = (runtime: () => AgentRuntime) => async (): Promise<number> => {
    const since = performance.now();
    for (let n = 0; n < REQUESTS; n++) await serve(runtime());
    return performance.now() - since;
  };
  const taken = await inTurn(samples, {
    one: timed(() => one),
    runtimes: timed(() => new AgentRuntime({ agents: { hello }, runner })),
    runners: timed(() => make("bench-runners")),
  });
  await Promise.all([one.close(), runner.close()]);
  const group = `per-request: ${REQUESTS.toLocaleString("en-US")} runs, in memory, in Node`;
  const forAll = figure(group, "one runtime for all", "ms", taken.one);
  const beside = (values: readonly number[]): number[] => values.map((ms) => ms / forAll.median);
  figures.push(
    forAll,
    figure(group, "a runtime for each", "times", beside(taken.runtimes)),
    figure(group, "a runtime and a runner for each", "times", beside(taken.runners)),
  );
}
