import { AbstractAgent, EventType, HttpAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import fc from "fast-check";
import { lastValueFrom, Observable, toArray } from "rxjs";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { mustBeClosed, mustBeOneRun, mustBeValid, rebuild, type View } from "../../../src/conformance/view.js";
import { nextTask } from "../../../src/platform/clock.js";
import { RunnerError } from "../../../src/run/errors.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { times } from "../property.js";
import { agentOf, counter, inputOf, user } from "../runner/kit.js";
import { hostileEvents, THROWN, type Hostile } from "./hostile-events.js";

/** Small, so that random cases reach them. */
export const TIGHT = {
  maxDepth: 200,
  maxEventBytes: 30_000,
  maxPatchOperations: 1_000,
  maxCopiedBytes: 100_000,
  maxRunBytes: 200_000,
  maxRunEvents: 500,
};

const ENDS = ["finishes", "completes", "throws", "never"] as const;

/** What one agent does in one run. */
interface Script {
  readonly starts: boolean;
  readonly events: readonly Hostile[];
  readonly end: (typeof ENDS)[number];
  readonly thrown: Hostile;
  /** It is asked to stop after so many events. */
  readonly stopAt: number | undefined;
  /** What it does when it is asked: end, throw, or nothing. */
  readonly obeys: "ends" | "throws" | "ignores";
  /** Other tasks get their turn before each event. */
  readonly pauses: boolean;
  readonly isGenerator: boolean;
}

const scripts: fc.Arbitrary<Script> = fc
  .record({
    starts: fc.boolean(),
    events: hostileEvents,
    end: fc.constantFrom(...ENDS),
    thrown: fc.constantFrom(...THROWN),
    stopAt: fc.option(fc.nat(12), { nil: undefined, freq: 3 }),
    obeys: fc.constantFrom("ends" as const, "throws" as const, "ignores" as const),
    pauses: fc.boolean(),
    isGenerator: fc.boolean(),
  })
  // Nobody else ends an agent that never does.
  .map((script) => ({ ...script, stopAt: script.end === "never" ? (script.stopAt ?? 0) : script.stopAt }));

class HostileAgent extends AbstractAgent {
  private readonly ask = new AbortController();
  private readonly script: Script;
  private readonly reached: (count: number) => void;

  constructor(script: Script, reached: (count: number) => void) {
    super({ agentId: "hostile" });
    this.script = script;
    this.reached = reached;
  }

  override abortRun(): void {
    this.ask.abort();
    if (this.script.obeys === "throws") throw this.script.thrown.make();
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      if (this.script.obeys === "ends") this.ask.signal.addEventListener("abort", () => subscriber.complete());
      void (async () => {
        for await (const event of emitted(this.script, input, this.reached)) subscriber.next(event);
        subscriber.complete();
      })().catch((error: unknown) => subscriber.error(error));
    });
  }
}

/** Events that are none; whoever takes them must look. */
async function* emitted(
  { starts, events, end, thrown, pauses }: Script,
  { threadId, runId }: Pick<RunAgentInput, "threadId" | "runId">,
  reached: (count: number) => void,
): AsyncGenerator<BaseEvent> {
  if (starts) yield { type: EventType.RUN_STARTED, threadId, runId } as BaseEvent;
  for (const [n, event] of events.entries()) {
    if (pauses) await nextTask();
    reached(n);
    yield event.make() as BaseEvent;
  }
  reached(Infinity);
  if (end === "throws") throw thrown.make();
  if (end === "never") await new Promise(() => undefined);
  if (end === "finishes") yield { type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent;
}

export const quiet = { error: () => undefined, warn: () => undefined };

/** A runner with a face for HTTP and one for tabs. */
function facesOf(runner: LocalAgentRunner) {
  const runtime = new AgentRuntime({ agents: { any: agentOf(counter(1)) }, runner, logger: quiet });
  const host = serveRuntime(runtime);
  const connection = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await connection.close();
    await host.close();
  });
  return { handler: createRuntimeHandler({ runtime }), connection };
}

async function readings(
  runner: LocalAgentRunner,
  { handler, connection }: ReturnType<typeof facesOf>,
  threadId: string,
): Promise<Record<string, View>> {
  const views: Record<string, View> = {};
  for (const replay of ["events", "snapshot"] as const) {
    const events = await lastValueFrom(runner.connect({ threadId, replay }).pipe(toArray()));
    mustBeValid(replay, events);
    views[replay] = await rebuild(replay, events);
  }
  const reader = new HttpAgent({
    url: "http://runtime.test/agent/any/connect",
    threadId,
    fetch: (url, init) => handler(new Request(url, init)),
  });
  await reader.runAgent({ runId: "reading" });
  views["HTTP"] = { messages: reader.messages, state: reader.state, interrupts: reader.pendingInterrupts };
  const tab = connection.agent("any", { threadId });
  await tab.connectAgent();
  views["tab"] = { messages: tab.messages, state: tab.state, interrupts: tab.pendingInterrupts };
  return views;
}

const unlessClosed = (error: unknown): void => {
  if (!RunnerError.is(error, "closed")) throw error;
};

async function play(runner: LocalAgentRunner, threadId: string, runId: string, script: Script): Promise<void> {
  let stop: Promise<unknown> | undefined;
  const reached = (count: number): void => {
    if (script.stopAt !== undefined && count >= script.stopAt)
      stop ??= runner.stop({ threadId, runId }).catch(unlessClosed);
  };
  const agent = script.isGenerator
    ? agentOf((input) => emitted(script, input, reached))
    : new HostileAgent(script, reached);
  // What an earlier run asked is answered, or this one would be refused.
  const open = await openInterrupts(runner, threadId);
  const resume = open.map((interruptId) => ({ interruptId, status: "cancelled" as const }));
  const input = { ...inputOf(threadId, runId, [user(`${runId}-u`)]), ...(resume.length > 0 && { resume }) };
  const events = await lastValueFrom(runner.run({ threadId, agent, input }).pipe(toArray()));
  await stop;
  const name = `the run of ${JSON.stringify(script)}`;
  mustBeValid(name, events);
  mustBeClosed(name, events);
  mustBeOneRun(name, events, { threadId, runId });
  expect(await runner.isRunning({ threadId })).toBe(false);
}

async function openInterrupts(runner: LocalAgentRunner, threadId: string): Promise<string[]> {
  const events = await lastValueFrom(runner.connect({ threadId, replay: "snapshot" }).pipe(toArray()));
  return [...new Set((await rebuild("the thread", events)).interrupts.map(({ id }) => id))];
}

/** Whatever agents do, their thread stays readable, says the same to everybody and takes the next run (L3, L7, L19). */
export function testHostileAgents(name: string, count: number, make: () => LocalAgentRunner): void {
  test(
    `${name}: hostile agents cost no more than their own run`,
    async () => {
      for (const method of ["error", "warn"] as const) vi.spyOn(console, method).mockImplementation(() => undefined);
      onTestFinished(() => void vi.restoreAllMocks());
      const runner = make();
      const faces = facesOf(runner);
      let threads = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(scripts, { minLength: 1, maxLength: 3 }), async (played) => {
          const threadId = `hostile-${threads++}`;
          for (const [n, script] of played.entries()) await play(runner, threadId, `r${n}`, script);

          const [first, ...others] = Object.entries(await readings(runner, faces, threadId));
          for (const [way, view] of others) expect({ way, ...view }, `as ${first![0]}`).toEqual({ way, ...first![1] });
          expect(await runner.getThreadMessages(threadId)).toEqual(first![1].messages);
          expect(await runner.getThreadState(threadId)).toEqual(first![1].state);
          expect(({} as { readonly polluted?: unknown }).polluted).toBeUndefined();

          await play(runner, threadId, "last", BENIGN);
          expect((await runner.getRun("last", { threadId }))?.status).toBe("finished");
          await runner.deleteThread(threadId);
        }),
        times(count),
      );
    },
    120_000 * Math.max(1, inject("propertyFactor")),
  );
}

const BENIGN: Script = {
  starts: true,
  events: [{ says: "text", make: () => ({ type: EventType.TEXT_MESSAGE_CHUNK, messageId: "last", delta: "fine" }) }],
  end: "finishes",
  thrown: THROWN[0]!,
  stopAt: undefined,
  obeys: "ends",
  pauses: false,
  isGenerator: false,
};
