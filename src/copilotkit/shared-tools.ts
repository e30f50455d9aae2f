import type { Message, RunAgentParameters, RunAgentResult } from "@ag-ui/client";
import { defer, distinctUntilChanged, firstValueFrom, interval, map, skip, startWith } from "rxjs";
import type { FrontendTool, LocalAgent, RuntimeConnection, ShownToolCall, ToolCallContext } from "../client/index.js";
import { Store } from "../client/store/store.js";
import { callsIn, NO_CALLS, type OfferedTools } from "../client/tools/frontend-tools.js";
import { ToolCallsOfAgent } from "../client/tools/run-frontend-tools.js";
import { nothingNew } from "../client/own-runs.js";
import { asError } from "../client/read-until-done.js";
import { randomId } from "../platform/ids.js";
import { RunnerError, type RunnerErrorCode } from "../run/errors.js";

/** A tool of the page, as CopilotKit keeps it. */
export interface CopilotKitTool {
  readonly type?: unknown;
  readonly description?: string;
  /** Given the arguments, and CopilotKit's own context. */
  readonly handler?: (...given: never[]) => unknown;
  readonly followUp?: boolean;
}

/** Of CopilotKit's core (`useCopilotKit().copilotkit`): what runs the page's tools. */
export interface RunsTools<A> {
  /** Another array after each change. */
  readonly tools: readonly unknown[];
  /** Runs an agent of the page, and then the tools that it called. */
  runAgent(parameters: { agent: A; runId?: string }): Promise<unknown>;
  /** Reads the agent's thread. */
  connectAgent(parameters: { agent: A }): Promise<unknown>;
  /** The tool of this name that the page offers, if any. */
  getTool(parameters: { toolName: string; agentId?: string }): CopilotKitTool | undefined;
  /** Tells of each execution of a tool until `unsubscribe` is called. */
  subscribe(subscriber: { onToolExecutionEnd?: (event: ToolExecution) => void | Promise<void> }): {
    /** Ends it. */
    readonly unsubscribe: () => void;
  };
}

/** An execution that is over. */
export interface ToolExecution {
  readonly agentId: string;
  readonly toolCallId: string;
  readonly result: string;
  readonly error?: string;
}

/** How CopilotKit's tools are shared among tabs. */
export interface SharedToolsOptions {
  /**
   * Names of tools whose handlers must not run twice. A call whose tab has died in the middle of one is `interrupted`,
   * until somebody has it run again or gives a result.
   */
  readonly notRepeatable?: readonly string[];
  /** Called with what keeps a call from being run or answered here: `call-over` where another tab has answered first. */
  readonly onError?: (error: Error) => void;
}

type AssistantMessage = Extract<Message, { readonly role: "assistant" }>;

/** Of a run that goes on with results: another tab was first, or it has to wait. Nobody needs to know. */
const QUIET: ReadonlySet<RunnerErrorCode> = new Set<RunnerErrorCode>([
  "call-over",
  "closed",
  "interrupts-open",
  "run-exists",
  "thread-busy",
]);

export const isQuestion = (tool: CopilotKitTool | undefined): boolean => tool?.type === "human-in-the-loop";

/** By agent. They stay: a call that was left to them is not CopilotKit's, though its chat is gone. */
const known = new WeakMap<object, SharedTools>();

export const sharedToolsOf = (agent: object): SharedTools | undefined => known.get(agent);

/**
 * The page's tools in the hands of CopilotKit, their calls in those of the host: a call is claimed before CopilotKit runs
 * its handler, in one of the tabs; its result is recorded once, and one tab goes on with the results.
 *
 * CopilotKit runs handlers behind a run that it has asked the agent for. It is given a run's result with what it is to run,
 * without a run; of a real run's result, nothing but its questions to people, which are asked in every tab.
 */
export class SharedTools extends Store<readonly ShownToolCall[]> {
  /** Names of tools that must not run twice: once named, by whichever component, they stay so. */
  private readonly notRepeatable = new Set<string>();
  private onError: SharedToolsOptions["onError"];
  private readonly calls: ToolCallsOfAgent;
  private shown = NO_CALLS;
  /** By run id: what CopilotKit is given in place of a run. */
  private readonly handed = new Map<string, RunAgentResult>();
  /** By tool call id: the handlers that CopilotKit runs. */
  private readonly running = new Map<string, { resultId: string; ended(execution: ToolExecution): void }>();
  /** By run id: who waits for a run that goes on with results. */
  private readonly next = new Map<string, { resolve(result: RunAgentResult): void; reject(error: unknown): void }>();
  /** Errors of runs, which CopilotKit tells. */
  private readonly told = new WeakSet<Error>();
  /** One handler at a time, as CopilotKit does it. */
  private turn: Promise<unknown> = Promise.resolve();
  /** Ids of results that were shown for a moment and are not the thread's. */
  private readonly unwanted = new Set<string>();
  /** Ends what it is told of. */
  private readonly leave: () => void;
  private isReplaced = false;

  private constructor(
    private readonly runtime: RuntimeConnection,
    private readonly copilotkit: RunsTools<LocalAgent>,
    private readonly agent: LocalAgent,
  ) {
    super(NO_CALLS);
    const offered: OfferedTools = {
      isEmpty: false,
      // CopilotKit tells nobody of new tools.
      changes$: defer(() =>
        interval(1_000).pipe(
          startWith(0),
          map(() => copilotkit.tools),
          distinctUntilChanged(),
          skip(1),
          map(() => undefined),
        ),
      ),
      find: (name) => this.toolOf(name),
      // CopilotKit gives them to each run.
      definitions: () => [],
    };
    this.calls = new ToolCallsOfAgent(runtime, agent, offered, { failed: (error) => this.failed(error) });
    // For as long as it has the agent: a handler may end, or a question be answered, when the chat is gone.
    const executions = copilotkit.subscribe({ onToolExecutionEnd: (execution) => this.ended(execution) });
    // A run that began in that moment has shown what was there until its end.
    const runs = agent.subscribe({ onRunFinalized: () => void setTimeout(() => this.dropUnwanted()) });
    this.leave = () => [executions, runs].forEach((subscription) => subscription.unsubscribe());
  }

  /** Those of an agent: the same for whoever asks. */
  static of(runtime: RuntimeConnection, copilotkit: RunsTools<LocalAgent>, agent: LocalAgent): SharedTools {
    const found = known.get(agent);
    if (found?.copilotkit === copilotkit) return found;
    const made = new SharedTools(runtime, copilotkit, agent);
    known.set(agent, made);
    if (found !== undefined) {
      found.isReplaced = true;
      found.leaveIfDone();
    }
    return made;
  }

  /** Another core has the agent now: the handlers that this one runs still end here. */
  private leaveIfDone(): void {
    if (this.isReplaced && this.running.size === 0) this.leave();
  }

  /** Takes on what a component of the page says. */
  configure({ notRepeatable = [], onError = this.onError }: SharedToolsOptions): void {
    for (const name of notRepeatable) this.notRepeatable.add(name);
    this.onError = onError;
  }

  /** Runs calls while somebody listens. */
  protected override begin(): () => void {
    return this.calls.begin((calls) => {
      this.shown = calls;
      this.dropUnwanted();
      this.tell();
    });
  }

  protected override read(): readonly ShownToolCall[] {
    return this.shown;
  }

  /** Gives a call its result in place of a handler. Errors: RunnerError `call-over` */
  async answer(toolCallId: string, result: unknown): Promise<void> {
    await this.calls.answer(toolCallId, result);
  }

  /** Runs an interrupted call again, here. Errors: RunnerError `call-over`, also if its tool is not offered here */
  async runAgain(toolCallId: string): Promise<void> {
    await this.calls.runAgain(toolCallId);
  }

  /** Takes away results that are not the thread's, so that no run sends them. */
  dropUnwanted(): void {
    for (const id of [...this.unwanted, ...this.replaced()]) dropResult(this.agent, id);
  }

  /** Results that are shown here, and in whose place the thread has those of another device. */
  private replaced(): readonly string[] {
    const { agent, shown } = this;
    const results = agent.messages.flatMap((message) => (message.role === "tool" ? [message] : []));
    const counts = new Map(results.flatMap(({ toolCallId, id }) => (agent.isSent(id) ? [[toolCallId, id]] : [])));
    for (const { toolCallId, resultId } of shown) if (resultId !== undefined) counts.set(toolCallId, resultId);
    return results.flatMap(({ toolCallId, id }) =>
      counts.has(toolCallId) && counts.get(toolCallId) !== id ? [id] : [],
    );
  }

  /** What CopilotKit is given in place of the run of this id. */
  takeHanded(runId: string | undefined): RunAgentResult | undefined {
    return runId === undefined ? undefined : this.handed.get(runId);
  }

  /** What of a run's result is left to CopilotKit. @param tools of the run's input */
  leftOf(result: RunAgentResult, tools: RunAgentParameters["tools"] = []): RunAgentResult {
    const names = new Set(tools.map(({ name }) => name));
    const isLeft = (name: string): boolean => {
      const tool = this.copilotkitTool(name);
      return !names.has(name) || tool === undefined || isQuestion(tool);
    };
    const newMessages = result.newMessages.map((message) =>
      message.role === "assistant" && message.toolCalls !== undefined
        ? { ...message, toolCalls: message.toolCalls.filter(({ function: { name } }) => isLeft(name)) }
        : message,
    );
    return { ...result, newMessages };
  }

  /** Has CopilotKit start the run that goes on with the results: it knows what a run is given, and tells of its errors. */
  async goOn(runId: string): Promise<RunAgentResult> {
    // Behind what it does with the last result.
    await new Promise((resolve) => setTimeout(resolve));
    return new Promise((resolve, reject) => {
      this.next.set(runId, { resolve, reject });
      const { copilotkit, agent } = this;
      copilotkit
        .runAgent({ agent, runId })
        .then(() => resolve(nothingNew()), reject)
        .finally(() => this.next.delete(runId));
    });
  }

  /** The run of {@link goOn}, which CopilotKit has asked the agent for; undefined for another run. */
  goingOn(
    runId: string | undefined,
    run: (runId: string) => Promise<RunAgentResult>,
  ): Promise<RunAgentResult> | undefined {
    const next = runId === undefined ? undefined : this.next.get(runId);
    if (runId === undefined || next === undefined) return undefined;
    // It comes here again.
    this.next.delete(runId);
    return run(runId).then(
      (result) => {
        next.resolve(result);
        return result;
      },
      (reason: unknown) => {
        const error = asError(reason);
        if (!RunnerError.is(error) || !QUIET.has(error.code)) this.told.add(error);
        next.reject(error);
        if (this.told.has(error)) throw error;
        return nothingNew();
      },
    );
  }

  private failed(error: Error): void {
    if (!this.told.has(error)) this.onError?.(error);
  }

  private copilotkitTool(toolName: string): CopilotKitTool | undefined {
    const { agentId } = this.agent;
    return this.copilotkit.getTool({ toolName, ...(agentId !== undefined && { agentId }) });
  }

  private toolOf(name: string): FrontendTool | undefined {
    const tool = this.copilotkitTool(name);
    if (tool === undefined) return undefined;
    return {
      name,
      description: tool.description ?? "",
      ...(tool.followUp !== undefined && { followUp: tool.followUp }),
      ...(this.notRepeatable.has(name) && { repeatable: false }),
      ...(!isQuestion(tool) && { handler: (args: unknown, context: ToolCallContext) => this.inTurn(args, context) }),
    };
  }

  private inTurn(args: unknown, context: ToolCallContext): Promise<unknown> {
    const result = this.turn.then(() => {
      // Somebody has answered the call while another handler ran, or the thread went on.
      context.signal.throwIfAborted();
      return this.execute(args, context);
    });
    this.turn = result.catch(() => undefined);
    return result;
  }

  /** Has CopilotKit run the handler of a call, with all that it tells of it. */
  private async execute(args: unknown, context: ToolCallContext): Promise<unknown> {
    const { toolCallId, name, threadId, resultId, signal } = context;
    const { agent, copilotkit } = this;
    const message = threadId === agent.threadId ? callingMessage(agent.messages, toolCallId) : undefined;
    const { handler } = this.copilotkitTool(name) ?? {};
    // The page shows another thread by now.
    if (message === undefined) return this.executeUnseen(args, context);
    // One without a handler is drawn, and that is all.
    if (handler === undefined) {
      showResult(agent, toolCallId, { id: resultId, content: "" });
      return "";
    }

    const runId = randomId();
    const toolCalls = (message.toolCalls ?? []).filter(({ id }) => id === toolCallId);
    this.handed.set(runId, { result: undefined, newMessages: [{ ...message, toolCalls }] });
    const ended = new Promise<ToolExecution>((resolve) => this.running.set(toolCallId, { resultId, ended: resolve }));
    const notWanted = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
    const drop = (): void => this.drop(resultId);
    void notWanted.then(drop);
    const over = (): "over" => {
      this.handed.delete(runId);
      this.running.delete(toolCallId);
      this.leaveIfDone();
      // A handler that ends though nobody waits for it: what kept CopilotKit from going on has done its work.
      if (signal.aborted) drop();
      return "over";
    };
    // Whichever comes first: it also returns if it has not run the handler.
    const done = await Promise.race([ended, notWanted, copilotkit.runAgent({ agent, runId }).then(over, over)]);
    if (done === "over") return this.executeUnseen(args, context);
    if (done?.error !== undefined) throw new Error(done.error);
    return done?.result ?? "";
  }

  /** CopilotKit runs handlers of messages that the page shows. */
  private executeUnseen(args: unknown, { toolCallId, name, signal }: ToolCallContext): unknown {
    const { handler } = this.copilotkitTool(name) ?? {};
    if (handler === undefined) return "";
    const toolCall = { id: toolCallId, type: "function", function: { name, arguments: JSON.stringify(args) } };
    // CopilotKit's own types of both are not known here.
    return (handler as (...given: unknown[]) => unknown)(args, { toolCall, agent: this.agent, signal });
  }

  private async ended(execution: ToolExecution): Promise<void> {
    const { toolCallId, agentId, result, error } = execution;
    const { agent } = this;
    // Calls of other agents may have equal ids.
    if (agentId !== agent.agentId) return;
    const running = this.running.get(toolCallId);
    if (running !== undefined) {
      const { resultId, ended } = running;
      showResult(agent, toolCallId, { id: resultId, content: error === undefined ? result : `Error: ${error}` });
      return ended(execution);
    }
    const call = callsIn(agent.messages).findLast(({ id }) => id === toolCallId);
    // What a stop leaves goes along with the next message.
    if (call === undefined || error !== undefined || !isQuestion(this.copilotkitTool(call.function.name))) return;
    try {
      showResult(agent, toolCallId, { id: await this.calls.answer(toolCallId, result), content: result });
    } catch (failure) {
      this.failed(asError(failure));
      // Where the host cannot say, an answer too few is better than two.
      if (!RunnerError.is(failure, "call-over") || !(await this.isAnswered(toolCallId).catch(() => true))) return;
      // CopilotKit finds this in place of its own, and does not go on. The answer that counts comes with the thread.
      const id = randomId();
      showResult(agent, toolCallId, { id, content: result });
      setTimeout(() => this.drop(id));
    }
  }

  private drop(resultId: string): void {
    this.unwanted.add(resultId);
    dropResult(this.agent, resultId);
  }

  /** Whether the answer of another tab is recorded. Not, where the host never knew of the call: then it is CopilotKit's. */
  private async isAnswered(toolCallId: string): Promise<boolean> {
    const { toolCalls, threads } = this.runtime;
    const { threadId } = this.agent;
    // In this order: an answer waits, goes into the run that goes on, and is one of the thread's messages.
    const { calls } = await firstValueFrom(toolCalls.watch(threadId));
    if (calls.some((call) => call.toolCallId === toolCallId)) return true;
    if ((await threads.get(threadId))?.live !== undefined) return true;
    const { messages } = await threads.messages(threadId);
    return messages.some((message) => message.role === "tool" && message.toolCallId === toolCallId);
  }
}

/** Takes away a result that is not the thread's. */
function dropResult(agent: LocalAgent, messageId: string): void {
  if (agent.isSent(messageId) || !agent.messages.some(({ id }) => id === messageId)) return;
  agent.messages = agent.messages.filter(({ id }) => id !== messageId);
}

function callingMessage(messages: readonly Message[], toolCallId: string): AssistantMessage | undefined {
  const calls = (message: Message): message is AssistantMessage =>
    message.role === "assistant" && message.toolCalls?.some(({ id }) => id === toolCallId) === true;
  return messages.findLast(calls);
}

/** Shows a result in the place where CopilotKit would put its own: it puts none where it finds one, and does not go on. */
function showResult(
  agent: LocalAgent,
  toolCallId: string,
  shown: { readonly id: string; readonly content: string },
): void {
  const { messages } = agent;
  const isThere = messages.some((message) => message.role === "tool" && message.toolCallId === toolCallId);
  const message = callingMessage(messages, toolCallId);
  if (isThere || message === undefined) return;
  let at = messages.indexOf(message) + 1;
  while (messages[at]?.role === "tool") at++;
  messages.splice(at, 0, { ...shown, role: "tool", toolCallId });
}
