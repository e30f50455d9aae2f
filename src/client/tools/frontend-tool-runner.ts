import type { Message, RunAgentParameters } from "@ag-ui/client";
import { BehaviorSubject, Observable, of, retry, Subscription, switchMap, timer } from "rxjs";
import { randomId } from "../../platform/ids.js";
import { messageOf, RunnerError, type RunnerErrorCode } from "../../run/errors.js";
import type { ThreadToolCalls, ToolCallAnswer, WaitingToolCall } from "../../wire/shapes.js";
import type { RuntimeConnection } from "../connect-runtime.js";
import type { LocalAgent } from "../local-agent.js";
import { withTools, type FrontendTool, type FrontendTools } from "./frontend-tools.js";
import { mayWait } from "./may-wait.js";

/** A tool call that waits for the front end, as a page shows it. */
export interface ShownToolCall {
  readonly toolCallId: string;
  readonly name: string;
  /**
   * - `open`: waits for a tab that offers the tool, or for an answer.
   * - `running`: a handler runs; `isHere`: in this tab.
   * - `interrupted`: its tab has died in the middle of a handler that must not run twice: run it again, or answer it.
   * - `answered`: has its result; the agent goes on when all have theirs.
   */
  readonly status: "open" | "running" | "interrupted" | "answered";
  readonly isHere: boolean;
}

/** Another tab that gave the last result starts the next run; after this time (ms) it is taken for gone. */
const GO_ON_MS = 1_500;
/** Backoff of what the host did not answer: first and longest wait, in ms. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

const NO_CALLS: readonly ShownToolCall[] = [];
const NONE: ThreadToolCalls = { calls: [] };

/** The thread moved on by itself, or another tab was first: nothing is left to do. */
const SETTLED: ReadonlySet<RunnerErrorCode> = new Set<RunnerErrorCode>([
  "call-over",
  "closed",
  "interrupts-open",
  "invalid-input",
  "refused",
  "run-exists",
  "unknown-agent",
]);

/** Of `runFrontendTools`. */
export interface FrontendToolRunnerOptions {
  /** Parameters of the run that goes on with the results, besides the tools. */
  readonly parameters?: () => RunAgentParameters;
  /** Called with what keeps a call from being run, or its result from being recorded. Errors of handlers go to the agent. */
  readonly failed?: (error: Error) => void;
}

/** A handler that runs in this tab. */
interface Running {
  readonly token: string;
  readonly over: AbortController;
}

/**
 * Runs the front-end tool calls of a thread in one of the tabs that offer the tools: each is claimed before its handler
 * runs, its result recorded once, and the run that goes on with the results started once.
 */
export class FrontendToolRunner {
  private readonly shown$ = new BehaviorSubject<readonly ShownToolCall[]>(NO_CALLS);
  /** The calls that wait, as they are now; replays the latest. */
  readonly calls$: Observable<readonly ShownToolCall[]> = this.shown$.asObservable();
  private readonly running = new Map<string, Running>();
  /** By token: results that could not be given because a run had begun. It may have left the call waiting. */
  private readonly ungiven = new Map<string, ToolCallAnswer>();
  private waiting: ThreadToolCalls = NONE;
  private isIdle = false;
  private goingOn: string | undefined;
  /** Ends while it is not begun. */
  private life: Subscription | undefined;
  private goOnTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly runtime: Pick<RuntimeConnection, "toolCalls" | "threads">,
    private readonly agent: LocalAgent,
    private readonly tools: FrontendTools,
    private readonly options: FrontendToolRunnerOptions = {},
  ) {}

  /**
   * Runs calls from now on, while the agent follows its thread.
   *
   * @returns ends it; handlers that run go on, and give their results
   */
  begin(): () => void {
    const life = new Subscription();
    this.life = life;
    life.add(this.agent.run$.subscribe(({ is }) => (this.isIdle = is === "idle")));
    life.add(
      mayWait(this.agent)
        .pipe(switchMap((may) => (may ? this.watched() : of(NONE))))
        .subscribe((waiting) => this.take(waiting)),
    );
    life.add(this.tools.changes$.subscribe(() => this.act()));
    life.add(() => clearTimeout(this.goOnTimer));
    return () => {
      life.unsubscribe();
      if (this.life === life) this.life = undefined;
    };
  }

  /**
   * Gives a call its result, in place of a handler. Errors: RunnerError `call-over` if it has one, or the thread went on.
   *
   * @param result as a handler returns it
   */
  async answer(toolCallId: string, result: unknown): Promise<void> {
    const { threadId } = this.agent;
    await this.runtime.toolCalls.answer({
      threadId,
      toolCallId,
      token: randomId(),
      by: "user",
      content: textOf(result),
    });
    this.answeredHere(toolCallId);
  }

  /** Runs an interrupted call again, here. Errors: RunnerError `call-over`, also if no handler is offered here. */
  async runAgain(toolCallId: string): Promise<void> {
    const call = this.waiting.calls.find((one) => one.toolCallId === toolCallId);
    const tool = call && this.tools.find(call.name, this.agent.agentId);
    if (call === undefined || tool?.handler === undefined) {
      throw new RunnerError("call-over", { threadId: this.agent.threadId, toolCallId });
    }
    await this.run(call, tool, true);
  }

  private watched(): Observable<ThreadToolCalls> {
    const delay = (_error: unknown, count: number): Observable<unknown> =>
      timer(Math.min(RETRY_MS * 2 ** (count - 1), RETRY_MAX_MS));
    return this.runtime.toolCalls.watch(this.agent.threadId).pipe(retry({ delay, resetOnSuccess: true }));
  }

  private take(waiting: ThreadToolCalls): void {
    this.waiting = waiting;
    // A live run may leave the calls waiting.
    for (const [toolCallId, { token, over }] of this.isIdle ? this.running : []) {
      const call = waiting.calls.find((one) => one.toolCallId === toolCallId);
      // While it is being claimed it has another status.
      if (call === undefined || (call.status !== "open" && call.token !== token)) over.abort();
    }
    for (const { status, token = "" } of waiting.calls) {
      const answer = this.ungiven.get(token);
      if (status === "claimed" && answer !== undefined) this.give(answer).catch((error: unknown) => this.fail(error));
    }
    if (waiting.nextRunId !== undefined) this.ungiven.clear();
    this.show();
    this.act();
  }

  private show(): void {
    const shown = this.waiting.calls.map(({ toolCallId, name, status, token }): ShownToolCall => {
      const isHere = token !== undefined && this.running.get(toolCallId)?.token === token;
      return { toolCallId, name, status: status === "claimed" ? "running" : status, isHere };
    });
    this.shown$.next(shown.length === 0 ? NO_CALLS : shown);
  }

  /** Does what is to be done now. */
  private act(): void {
    clearTimeout(this.goOnTimer);
    if (this.life === undefined) return;
    for (const call of this.waiting.calls) {
      const tool = this.tools.find(call.name, this.agent.agentId);
      if (call.status !== "open" || tool?.handler === undefined || this.running.has(call.toolCallId)) continue;
      this.run(call, tool, false).catch((error: unknown) => this.fail(error));
    }
    if (this.mayGoOn()) this.goOnTimer = setTimeout(() => void this.goOn(), GO_ON_MS);
  }

  private mayGoOn(): boolean {
    const { calls, nextRunId } = this.waiting;
    const { agentId, pendingInterrupts } = this.agent;
    return (
      nextRunId !== undefined &&
      calls.every(({ status }) => status === "answered") &&
      calls.some(({ name }) => this.tools.find(name, agentId)?.followUp !== false) &&
      pendingInterrupts.length === 0
    );
  }

  private async run({ toolCallId, name }: WaitingToolCall, tool: FrontendTool, again: boolean): Promise<void> {
    const { threadId } = this.agent;
    const token = randomId();
    const over = new AbortController();
    this.running.set(toolCallId, { token, over });
    try {
      const once = tool.repeatable === false;
      if (!(await this.runtime.toolCalls.claim({ threadId, toolCallId, token, once, again }))) return;
      const result = await this.resultOf(tool, { threadId, toolCallId, name, signal: over.signal });
      await this.give({ threadId, toolCallId, token, by: "handler", ...result });
    } finally {
      this.running.delete(toolCallId);
      this.show();
    }
  }

  private async give(answer: ToolCallAnswer): Promise<void> {
    try {
      await patiently(() => this.runtime.toolCalls.answer(answer));
    } catch (error) {
      if (!RunnerError.is(error, "call-over")) throw error;
      this.ungiven.set(answer.token, answer);
      return;
    }
    this.answeredHere(answer.toolCallId);
  }

  private fail(error: unknown): void {
    if (RunnerError.is(error, "call-over") || RunnerError.is(error, "closed")) return;
    this.options.failed?.(error instanceof Error ? error : new Error(String(error)));
  }

  private async resultOf(
    { handler }: FrontendTool,
    context: {
      readonly threadId: string;
      readonly toolCallId: string;
      readonly name: string;
      readonly signal: AbortSignal;
    },
  ): Promise<{ readonly content: string; readonly error?: string }> {
    try {
      const text = await patiently(() => this.argumentsOf(context.toolCallId));
      const args: unknown = text.trim() === "" ? {} : JSON.parse(text);
      return { content: textOf(await handler?.(args, context)) };
    } catch (error) {
      const message = messageOf(error);
      return { content: `Error: ${message}`, error: message };
    }
  }

  /** The arguments of a call, from the messages that are loaded or else from the thread. */
  private async argumentsOf(toolCallId: string): Promise<string> {
    const { threadId } = this.agent;
    let { messages }: { messages: readonly Message[] } = this.agent;
    for (;;) {
      const found = argumentsIn(messages, toolCallId);
      if (found !== undefined) return found;
      const before = messages[0]?.id;
      const isFirst = messages === this.agent.messages;
      const page = await this.runtime.threads.messages(threadId, isFirst || before === undefined ? {} : { before });
      if (page.messages.length === 0) throw new RunnerError("call-over", { threadId, toolCallId });
      ({ messages } = page);
    }
  }

  /** The tab that gave the last result goes on. */
  private answeredHere(toolCallId: string): void {
    const calls = this.waiting.calls.map((call) =>
      call.toolCallId === toolCallId ? { ...call, status: "answered" as const } : call,
    );
    this.waiting = { ...this.waiting, calls };
    this.show();
    if (this.life !== undefined && this.mayGoOn()) void this.goOn();
  }

  private async goOn(): Promise<void> {
    const { nextRunId } = this.waiting;
    if (nextRunId === undefined || this.goingOn === nextRunId) return;
    this.goingOn = nextRunId;
    const { agent, tools } = this;
    const parameters = this.options.parameters?.() ?? {};
    const offered = withTools(parameters, tools.definitions(agent.agentId));
    try {
      // How it ends is told by `run$`.
      await agent.runAfterToolCalls(nextRunId, offered);
    } catch (error) {
      if (RunnerError.is(error) && SETTLED.has(error.code)) return;
      // Not started: tried again while nothing else happens.
      this.goingOn = undefined;
      if (this.life !== undefined && this.waiting.nextRunId === nextRunId) {
        this.goOnTimer = setTimeout(() => this.act(), RETRY_MS);
      }
    }
  }
}

function argumentsIn(messages: readonly Message[], toolCallId: string): string | undefined {
  for (const message of messages.toReversed()) {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    const call = calls.find(({ id }) => id === toolCallId);
    if (call !== undefined) return call.function.arguments;
  }
  return undefined;
}

const textOf = (result: unknown): string =>
  typeof result === "string" ? result : result === undefined ? "" : (JSON.stringify(result) ?? "");

/** Repeats what the host did not answer, until it says yes or no. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let pause = RETRY_MS; ; pause = Math.min(2 * pause, RETRY_MAX_MS)) {
    try {
      return await work();
    } catch (error) {
      if (RunnerError.is(error) && SETTLED.has(error.code)) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}
