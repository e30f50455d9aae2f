import type { Logger } from "ag-ui-local-runtime/runtime";
import { EventType, type BaseEvent } from "@ag-ui/client";
import { InMemoryAgentRunner, type AgentRunner } from "ag-ui-local-runtime";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { concat, of, throwError, type Observable } from "rxjs";
import { describe, expect, test } from "vitest";
import { inputOf } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { WAYS } from "./ways.js";

describe.each(WAYS)("the logger of a runtime, $name", (way) => {
  test("is told of a failed run once, and of nothing that its request holds", async () => {
    const lines: (readonly unknown[])[] = [];
    const note = (...line: readonly unknown[]): void => void lines.push(line);
    const logger: Logger = { error: note, warn: note };
    const secret = "s3cret-of-the-request";
    const caller = await way.open(runtimeWith({ logger }), { "x-token": secret });
    const input = { ...inputOf("t", "r"), forwardedProps: { secret }, context: [{ description: "d", value: secret }] };
    await caller.run("failing", input).catch(() => undefined);
    expect(lines).toEqual([['Run "r" of thread "t" (agent "failing") failed: the agent failed', expect.any(Error)]]);
    expect(String((lines[0]![1] as Error).stack)).toContain("kit.ts");
    expect(JSON.stringify(lines) + String((lines[0]![1] as Error).stack)).not.toContain(secret);
    await caller.run("counter", inputOf("t", "r2"));
    expect(lines.length).toBe(1);
  });
});

test("the logger is told of a failed run of a runner of another make", async () => {
  const lines: unknown[][] = [];
  const logger: Logger = { error: (...line) => void lines.push(line), warn: () => undefined };
  const started = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
  const ends = [of(started, { type: EventType.RUN_ERROR, message: "said" }), throwError(() => new Error("thrown"))];
  const runner: AgentRunner = {
    run: () => ends.shift() as Observable<BaseEvent>,
    connect: () => of(),
    isRunning: () => Promise.resolve(false),
    stop: () => Promise.resolve(false),
  };
  const handle = createRuntimeHandler({ runtime: runtimeWith({ logger, runner }) });
  while (ends.length > 0) {
    const init = { method: "POST", headers: { "content-type": "application/json" } };
    const body = JSON.stringify(inputOf("t", "r"));
    const response = await handle(new Request("http://local/agent/counter/run", { ...init, body }));
    await response.text().catch(() => undefined);
  }
  const name = 'Run "r" of thread "t" (agent "counter")';
  await expect.poll(() => lines).toEqual([[`${name} failed: said`], [`${name} failed: thrown`, expect.any(Error)]]);
});

test("the logger is told once of what ends a stream, of which its reader is told nothing", async () => {
  const lines: unknown[][] = [];
  const logger: Logger = { error: (...line) => void lines.push(line), warn: () => undefined };
  const started = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
  const unspeakable = { type: EventType.CUSTOM, name: "c", value: { toJSON: () => failing() } };
  const failing = (): never => {
    throw new Error("unspeakable");
  };
  const runner: AgentRunner = {
    run: () => of(started, unspeakable),
    connect: () =>
      concat(
        of(started),
        throwError(() => new Error("unreadable")),
      ),
    isRunning: () => Promise.resolve(false),
    stop: () => Promise.resolve(false),
  };
  const handle = createRuntimeHandler({ runtime: runtimeWith({ logger, runner }) });
  for (const route of ["run", "connect"]) {
    const init = { method: "POST", headers: { "content-type": "application/json" } };
    const body = JSON.stringify(inputOf("t", "r"));
    const response = await handle(new Request(`http://local/agent/counter/${route}`, { ...init, body }));
    expect(await response.text()).toContain('"code":"INTERNAL_ERROR"');
  }
  const failed = "[ag-ui-local-runtime] A stream of events failed";
  expect(lines).toEqual([
    [failed, { path: "/agent/counter/run" }, expect.objectContaining({ message: "unspeakable" })],
    [failed, { path: "/agent/counter/connect" }, expect.objectContaining({ message: "unreadable" })],
  ]);
});

test.each(["dbName", "limits", "recordInput", "openTimeoutMs", "memoryFallback"] as const)(
  "%s beside a runner, which does not heed it, is refused when the runtime is made",
  (name) => {
    const values = { dbName: "x", limits: {}, recordInput: [], openTimeoutMs: 5, memoryFallback: true };
    const options = { runner: new InMemoryAgentRunner({ dbName: "y" }), [name]: values[name] };
    const refusal = { code: "invalid-input", details: { field: name } };
    expect(() => runtimeWith(options)).toThrow(expect.objectContaining(refusal));
  },
);

test("a logger without methods is refused when the runtime is made", () => {
  expect(() => runtimeWith({ logger: {} as Logger })).toThrow(expect.objectContaining({ code: "invalid-input" }));
});
