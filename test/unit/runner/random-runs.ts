import { AbstractAgent, EventType, verifyEvents, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import fc from "fast-check";
import { from, lastValueFrom, Observable, toArray } from "rxjs";
import { expect, inject, test, vi } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { RunnerError } from "../../../src/run/errors.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { referenceFold } from "../run/reference.js";
import { streams } from "../run/streams.js";
import { times } from "../property.js";

const FLAWS = ["throw", "violation", "malformed", "uncloneable", "patch", "unknown"] as const;
const ENDS = ["finished", "interrupt", "error", "complete", "never"] as const;
const ABORTS = ["ends", "ignores", "throws", "errors", "emits"] as const;

/** What one agent does in one run. */
interface Script {
  readonly events: readonly BaseEvent[];
  /** Before which event it errs, and how. */
  readonly flaw: { readonly at: number; readonly kind: (typeof FLAWS)[number] } | undefined;
  readonly end: (typeof ENDS)[number];
  /** Whether it goes on after its end. */
  readonly late: boolean;
  /** After which events other tasks get their turn. */
  readonly pauses: number;
  /** It is asked to stop after so many events. */
  readonly stopAt: number | undefined;
  readonly abort: (typeof ABORTS)[number];
  /** It says RUN_STARTED twice. */
  readonly twice: boolean;
}

const scripts: fc.Arbitrary<Script> = fc
  .record({
    stream: streams(25),
    flaw: fc.option(fc.record({ at: fc.nat(30), kind: fc.constantFrom(...FLAWS) }), { nil: undefined, freq: 2 }),
    end: fc.constantFrom(...ENDS),
    late: fc.boolean(),
    pauses: fc.integer({ min: 1, max: 40 }),
    stopAt: fc.option(fc.nat(30), { nil: undefined, freq: 2 }),
    abort: fc.constantFrom(...ABORTS),
    twice: fc.boolean(),
  })
  .map(({ stream, stopAt, end, ...rest }) => ({
    ...rest,
    events: stream.events,
    end,
    // Nobody else ends an agent that never does.
    stopAt: end === "never" ? (stopAt ?? 0) : stopAt,
  }));

const flawed = (kind: (typeof FLAWS)[number]): BaseEvent | undefined => {
  switch (kind) {
    case "throw":
      return undefined;
    case "violation":
      return { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "never started", delta: "x" };
    case "malformed":
      return { type: EventType.TEXT_MESSAGE_START, messageId: 7 } as unknown as BaseEvent;
    case "uncloneable":
      return { type: EventType.CUSTOM, name: "f", value: () => 1 } as BaseEvent;
    case "patch":
      return { type: EventType.STATE_DELTA, delta: [{ op: "remove", path: "/not/there" }] } as BaseEvent;
    case "unknown":
      return { type: "NO_SUCH_EVENT" } as unknown as BaseEvent;
  }
};
/** These do not end a run, unless they come before everything else. */
const isHarmless = ({ at, kind }: NonNullable<Script["flaw"]>): boolean =>
  kind === "unknown" || (kind === "patch" && at > 0);

const terminalOf = (end: Script["end"]): BaseEvent | undefined => {
  const finished = { type: EventType.RUN_FINISHED, threadId: "elsewhere", runId: "another" };
  switch (end) {
    case "finished":
      return { ...finished, result: { n: 1 } };
    case "interrupt":
      return { ...finished, outcome: { type: "interrupt", interrupts: [{ id: "i2", reason: "ask" }] } };
    case "error":
      return { type: EventType.RUN_ERROR, message: "mine" };
    default:
      return undefined;
  }
};

class ScriptedAgent extends AbstractAgent {
  private aborted = false;
  private readonly script: Script;
  private readonly reached: (count: number) => void;
  private onAbort: () => void = () => undefined;

  constructor(script: Script, reached: (count: number) => void) {
    super({ agentId: "scripted" });
    this.script = script;
    this.reached = reached;
  }

  override abortRun(): void {
    this.aborted = true;
    this.onAbort();
    if (this.script.abort === "throws") throw new Error("cannot be aborted");
  }

  override run(_input: RunAgentInput): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      const { abort } = this.script;
      this.onAbort = () => {
        if (abort === "ends") subscriber.complete();
        if (abort === "errors") subscriber.error(new Error("aborted"));
        if (abort === "emits") subscriber.next({ type: EventType.CUSTOM, name: "late", value: 1 } as BaseEvent);
      };
      this.play((event) => subscriber.next(event)).then(
        (completes) => completes && subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
    });
  }

  /** @returns whether it completes */
  private async play(emit: (event: BaseEvent) => void): Promise<boolean> {
    const { events, flaw, end, late, pauses, abort, twice } = this.script;
    const isOver = (): boolean => this.aborted && abort === "ends";
    for (const [n, event] of events.entries()) {
      if (n % pauses === pauses - 1) await nextTask();
      if (isOver()) return true;
      if (flaw?.at === n) {
        const wrong = flawed(flaw.kind);
        if (wrong === undefined) throw new Error("the script broke");
        emit(wrong);
      }
      emit(structuredClone(event));
      if (n === 0 && twice) emit(structuredClone(event));
      this.reached(n);
    }
    this.reached(Infinity);
    if (end === "never") await new Promise(() => undefined);
    const terminal = terminalOf(end);
    if (terminal !== undefined) emit(terminal);
    if (late) {
      emit({ type: EventType.CUSTOM, name: "after the end", value: 1 } as BaseEvent);
      if (terminal !== undefined) emit(structuredClone(terminal));
    }
    return !late || end === "complete";
  }
}

const isTerminal = ({ type }: BaseEvent): boolean => type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;
const valid = (events: readonly BaseEvent[]) => lastValueFrom(from(events).pipe(verifyEvents(), toArray()));

/** An agent whose run is over may go on after everything else. */
const unlessClosed = (error: unknown): void => {
  if (!RunnerError.is(error, "closed")) throw error;
};

let threads = 0;

/** One run by the script. @returns its events, which end as they must */
async function play(
  runner: LocalAgentRunner,
  threadId: string,
  runId: string,
  script: Script,
  open: readonly { readonly id: string }[],
): Promise<readonly BaseEvent[]> {
  let stop: Promise<unknown> | undefined;
  const agent = new ScriptedAgent(script, (count) => {
    if (script.stopAt !== undefined && count >= script.stopAt)
      stop ??= runner.stop({ threadId, runId }).catch(unlessClosed);
  });
  const state = runId === "r0" ? { list: [1], count: 0, a: { b: { c: 1 } } } : {};
  const messages = [{ id: `${runId}-u`, role: "user" as const, content: `ask ${runId}` }];
  const resume = open.map(({ id }) => ({ interruptId: id, status: "cancelled" as const }));
  const answers = open.length > 0 && { resume };
  const input = { threadId, runId, messages, state, tools: [], context: [], forwardedProps: {}, ...answers };
  const handed = await lastValueFrom(runner.run({ threadId, agent, input }).pipe(toArray()));
  await stop;
  await valid(handed);
  // Who sends {} is given what the run starts from, and so has what the log has.
  const nothing = { messages: [], state: {}, interrupts: [] };
  expect((await referenceFold(nothing, handed)).state).toEqual(await runner.getThreadState(threadId));

  const recorded = await runner.getRunEvents(runId, { threadId });
  const isGiven = handed.length > recorded.length && handed[1]?.type === EventType.STATE_SNAPSHOT;
  const events = isGiven ? handed.toSpliced(1, 1) : handed;
  expect(events.filter(isTerminal)).toEqual([events.at(-1)]);
  expect(await runner.isRunning({ threadId })).toBe(false);
  await valid(events);
  expect(recorded.map(({ event }) => event)).toEqual(events);
  expect(recorded.map(({ seq }) => seq)).toEqual(events.map((_, seq) => seq));

  // What the agent said stands in the log as it said it, up to where it erred or was stopped.
  const opening = events.findIndex(({ type }) => type !== EventType.RUN_STARTED && type !== EventType.STATE_SNAPSHOT);
  const said = script.events.slice(1);
  const { flaw } = script;
  const errs = flaw !== undefined && flaw.at < script.events.length && !isHarmless(flaw);
  if (!errs && script.stopAt === undefined) {
    const ownStart = runId === "r0" ? 2 : 1;
    const harmless = flaw?.kind === "patch" ? events.filter((event) => isHarmlessPatch(event)) : [];
    const kept = events.slice(ownStart).filter((event) => !harmless.includes(event));
    expect(kept.slice(0, said.length)).toEqual(said);
  } else expect(opening).not.toBe(0);
  return events;
}

const isHarmlessPatch = (event: BaseEvent): boolean =>
  event.type === EventType.STATE_DELTA && JSON.stringify(event["delta"]).includes("/not/there");

/** Random agents, valid and not, one run after another in a thread. */
export function testRandomRuns(name: string, count: number, runner: () => LocalAgentRunner): void {
  test(
    `${name}: random runs end once, leave the thread free and replay true (L2, L3, L4, L7)`,
    async () => {
      const silence = vi.spyOn(console, "error").mockImplementation(() => undefined);
      const its = runner();
      try {
        await fc.assert(
          fc.asyncProperty(fc.array(scripts, { minLength: 1, maxLength: 3 }), async (played) => {
            const threadId = `random-${threads++}`;
            const all: BaseEvent[] = [];
            let truth = await referenceFold({ messages: [], state: {}, interrupts: [] }, all);
            for (const [n, each] of played.entries()) {
              all.push(...(await play(its, threadId, `r${n}`, each, truth.interrupts)));
              truth = await referenceFold({ messages: [], state: {}, interrupts: [] }, all);
            }
            expect(await its.getThreadMessages(threadId)).toEqual(truth.messages);
            expect(await its.getThreadState(threadId)).toEqual(truth.state);
            const replayed = await lastValueFrom(its.connect({ threadId }).pipe(toArray()));
            await valid(replayed);
            expect(await referenceFold({ messages: [], state: {}, interrupts: [] }, replayed)).toEqual(truth);
            const prelude: BaseEvent[] = [];
            for await (const frame of its.attach({ threadId }, new AbortController().signal)) {
              if (frame.type === "prelude") prelude.push(...structuredClone(frame.events));
            }
            await valid(prelude);
            expect(await referenceFold({ messages: [], state: {}, interrupts: [] }, prelude)).toEqual(truth);
          }),
          times(count),
        );
      } finally {
        silence.mockRestore();
      }
    },
    600_000 * Math.max(1, inject("propertyFactor")),
  );
}
