import type { BaseEvent } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { expect, test, vi } from "vitest";
import { aiAgent, type AiAgentOptions, type AiToolRun } from "ag-ui-local-runtime/ai";
import { asks, inputOf, servedModel } from "./kit.js";

const it = servedModel();

/** Runs an agent, stops it at `when`, and gives what it emitted before and behind. */
async function stopped(options: AiAgentOptions, when: (event: BaseEvent) => boolean | Promise<boolean>) {
  const agent = aiAgent(options);
  const before: BaseEvent[] = [];
  const behind: BaseEvent[] = [];
  let isStopped = false;
  await new Promise<void>((resolve, reject) => {
    agent.run(inputOf(asks("hi"))).subscribe({
      next: (event) => {
        (isStopped ? behind : before).push(event);
        void Promise.resolve(when(event)).then((stops) => {
          if (!stops || isStopped) return;
          isStopped = true;
          agent.abortRun();
        });
      },
      error: reject,
      complete: resolve,
    });
  });
  return { before, behind };
}

test("issue 16.1: a stop while the model has not answered ends its request", async () => {
  it.server.script({ holds: true });
  const { behind } = await stopped({ model: it.model }, async ({ type }) => {
    if (type !== EventType.STEP_STARTED) return false;
    await it.server.when(() => it.server.requests.length === 1);
    return true;
  });
  expect(behind).toEqual([]);
  await it.server.when(() => it.server.left === 1);
});

test("a stop in the middle of an endless answer ends its request; nothing comes behind it", async () => {
  it.server.script({ text: ["on and "], endless: true });
  let deltas = 0;
  const { behind } = await stopped(
    { model: it.model },
    ({ type }) => type === EventType.TEXT_MESSAGE_CONTENT && ++deltas === 50,
  );
  expect(behind.length).toBeLessThan(2);
  await it.server.when(() => it.server.left === 1);
});

test("a stop while a tool runs aborts its signal, and waits for none that ignores it", async () => {
  it.server.script({
    calls: [
      { name: "polite", args: {} },
      { name: "deaf", args: {} },
    ],
  });
  let isAborted = false;
  let started = 0;
  let late: ((value: string) => void) | undefined;
  const ended: string[] = [];
  const tools: AiAgentOptions["tools"] = ({ onEnd }) => {
    onEnd(() => ended.push("closed"));
    return {
      polite: {
        parameters: {},
        execute: (_: unknown, { signal }: AiToolRun) =>
          new Promise((resolve) => {
            started++;
            signal.addEventListener("abort", () => resolve((isAborted = true)));
          }),
      },
      deaf: {
        parameters: {},
        execute: () => {
          started++;
          return new Promise((resolve) => (late = resolve));
        },
      },
    };
  };
  const { behind } = await stopped({ model: it.model, tools }, async ({ type }) => {
    if (type !== EventType.STEP_FINISHED) return false;
    await vi.waitUntil(() => started === 2);
    return true;
  });
  late?.("too late");
  expect(isAborted).toBe(true);
  expect(behind).toEqual([]);
  expect(ended).toEqual(["closed"]);
  expect(it.server.requests).toHaveLength(1);
});

test("a stop while the SDK waits to try again ends the wait", async () => {
  it.server.script({ status: 429, headers: { "retry-after": "50" }, body: "{}" });
  const { behind } = await stopped({ model: it.model }, async ({ type }) => {
    if (type !== EventType.STEP_STARTED) return false;
    await it.server.when(() => it.server.requests.length === 1);
    return true;
  });
  expect(behind).toEqual([]);
  expect(it.server.requests).toHaveLength(1);
});
