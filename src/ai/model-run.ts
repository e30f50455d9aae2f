import type { AGUIEvent, ContentPart, Interrupt, RunAgentInput, RunFinishedOutcome, TokenUsage } from "@ag-ui/core";
import { aggregateTokenUsage, EventType } from "@ag-ui/core";
import * as sdk from "ai";
import type { LanguageModel } from "ai";
import { onAbort } from "../platform/abort.js";
import { systemClock } from "../platform/clock.js";
import { randomId } from "../platform/ids.js";
import { messageOf } from "../run/errors.js";
import { Fold } from "../run/fold.js";
import type { HostedRun } from "../run/hosted.js";
import { cloneJson } from "../run/json.js";
import { checkTools, repeatableIn } from "./check-tools.js";
import { Answer, type MadeCall } from "./answer.js";
import type { AiAgentOptions, AiRun, AiToolRun } from "./options.js";
import { instructionsOf, PROVIDER_EXECUTED, promptOf, refusedTypes } from "./prompt.js";
import { cutOff, failureOf, tooManySteps, unasked, type ModelFailure } from "./provider-error.js";
import { redactor, type Redact } from "./redact.js";
import { approvalOf, decisionOn, schemaOf, stateEvents, ToolBox, toolSetOf, type Fate } from "./tool-calls.js";

/** What a run is given by its agent. */
export interface ModelRunInput {
  readonly input: RunAgentInput;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly hosted?: HostedRun;
}

/** How often a model is asked in one run, where nothing else is said. */
const MAX_STEPS = 10;

const GO_ON =
  "Your answer was cut off in the middle. Go on exactly where it stopped: begin with the next character, repeat nothing, and do not mention this.";

/** A call of an earlier run without a result. */
interface LeftCall {
  readonly toolCallId: string;
  readonly name: string;
  readonly text: string;
}

/** The calls without a result: since somebody last wrote, and before that those that `resume` decides on. */
function leftCallsIn({ messages, resume }: RunAgentInput): LeftCall[] {
  const from = messages.findLastIndex(({ role }) => role === "user" || role === "system" || role === "developer") + 1;
  const answered = new Set(messages.map((message) => (message.role === "tool" ? message.toolCallId : undefined)));
  return messages.flatMap((message, at) =>
    message.role !== "assistant"
      ? []
      : (message.toolCalls ?? [])
          .filter(({ id, metadata }) => !answered.has(id) && metadata?.[PROVIDER_EXECUTED] !== true)
          .filter(({ id }) => at >= from || decisionOn(id, resume) !== undefined)
          .map(({ id, function: { name, arguments: text } }) => ({ toolCallId: id, name, text })),
  );
}

/** A provider's word for a stream that ended without a reason: the server's fault, or its connection's. */
const isCutOff = (error: unknown): boolean =>
  (error as Partial<Error> | undefined)?.name === "AI_InvalidResponseDataError" &&
  /without a finish reason/i.test(messageOf(error));

/** Ends a run in the middle, with what its RUN_ERROR says. */
class Failed extends Error {
  constructor(readonly failure: ModelFailure) {
    super(failure.message);
  }
}

/** The events of one run of an `aiAgent`. Throws nothing but what the agent's own code threw, without secrets. */
export async function* modelRun(options: AiAgentOptions, given: ModelRunInput): AsyncGenerator<AGUIEvent> {
  const ends: (() => unknown)[] = [];
  const run = new ModelRun(options, given, (end) => ends.push(end));
  try {
    yield* run.events();
  } catch (error) {
    if (given.signal.aborted) return;
    const failure = error instanceof Failed ? error.failure : failureOf(error, run.redact, systemClock.now());
    const { code, message, retryAfterMs } = failure;
    // A run that goes on with this one starts no earlier.
    const metadata = retryAfterMs === undefined ? {} : { metadata: { retryAfterMs } };
    yield { type: EventType.RUN_ERROR, code, message, ...metadata, ...run.usageSoFar() };
  } finally {
    // What cannot be closed is closed with the host.
    await Promise.allSettled(ends.map(async (end) => end()));
  }
}

class ModelRun {
  readonly redact: Redact;
  private readonly thread: Fold;
  private readonly run: AiRun;
  private readonly usages: TokenUsage[] = [];
  private readonly lost = new Set<string>();
  private tools!: ToolBox;
  private toolSet!: sdk.ToolSet;
  private model!: LanguageModel;

  constructor(
    private readonly options: AiAgentOptions,
    private readonly given: ModelRunInput,
    onEnd: (end: () => unknown) => void,
  ) {
    const { input, headers, signal } = given;
    this.redact = redactor(headers);
    this.run = { input, headers, signal, onEnd };
    this.thread = new Fold({ messages: input.messages, state: input.state ?? {}, interrupts: [] });
  }

  usageSoFar(): { usage?: TokenUsage[] } {
    return this.usages.length === 0 ? {} : { usage: aggregateTokenUsage(this.usages) };
  }

  async *events(): AsyncGenerator<AGUIEvent> {
    const { input, hosted } = this.given;
    await this.prepare();
    const left = leftCallsIn(input);
    if (left.length > 0) {
      const waits = yield* this.settle(left.map((call) => ({ ...call, left: call })));
      if (waits) return yield this.finished(waits);
    }
    const last = input.messages.at(-1);
    const isBegun = last?.role === "assistant" && last.id === hosted?.attempt?.said && !last.toolCalls?.length;
    const answered = isBegun && left.length === 0 ? last : undefined;
    // The whole answer is in the log, only the end of its run is not.
    if (answered?.metadata?.["finishReason"] !== undefined) {
      return yield this.finished(undefined, await this.output(answered.content ?? ""));
    }
    const { maxSteps = MAX_STEPS } = this.options;
    for (let step = 1; ; step++) {
      const begun = step === 1 && answered?.content ? answered : undefined;
      const answer = yield* this.ask(step, step >= maxSteps, begun?.id);
      const text = (begun?.content ?? "") + answer.text;
      if (answer.calls.length === 0) return yield this.finished(undefined, await this.output(text));
      // Models imitate calls of the thread, also where they have no tools.
      if (step >= maxSteps) throw new Failed(tooManySteps);
      const waits = yield* this.settle(answer.calls.map((call) => ({ ...call, call })));
      if (waits) return yield this.finished(waits);
    }
  }

  private async prepare(): Promise<void> {
    const { model, tools = {} } = this.options;
    this.model = typeof model === "function" ? await model(this.run) : model;
    const own = typeof tools === "function" ? await tools(this.run) : tools;
    if (typeof tools === "function") checkTools(own);
    const { input } = this.given;
    const repeatable = new Set(repeatableIn(own, this.options));
    this.toolSet = toolSetOf(own, input.tools);
    this.tools = new ToolBox(own, new Set(input.tools.map(({ name }) => name)), repeatable);
  }

  /** Notes an event in the thread as this run knows it. */
  private noted(event: AGUIEvent): AGUIEvent {
    this.thread.apply(event);
    return event;
  }

  /** Asks the model once. */
  private async *ask(step: number, isLast: boolean, continues: string | undefined): AsyncGenerator<AGUIEvent, Answer> {
    const { signal } = this.given;
    const stepName = `step ${step}`;
    yield this.noted({ type: EventType.STEP_STARTED, stepName });
    const { provider, modelId } =
      typeof this.model === "string" ? { provider: undefined, modelId: this.model } : this.model;
    const answer = new Answer({
      makeId: randomId,
      isKnownCall: (id) => this.thread.list.call(id) !== undefined,
      model: { ...(provider !== undefined && { provider }), model: modelId },
      ...(continues !== undefined && { continues }),
      repairs: this.options.settings?.repairToolCall !== undefined,
    });
    yield* this.read(answer, isLast, continues !== undefined);
    signal.throwIfAborted();
    const { ending } = answer;
    if (ending?.isSaid !== true) throw new Failed(cutOff(ending?.contentType, answer.isEmpty));
    yield this.noted({ type: EventType.STEP_FINISHED, stepName });
    return answer;
  }

  private async *read(answer: Answer, isLast: boolean, goesOn: boolean): AsyncGenerator<AGUIEvent> {
    const { signal } = this.given;
    const known = this.lost.size;
    const request = await this.request(isLast, goesOn);
    // Read once: the SDK's other way keeps all parts of the answer until it ends.
    const reader = (sdk.experimental_streamTextLowMemory ?? sdk.streamText)(request).stream.getReader();
    try {
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        if (signal.aborted) break;
        const { value } = read;
        if (value.type === "error") {
          if (!isCutOff(value.error)) throw value.error;
          // What is known of the response follows.
          continue;
        }
        if (value.type === "tool-approval-request") throw new Failed(unasked(value.toolCall.toolName));
        if (value.type === "abort") throw new DOMException("The model did not answer in time", "TimeoutError");
        for (const event of answer.events(value)) yield this.noted(event);
      }
    } catch (error) {
      for (const type of refusedTypes(error, request.messages ?? [])) this.lost.add(type);
      if (this.lost.size === known) throw error;
    } finally {
      if (answer.usage !== undefined) this.usages.push(answer.usage);
      // Without it a request goes on after its run has failed.
      await reader.cancel().catch(() => undefined);
    }
    // Files could not be had, or are of a type that the provider does not take: asked again without them.
    if (this.lost.size > known) yield* this.read(answer, isLast, goesOn);
  }

  /** Downloads what the model does not read of the web itself. Links die: that of one message must not fail the thread. */
  private readonly download: sdk.Experimental_DownloadFunction = async (wanted) => {
    const load = sdk.createDownload();
    const files = wanted.map(async (one) => {
      if (one.isUrlSupportedByModel) return null;
      try {
        return await load(one);
      } catch (error) {
        if (!this.given.signal.aborted) this.lost.add(one.url.href);
        throw error;
      }
    });
    // All of them: each one that is lost is known afterwards.
    await Promise.allSettled(files);
    return Promise.all(files);
  };

  private async request(isLast: boolean, goesOn: boolean): Promise<Parameters<typeof sdk.streamText>[0]> {
    const { options, given, run, toolSet } = this;
    const { input, signal, hosted } = given;
    const state = cloneJson(this.thread.state as unknown);
    const system = typeof options.system === "function" ? await options.system({ ...run, state }) : options.system;
    const instructions = instructionsOf(system, input.context, options.state === "tell" ? { told: state } : undefined);
    let { messages } = this.thread;
    // Reasoning that was cut off has no signature, and nothing follows it.
    if (hosted?.attempt) messages = messages.slice(0, messages.findLastIndex(({ role }) => role !== "reasoning") + 1);
    const prompt = promptOf(messages, this.lost);
    const hasTools = Object.keys(toolSet).length > 0;
    return {
      ...options.settings,
      model: this.model,
      messages: goesOn ? [...prompt, { role: "user", content: GO_ON }] : prompt,
      // Messages of these roles are those of the thread.
      allowSystemInMessages: true,
      experimental_download: this.download,
      ...(instructions !== undefined && { instructions }),
      ...(hasTools && { tools: toolSet }),
      ...(hasTools && isLast && { toolChoice: "none" as const }),
      // A server that enforces a format would begin the object anew.
      ...(options.output && !goesOn && { output: sdk.Output.object({ schema: schemaOf(options.output) }) }),
      abortSignal: signal,
      // Told by RUN_ERROR. By default the SDK writes it to the console, with headers and all.
      onError: () => undefined,
    };
  }

  /** The object of a final answer. Errors: {@link Failed} where it is none. */
  private async output(text: string): Promise<unknown> {
    const { output } = this.options;
    if (output === undefined) return undefined;
    const fail = (why: unknown): never => {
      throw new Failed({
        code: "INVALID_OUTPUT",
        message: `The model's answer does not match the schema of its output: ${this.redact(messageOf(why)).slice(0, 500)}`,
      });
    };
    let value: unknown;
    try {
      value = JSON.parse(text) as unknown;
    } catch (error) {
      return fail(error);
    }
    const checked = await schemaOf(output).validate?.(value);
    if (checked === undefined) return value;
    return checked.success ? checked.value : fail(checked.error);
  }

  /** Executes what can be executed. @returns how the run ends, where it waits for somebody */
  private async *settle(
    calls: readonly {
      readonly toolCallId: string;
      readonly name: string;
      readonly call?: MadeCall;
      readonly left?: LeftCall;
    }[],
  ): AsyncGenerator<AGUIEvent, RunFinishedOutcome | undefined> {
    const { input, hosted } = this.given;
    const messages = promptOf(this.thread.messages);
    const interrupts: Interrupt[] = [];
    const pendingToolCallIds: string[] = [];
    yield* streamed<AGUIEvent>(async (emit) => {
      const execute = async ({ toolCallId, name, call, left }: (typeof calls)[number]): Promise<void> => {
        const run = this.toolRun(toolCallId, messages, emit);
        const fate: Fate = left
          ? await this.tools.fateOfLeft(left, decisionOn(toolCallId, input.resume), hosted?.attempt !== undefined, run)
          : await this.tools.fateOf(call!, run);
        if (fate.is === "ask") interrupts.push(approvalOf(input.runId, toolCallId, name));
        else if (fate.is === "page") pendingToolCallIds.push(toolCallId);
        else {
          const content = fate.is === "answer" ? this.redact(fate.content) : await this.executed(name, fate.args, run);
          run.signal.throwIfAborted();
          emit(
            this.noted({ type: EventType.TOOL_CALL_RESULT, messageId: randomId(), toolCallId, content, role: "tool" }),
          );
        }
      };
      await Promise.all(calls.map(execute));
    }, this.given.signal);
    if (interrupts.length > 0) return { type: "interrupt", interrupts };
    return pendingToolCallIds.length > 0 ? { type: "success", pendingToolCallIds } : undefined;
  }

  private async executed(name: string, args: unknown, run: AiToolRun): Promise<string | ContentPart[]> {
    // A call that was started stands in the log, whatever happens to this host.
    await this.given.hosted?.committed();
    run.signal.throwIfAborted();
    try {
      return await this.tools.execute(name, args, run);
    } catch (error) {
      run.signal.throwIfAborted();
      return `Error: ${this.redact(messageOf(error))}`;
    }
  }

  private toolRun(toolCallId: string, messages: AiToolRun["messages"], emit: (event: AGUIEvent) => void): AiToolRun {
    const { run, thread } = this;
    return {
      ...run,
      abortSignal: run.signal,
      toolCallId,
      messages,
      get state(): unknown {
        return cloneJson(thread.state as unknown);
      },
      setState: (state) => emit(this.noted(stateEvents.snapshot(state))),
      patchState: (patch) => {
        const event = stateEvents.delta(patch);
        const result = thread.apply(event);
        if (result?.is !== "applied") throw new Error("The patch does not apply to the state");
        emit(event);
      },
    };
  }

  private finished(outcome: RunFinishedOutcome | undefined, result?: unknown): AGUIEvent {
    const { threadId, runId } = this.given.input;
    return {
      type: EventType.RUN_FINISHED,
      threadId,
      runId,
      outcome: outcome ?? { type: "success" },
      ...(result !== undefined && { result: cloneJson(result) }),
      ...this.usageSoFar(),
    };
  }
}

/** What `work` emits, in order; ends when it has ended, or at once where the signal aborts. Errors: those of `work`. */
async function* streamed<T>(work: (emit: (value: T) => void) => Promise<void>, signal: AbortSignal): AsyncGenerator<T> {
  let isOpen = true;
  const stream = new ReadableStream<T>({
    start: (controller) => {
      const end = (finish: () => void): void => {
        if (isOpen) finish();
        isOpen = false;
      };
      onAbort(signal, () => end(() => controller.error(signal.reason)));
      // What comes behind the end, from a tool that ignores its signal, is nobody's.
      work((value) => isOpen && controller.enqueue(value)).then(
        () => end(() => controller.close()),
        (error: unknown) => end(() => controller.error(error)),
      );
    },
  });
  const reader = stream.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}
