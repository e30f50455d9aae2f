import { type AbstractAgent, EventType, type BaseEvent } from "@ag-ui/client";
import { NEVER } from "rxjs";
import { expect, onTestFinished, vi } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, collect, counted, counter, freshDb, gated, inputOf, makeRunner } from "../runner/kit.js";

/** How far the agent of {@link makeHost} counts. */
export const STEPS = 30;

/** A host in this context with an agent that counts; asked by "u", it waits in the middle until it is let on. */
export function makeHost(): { connect: () => RuntimeConnection; letOn: () => void; dbName: string } {
  const dbName = freshDb();
  const { gate, letOn } = gated();
  const host = serveRuntime({
    dbName,
    stopGraceMs: 50,
    agents: {
      counter: agentOf(async function* (input, { signal }) {
        const messageId = `${input.runId}-a`;
        yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
        for (let step = 0; step < STEPS; step++) {
          if (step === STEPS / 2 && input.messages.at(-1)?.id === "u") {
            await Promise.race([
              gate,
              new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
            ]);
          }
          yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${step} ` } as BaseEvent;
        }
      }),
    },
  });
  onTestFinished(async () => {
    letOn();
    await host.close();
  });
  return {
    dbName,
    letOn,
    connect: () => {
      const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
      onTestFinished(() => runtime.close());
      return runtime;
    },
  };
}

export const answerOf = (agent: LocalAgent): unknown =>
  agent.messages.findLast(({ role }) => role === "assistant")?.content;

/** Waits until the agent of {@link makeHost} stands still in the middle. */
export const halfWay = (agent: LocalAgent): Promise<void> =>
  vi.waitFor(() => expect(answerOf(agent)).toBe(counted(STEPS / 2)));

/** A tab whose host hears nothing of other hosts at once, so that what it follows lags behind; and another host. */
export function lagging(): { readonly agent: LocalAgent; readonly other: LocalAgentRunner } {
  const dbName = freshDb();
  const deaf = { post: () => undefined, messages$: NEVER, close: () => undefined };
  const runner = makeRunner({ dbName, openChannel: () => deaf });
  const host = serveRuntime({ agents: { counter: agentOf(counter(3)) }, runner });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  return { agent: runtime.agent("counter", { threadId: "t" }), other: makeRunner({ dbName }) };
}

/** A host whose thread `t` has `runs` runs, each a question and an answer, and how to reach it. */
export async function hostWith(runs: number, agents: Readonly<Record<string, AbstractAgent>> = {}) {
  const runner = makeRunner({ dbName: freshDb() });
  for (let n = 0; n < runs; n++) {
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", `r${n}`) }));
  }
  const host = serveRuntime({ agents: { counter: agentOf(counter(1)), ...agents }, runner });
  onTestFinished(() => host.close());
  return { runner, hosts: { page: async () => host.connect() } };
}
