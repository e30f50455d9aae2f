import type { Message, RunAgentParameters } from "@ag-ui/client";
import { BehaviorSubject, Observable, of, Subscription, switchMap, tap } from "rxjs";
import { randomId } from "../../platform/ids.js";
import { messageOf, RunnerError, type RunnerErrorCode } from "../../run/errors.js";
import type { ThreadToolCalls, WaitingToolCall } from "../../wire/shapes.js";
import type { RuntimeConnection } from "../connect-runtime.js";
import type { LocalAgent } from "../local-agent.js";
import { againAfterErrors, asError, backoff } from "../read-until-done.js";
import {
  callsIn,
  NO_CALLS,
  withTools,
  type FrontendTool,
  type OfferedTools,
  type ShownToolCall,
  type ToolCallContext,
} from "./frontend-tools.js";
import { hasUnanswered, mayWait } from "./may-wait.js";

/** Another tab that gave the last result starts the next run; after this time (ms) it is taken for gone. */
const GO_ON_MS = 1_500;
/** The same for a tab that offers none of the tools: those that do come first. */
const GO_ON_BARE_MS = 15_000;
/** The tab that started the run comes first: how long the others leave its calls to it, if they are shown, or hidden. In ms. */
const LEAVE_MS = 300;
const LEAVE_HIDDEN_MS = 1_500;
/** When it is looked again, after what may pass soon, and later, in ms. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

const NONE: ThreadToolCalls = { calls: [] };

/** Asking again does not help. */
const FINAL: ReadonlySet<RunnerErrorCode> = new Set<RunnerErrorCode>([
  "call-over",
  "closed",
  "corrupt-record",
  "invalid-input",
  "outdated",
  "protocol-mismatch",
  "refused",
  "storage-deleted",
  "storage-unavailable",
  "wrong-user",
]);

/** The thread went on by itself, or another tab was first. */
const isOver = (error: unknown): boolean =>
  RunnerError.is(error, "call-over") || RunnerError.is(error, "run-exists") || RunnerError.is(error, "closed");

/** Of `runFrontendTools`. */
export interface FrontendToolRunnerOptions {
  /** Parameters of the run that goes on with the results, besides the tools. */
  readonly parameters?: () => RunAgentParameters;
  /** Called with what keeps a call from being run, or its result from being recorded. Errors of handlers go to the agent. */
  readonly failed?: (error: Error) => void;
  /** @internal Called when the host tells of the calls: what it failed at before may be over. */
  readonly passed?: () => void;
}

/** What names a call. */
interface Named {
  readonly threadId: string;
  readonly toolCallId: string;
}

const keyOf = ({ threadId, toolCallId }: Named): string => JSON.stringify([threadId, toolCallId]);

/** A call that this tab works on, until its result is recorded or not wanted any more. */
interface Work extends Named {
  readonly name: string;
  readonly tool: FrontendTool;
  readonly token: string;
  /** Aborts when the result is not wanted any more. */
  readonly over: AbortController;
  is: "claiming" | "running" | "done" | "giving";
  result: { readonly content: string; readonly error?: string } | undefined;
}

/**
 * Runs the front-end tool calls of a thread in one of the tabs that offer the tools: each is claimed before its handler
 * runs, its result recorded once, and the run that goes on with the results started once.
 */
export class FrontendToolRunner {
  private readonly shown$ = new BehaviorSubject<readonly ShownToolCall[]>(NO_CALLS);
  /** The calls that wait, as they are now; replays the latest. */
  readonly calls$: Observable<readonly ShownToolCall[]> = this.shown$.asObservable();
  /** By thread and tool call: an agent may be set to another thread while handlers of one run. */
  private readonly work = new Map<string, Work>();
  private waiting: ThreadToolCalls = NONE;
  /** The thread whose calls `waiting` has. */
  private threadId: string;
  /** Calls that are left to others for a moment, by key. */
  private readonly left = new Map<string, ReturnType<typeof setTimeout>>();
  /** The thread's last run was started here. */
  private isOwnRun = false;
  /** Attempts to go on that failed, in a row. */
  private failures = 0;
  private goingOn: string | undefined;
  /** Ends while it is not begun. */
  private life: Subscription | undefined;
  private goOnTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly runtime: Pick<RuntimeConnection, "toolCalls" | "threads">,
    private readonly agent: LocalAgent,
    private readonly tools: OfferedTools,
    private readonly options: FrontendToolRunnerOptions = {},
  ) {
    this.threadId = agent.threadId;
  }

  /**
   * Runs calls from now on, while the agent follows its thread.
   *
   * @returns ends it; handlers that run go on, and give their results
   */
  begin(): () => void {
    const { agent } = this;
    const life = new Subscription();
    this.life = life;
    // The thread has gone on without what was called.
    const hooks = agent.subscribe({
      onRunFinalized: ({ input }) => {
        if (input.runId !== agent.refused && !hasUnanswered(agent)) this.abandonAll(agent.threadId);
      },
    });
    life.add(() => hooks.unsubscribe());
    life.add(
      agent.run$.subscribe((run) => {
        this.isOwnRun = run.is === "idle" && run.last !== undefined && agent.isOwnRun(run.last.runId);
      }),
    );
    life.add(
      mayWait(agent)
        .pipe(switchMap((threadId) => (threadId === undefined ? of(NONE) : this.watched(threadId))))
        .subscribe((waiting) => {
          this.threadId = agent.threadId;
          this.take(waiting);
        }),
    );
    life.add(this.tools.changes$.subscribe(() => this.act()));
    life.add(() => clearTimeout(this.goOnTimer));
    return () => {
      life.unsubscribe();
      if (this.life === life) this.life = undefined;
    };
  }

  /**
   * Gives a call its result, in place of a handler. Errors: RunnerError `call-over` if it has one, or the thread went on;
   * `invalid-input` for what is no JSON.
   *
   * @param result as a handler returns it
   * @returns the id of the message with the result
   */
  async answer(toolCallId: string, result: unknown): Promise<string> {
    const { threadId } = this;
    const call = this.waiting.calls.find((one) => one.toolCallId === toolCallId);
    const followUp = (call && this.toolOf(call))?.followUp !== false;
    const token = randomId();
    const given = { token, by: "user", content: givenText(result), followUp } as const;
    await this.runtime.toolCalls.answer({ threadId, toolCallId, ...given });
    const work = this.work.get(keyOf({ threadId, toolCallId }));
    if (work !== undefined) this.abandon(work);
    this.answeredHere({ threadId, toolCallId }, followUp);
    return token;
  }

  /** Runs an interrupted call again, or one of another device here. Errors: RunnerError `call-over`, also if no handler is offered here. */
  async runAgain(toolCallId: string): Promise<void> {
    const call = this.waiting.calls.find((one) => one.toolCallId === toolCallId);
    const tool = call && this.toolOf(call);
    const { threadId } = this;
    if (call === undefined || tool?.handler === undefined) throw new RunnerError("call-over", { threadId, toolCallId });
    // It runs here already. A handler that goes on though its result is not wanted is none that somebody waits for.
    if (this.work.get(keyOf({ threadId, toolCallId }))?.over.signal.aborted === false) return;
    await this.run(call, tool, true);
  }

  private toolOf({ name }: WaitingToolCall): FrontendTool | undefined {
    return this.tools.find(name, this.waiting.agentId ?? this.agent.agentId);
  }

  private watched(threadId: string): Observable<ThreadToolCalls> {
    const watched$ = this.runtime.toolCalls.watch(threadId);
    return againAfterErrors(watched$, (error) => this.fail(error)).pipe(tap(() => this.options.passed?.()));
  }

  private take(waiting: ThreadToolCalls): void {
    this.waiting = waiting;
    // Without a list nothing is known: a live run may leave the calls waiting.
    if (waiting.nextRunId !== undefined) for (const work of this.work.values()) this.compare(work);
    this.show();
    this.act();
  }

  /** What is worked on here, beside what the host says of it. */
  private compare(work: Work): void {
    if (work.threadId !== this.threadId || work.is === "claiming" || work.is === "giving") return;
    const call = this.waiting.calls.find(({ toolCallId }) => toolCallId === work.toolCallId);
    const isOurs = call?.status === "claimed" && call.token === work.token;
    // The claim was lost (the page was in the back/forward cache), and nobody else has the call.
    const isFree = call?.status === "open" || call?.status === "interrupted";
    if (!isOurs && !isFree) return this.abandon(work);
    if (isFree) this.claim(work, true).catch((error: unknown) => this.fail(error));
    if (work.is === "done") void this.give(work);
  }

  private abandon(work: Work): void {
    work.over.abort();
    // A handler that ends later is told by the aborted signal.
    if (work.is === "done") this.drop(work);
  }

  private drop(work: Work): void {
    const key = keyOf(work);
    // Somebody may have had the call run again meanwhile.
    if (this.work.get(key) === work) this.work.delete(key);
  }

  private abandonAll(threadId: string): void {
    for (const work of this.work.values()) if (work.threadId === threadId) this.abandon(work);
  }

  private show(): void {
    const { threadId } = this;
    const shown = this.waiting.calls.map(({ toolCallId, name, status, token, elsewhere }): ShownToolCall => {
      const work = this.work.get(keyOf({ threadId, toolCallId }));
      const isHere = token !== undefined && work?.token === token && status === "claimed";
      const is = status === "claimed" ? "running" : status;
      const result = status === "answered" && token !== undefined ? { resultId: token } : {};
      return { toolCallId, name, status: is, isHere, ...(elsewhere && { elsewhere }), ...result };
    });
    this.shown$.next(shown.length === 0 ? NO_CALLS : shown);
  }

  /** Does what is to be done now. */
  private act(): void {
    clearTimeout(this.goOnTimer);
    if (this.life === undefined) return;
    for (const { toolCallId } of this.waiting.calls) this.consider(toolCallId);
    if (!this.mayGoOn()) return;
    // A tab of the device where they were called goes on first.
    const isOffered = this.waiting.calls.some((call) => !call.elsewhere && this.toolOf(call) !== undefined);
    const wait = Math.min((isOffered ? GO_ON_MS : GO_ON_BARE_MS) * 2 ** this.failures, RETRY_MAX_MS);
    this.goOnTimer = setTimeout(() => void this.goOn(), wait);
  }

  /** Runs a call if it is to be run here: the user sees what a handler shows in the tab where the question was asked. */
  private consider(toolCallId: string): void {
    const key = keyOf({ threadId: this.threadId, toolCallId });
    if (!this.mayRun(toolCallId) || this.left.has(key)) return;
    const run = (): void => {
      this.left.delete(key);
      if (this.life === undefined || keyOf({ threadId: this.threadId, toolCallId }) !== key) return;
      const found = this.mayRun(toolCallId);
      if (found !== undefined) this.run(found.call, found.tool, false).catch((error: unknown) => this.fail(error));
    };
    if (this.isOwnRun) return run();
    this.left.set(key, setTimeout(run, isHidden() ? LEAVE_HIDDEN_MS : LEAVE_MS));
  }

  /** A call that nobody works on, if it is offered here. */
  private mayRun(toolCallId: string): { readonly call: WaitingToolCall; readonly tool: FrontendTool } | undefined {
    const call = this.waiting.calls.find((one) => one.toolCallId === toolCallId);
    const tool = call && this.toolOf(call);
    if (call?.status !== "open" || call.elsewhere || tool?.handler === undefined) return undefined;
    return this.work.has(keyOf({ threadId: this.threadId, toolCallId })) ? undefined : { call, tool };
  }

  /** Looks again later: what is waited for may never come. */
  private actLater(pause = RETRY_MS): void {
    setTimeout(() => {
      if (this.life !== undefined) this.take(this.waiting);
    }, pause);
  }

  private mayGoOn(): boolean {
    const { calls, nextRunId } = this.waiting;
    return (
      nextRunId !== undefined &&
      calls.every(({ status }) => status === "answered") &&
      calls.some(({ followUp }) => followUp !== false) &&
      this.agent.pendingInterrupts.length === 0
    );
  }

  private async run({ toolCallId, name }: WaitingToolCall, tool: FrontendTool, again: boolean): Promise<void> {
    const { threadId } = this;
    const over = new AbortController();
    const work: Work = { threadId, toolCallId, name, tool, token: randomId(), over, is: "claiming", result: undefined };
    this.work.set(keyOf(work), work);
    let isClaimed = false;
    try {
      isClaimed = await this.claim(work, again);
    } finally {
      if (!isClaimed) {
        this.drop(work);
        // The tab that has it may have died since.
        this.actLater();
      }
    }
    if (!isClaimed) return;
    work.is = "running";
    work.result = await this.resultOf(work);
    work.is = "done";
    await this.give(work);
  }

  /** With the same token again, also after it was lost. */
  private claim({ threadId, toolCallId, token, tool }: Work, again: boolean): Promise<boolean> {
    const once = tool.repeatable === false;
    return patiently(() => this.runtime.toolCalls.claim({ threadId, toolCallId, token, once, again }));
  }

  /** Has the result recorded. What cannot be recorded now is kept, until the call is over. */
  private async give(work: Work): Promise<void> {
    const { threadId, toolCallId, token, over, result, tool } = work;
    if (result === undefined) return;
    work.is = "giving";
    const followUp = tool.followUp !== false;
    try {
      await patiently(() =>
        this.runtime.toolCalls.answer({ threadId, toolCallId, token, by: "handler", followUp, ...result }),
      );
      this.drop(work);
      this.answeredHere(work, followUp);
    } catch (error) {
      work.is = "done";
      this.fail(error);
      if (over.signal.aborted || RunnerError.is(error, "closed")) this.drop(work);
      else this.actLater(isOver(error) ? RETRY_MS : RETRY_MAX_MS);
    } finally {
      this.show();
    }
  }

  private fail(error: unknown): void {
    if (isOver(error)) return;
    this.options.failed?.(asError(error));
  }

  private async resultOf({
    tool: { handler },
    threadId,
    toolCallId,
    name,
    token,
    over,
  }: Work): Promise<Work["result"]> {
    const context = { threadId, toolCallId, name, resultId: token, signal: over.signal };
    try {
      const text = await patiently(() => this.argumentsOf(context));
      const args: unknown = text.trim() === "" ? {} : JSON.parse(text);
      return { content: textOf(await handler?.(args, context)) };
    } catch (error) {
      const message = messageOf(error);
      return { content: `Error: ${message}`, error: message };
    }
  }

  /** The arguments of a call, from the messages that are loaded or else from the thread. */
  private async argumentsOf({ threadId, toolCallId, name }: ToolCallContext): Promise<string> {
    const { agent } = this;
    // The agent may show another thread by now.
    let messages: readonly Message[] = agent.threadId === threadId ? agent.messages : [];
    for (;;) {
      // Where the name is another one, somebody has changed what is stored.
      const found = callsIn(messages).findLast((call) => call.id === toolCallId && call.function.name === name);
      if (found !== undefined) return found.function.arguments;
      const before = messages[0]?.id;
      const isFirst = messages === agent.messages;
      const page = await this.runtime.threads.messages(threadId, isFirst || before === undefined ? {} : { before });
      if (page.messages.length === 0) throw new RunnerError("call-over", { threadId, toolCallId });
      ({ messages } = page);
    }
  }

  /** The tab that gave the last result goes on. */
  private answeredHere({ threadId, toolCallId }: Named, followUp: boolean): void {
    if (threadId !== this.threadId) return;
    const answered = { status: "answered", ...(!followUp && { followUp }) } as const;
    const calls = this.waiting.calls.map((call) => (call.toolCallId === toolCallId ? { ...call, ...answered } : call));
    this.waiting = { ...this.waiting, calls };
    this.show();
    // Also where the page shows another thread by now.
    if (this.mayGoOn()) void this.goOn();
  }

  private async goOn(): Promise<void> {
    const { nextRunId } = this.waiting;
    if (nextRunId === undefined || this.goingOn === nextRunId || this.agent.threadId !== this.threadId) return;
    this.goingOn = nextRunId;
    const { agent, tools, waiting } = this;
    const parameters = this.options.parameters?.() ?? {};
    // Whoever has called the tools goes on with their results.
    const { agentId = agent.agentId } = waiting;
    agent.runsAs = { runId: nextRunId, agentId };
    try {
      // How it ends is told by `run$`.
      await agent.runAfterToolCalls(nextRunId, withTools(parameters, tools.definitions(agentId)));
      this.failures = 0;
    } catch (error) {
      if (isOver(error)) return;
      // Not started, or told by `run$`: tried again while the calls wait, and nothing else happens.
      this.goingOn = undefined;
      this.failures++;
      if (!RunnerError.is(error, "thread-busy") && !RunnerError.is(error, "interrupts-open")) this.fail(error);
      this.actLater();
    }
  }
}

const isHidden = (): boolean => typeof document !== "undefined" && document.visibilityState === "hidden";

const textOf = (result: unknown): string =>
  typeof result === "string" ? result : result === undefined ? "" : (JSON.stringify(result) ?? "");

/** As {@link textOf}. @throws RunnerError `invalid-input` */
function givenText(result: unknown): string {
  try {
    return textOf(result);
  } catch (cause) {
    throw new RunnerError("invalid-input", { field: "result" }, { message: "result must be text or JSON", cause });
  }
}

/** Repeats what the host did not answer, until it says yes or no. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (RunnerError.is(error) && FINAL.has(error.code)) throw error;
      await new Promise((resolve) => setTimeout(resolve, backoff(failures)));
    }
  }
}
