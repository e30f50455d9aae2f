import { EventType, verifyEvents, type AbstractAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { concat, from, lastValueFrom, NEVER, Observable, of, Subject, takeUntil, throwError, toArray } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import { systemClock, type Clock } from "../../../src/platform/clock.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf } from "../../../src/platform/locks.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { RunStatus } from "../../../src/run/types.js";
import {
  agentOf,
  collect,
  counter,
  freshDb,
  inputOf,
  mortalLocks,
  makeRunner as makeMortal,
  PRESETS,
  rawAgent,
  rebuild,
  replay,
} from "./kit.js";

type Open = readonly BaseEvent[];

const text: Open = [
  { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "so far" },
];
const step: Open = [{ type: EventType.STEP_STARTED, stepName: "one" }];
const call: Open = [
  { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "look", parentMessageId: "p" },
  { type: EventType.TOOL_CALL_ARGS, toolCallId: "c", delta: '{"at":' },
];
const subagent: Open = [{ type: EventType.SUBAGENT_STARTED, subagentRunId: "s", name: "helper" }];

/** Every construct that AG-UI 1.0 can leave open. */
const CONSTRUCTS: Readonly<Record<string, Open>> = {
  nothing: [],
  "a text message": text,
  "a reasoning span": [{ type: EventType.REASONING_START, messageId: "r" }],
  "a reasoning message": [
    { type: EventType.REASONING_START, messageId: "r" },
    { type: EventType.REASONING_MESSAGE_START, messageId: "r", role: "reasoning" },
    { type: EventType.REASONING_MESSAGE_CONTENT, messageId: "r", delta: "hm" },
  ],
  "a tool call": call,
  "a tool call without its result": [...call, { type: EventType.TOOL_CALL_END, toolCallId: "c" }],
  "steps in one another": [...step, { type: EventType.STEP_STARTED, stepName: "two" }],
  "a subagent with a step and a text of its own": [
    ...subagent,
    { type: EventType.STEP_STARTED, stepName: "one", subagentRunId: "s" },
    { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant", subagentRunId: "s" },
  ],
  "an activity": [{ type: EventType.ACTIVITY_SNAPSHOT, messageId: "a", activityType: "plan", content: { done: 1 } }],
  "a text of chunks": [{ type: EventType.TEXT_MESSAGE_CHUNK, messageId: "m", delta: "so far" }],
  "chunks of several kinds": [
    { type: EventType.TOOL_CALL_CHUNK, toolCallId: "c", toolCallName: "look", delta: "{" },
    { type: EventType.REASONING_MESSAGE_CHUNK, messageId: "r", delta: "hm" },
    ...subagent,
    { type: EventType.TEXT_MESSAGE_CHUNK, messageId: "m", delta: "so far", subagentRunId: "s" },
  ],
  everything: [...step, ...text, ...call, { type: EventType.REASONING_START, messageId: "r" }, ...subagent],
};

/** Emits what is to be left open, then ends as `end` says, which is told when the agent is aborted. */
function leaving(open: Open, end: Way["end"]): AbstractAgent {
  const aborted$ = new Subject<void>();
  const agent = rawAgent(({ threadId, runId }) =>
    concat(
      of<BaseEvent>({ type: EventType.RUN_STARTED, threadId, runId }),
      from(structuredClone(open)),
      end(runId, aborted$),
    ),
  );
  return Object.assign(agent, { abortRun: () => aborted$.next() });
}

interface Way {
  readonly status: RunStatus;
  readonly end: (runId: string, aborted$: Observable<void>) => Observable<BaseEvent>;
  readonly terminal: object;
  /** What has to happen once the run is live. */
  readonly live?: (runner: LocalAgentRunner) => Promise<unknown>;
  readonly options?: () => object;
  /** What the next run has to answer. */
  readonly resume?: RunAgentInput["resume"];
}

const error = { type: EventType.RUN_ERROR };
const cancelled = { type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } };
const stop = (runner: LocalAgentRunner): Promise<unknown> => runner.stop({ threadId: "t", runId: "r" });

const WAYS: Readonly<Record<string, Way>> = {
  "its own RUN_FINISHED": {
    status: "finished",
    end: (runId) => of({ type: EventType.RUN_FINISHED, threadId: "t", runId, result: 7 }),
    terminal: { type: EventType.RUN_FINISHED, result: 7 },
  },
  "its own RUN_FINISHED with an interrupt": {
    status: "finished",
    end: (runId) =>
      of({
        type: EventType.RUN_FINISHED,
        threadId: "t",
        runId,
        outcome: { type: "interrupt", interrupts: [{ id: "i", reason: "confirm" }] },
      }),
    terminal: { outcome: { type: "interrupt" } },
    resume: [{ interruptId: "i", status: "cancelled" }],
  },
  "its own RUN_ERROR": {
    status: "errored",
    end: () => of({ type: EventType.RUN_ERROR, message: "mine", code: "MINE" }),
    terminal: { ...error, message: "mine", code: "MINE" },
  },
  "no terminal event": { status: "errored", end: () => of(), terminal: { ...error, code: "INCOMPLETE_STREAM" } },
  "a throw": {
    status: "errored",
    end: () => throwError(() => new Error("boom")),
    terminal: { ...error, message: "boom", code: "AGENT_FAILED" },
  },
  "a throw of something that has no text": {
    status: "errored",
    end: () => throwError(() => Object.create(null) as unknown),
    terminal: error,
  },
  "a breach of the protocol": {
    status: "errored",
    end: () => of({ type: EventType.TEXT_MESSAGE_END, messageId: "never" }),
    terminal: { ...error, code: "INVALID_STREAM" },
  },
  "a malformed event": {
    status: "errored",
    end: () => of({ type: EventType.TEXT_MESSAGE_START, messageId: 5 } as unknown as BaseEvent),
    terminal: { ...error, code: "INVALID_STREAM" },
  },
  "a stop that it obeys": {
    status: "stopped",
    end: (_runId, aborted$) => NEVER.pipe(takeUntil(aborted$)),
    terminal: cancelled,
    live: stop,
  },
  "a stop that it ignores": { status: "stopped", end: () => NEVER, terminal: cancelled, live: stop },
  "its time limit": {
    status: "errored",
    end: () => NEVER,
    terminal: { ...error, code: "RUN_TIMEOUT" },
    options: () => ({ maxRunMs: 20, clock: passingOnce(20) }),
  },
  "a run that supersedes it": {
    status: "superseded",
    end: () => NEVER,
    terminal: cancelled,
    options: () => ({ onConcurrentRun: "supersede" }),
    live: (runner) => collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "newer") })),
  },
};

/** A clock on which a wait of `ms` passes once, and never again: a slow machine lets no other run pass its limit. */
function passingOnce(ms: number): Clock {
  let passed = false;
  return {
    ...systemClock,
    after: (wait, signal) => {
      if (wait !== ms || !passed) {
        passed ||= wait === ms;
        return systemClock.after(wait, signal);
      }
      return systemClock.after(Infinity, signal);
    },
  };
}

const CASES = Object.keys(WAYS).flatMap((way) => Object.keys(CONSTRUCTS).map((open) => [way, open] as const));
const isTerminal = ({ type }: BaseEvent): boolean => type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;

describe.each(PRESETS)("%s: a run ends once, whatever is open (L3, L7)", (_name, makeRunner) => {
  test.each(CASES)("by %s, with %s open", async (way, open) => {
    const { status, end, terminal, live: happens, options, resume } = WAYS[way]!;
    const runner = makeRunner({ stopGraceMs: 5, ...options?.() });
    const run = collect(
      runner.run({ threadId: "t", agent: leaving(CONSTRUCTS[open]!, end), input: inputOf("t", "r") }),
    );
    if (happens !== undefined) {
      const all = CONSTRUCTS[open]!.length;
      await vi.waitFor(async () => expect((await runner.getRunEvents("r")).length).toBeGreaterThan(all));
      await happens(runner);
    }
    const events = await run;
    expect(events.filter(isTerminal)).toHaveLength(1);
    expect(events.at(-1)).toMatchObject(terminal);
    expect(await runner.getRun("r")).toMatchObject({ status, eventCount: events.length });
    await lastValueFrom(from(events).pipe(verifyEvents(), toArray()));

    const replayed = await rebuild(await replay(runner, "t"));
    const live = await rebuild(events);
    expect(replayed.messages.slice(0, live.messages.length)).toEqual(live.messages);
    const input = { ...inputOf("t", "next"), ...(resume && { resume }) };
    const next = await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input }));
    expect(next.at(-1)?.type).toBe(EventType.RUN_FINISHED);
    await lastValueFrom(from([...events, ...next]).pipe(verifyEvents(), toArray()));
    expect((await rebuild(await replay(runner, "t"))).messages.slice(0, live.messages.length)).toEqual(live.messages);
  });
});

test.each(Object.keys(CONSTRUCTS))("by the death of its host, with %s open (L9)", async (open) => {
  const manager = inProcessLockManager();
  const dying = mortalLocks(manager);
  const dbName = freshDb();
  const doomed = makeMortal({ dbName, locks: dying.locks });
  const agent = leaving(CONSTRUCTS[open]!, () => NEVER);
  doomed.run({ threadId: "t", agent, input: inputOf("t", "r") }).subscribe({ error: () => undefined });
  const all = CONSTRUCTS[open]!.length;
  await vi.waitFor(async () => expect((await doomed.getRunEvents("r")).length).toBeGreaterThan(all));
  await dying.die();
  const heir = makeMortal({ dbName, locks: locksOf(manager) });
  await vi.waitFor(async () => expect((await heir.getRun("r"))?.status).toBe("broken"));
  const events = (await heir.getRunEvents("r")).map(({ event }) => event);
  expect(events.filter(isTerminal)).toMatchObject([{ type: EventType.RUN_ERROR, code: "RUN_BROKEN" }]);
  await lastValueFrom(from(events).pipe(verifyEvents(), toArray()));
  await collect(heir.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") }));
  await replay(heir, "t");
});

const revoked = (): unknown => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

describe.each(PRESETS)(
  "%s: what an agent throws ends its run as AGENT_FAILED, whatever it is (L7)",
  (_name, makeRunner) => {
    test.each<[string, () => unknown]>([
      ["nothing", () => undefined],
      ["a proxy that cannot be looked at", revoked],
    ])("%s", async (_what, thrown) => {
      const agents: AbstractAgent[] = [
        rawAgent(() => {
          throw thrown();
        }),
        rawAgent(() => throwError(thrown)),
        agentOf(async function* () {
          yield* text;
          throw thrown();
        }),
      ];
      const runner = makeRunner();
      for (const [n, agent] of agents.entries()) {
        const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", `r${n}`) }));
        expect(events.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "AGENT_FAILED" });
      }
    });
  },
);
