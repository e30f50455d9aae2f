import {
  enforceEvents,
  FunctionMiddleware,
  type HttpAgent,
  transformChunks,
  verifyEvents,
  type AbstractAgent,
  type AgentStateMutation,
  type AgentSubscriber,
  type BaseEvent,
  type Message,
  type Middleware,
  type RunAgentInput,
  type RunAgentParameters,
} from "@ag-ui/client";
import {
  concat,
  defer,
  identity,
  ignoreElements,
  map,
  of,
  pipe,
  Subject,
  takeWhile,
  tap,
  throwError,
  type MonoTypeOperatorFunction,
  type Observable,
} from "rxjs";
import { messageOf } from "../../run/errors.js";
import { tellHosted, type HostedRun } from "../../run/hosted.js";
import { cloneJson } from "../../run/json.js";
import { StreamCourse, tidyLifecycle, type CourseHost } from "./lifecycle.js";
import { RepeatedDeltas } from "./repeated-deltas.js";
import { runningAgents } from "./running.js";
import { InvalidStream } from "./valid-stream.js";

/** Protected or private members of AbstractAgent that the pipeline uses, or replaces on one instance. */
interface Inner {
  middlewares: Middleware[];
  apply(
    input: RunAgentInput,
    events$: Observable<BaseEvent>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation>;
  onInitialize(input: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void>;
  onFinalize(input: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void>;
  onError(input: RunAgentInput, error: Error, subscribers: AgentSubscriber[]): Observable<AgentStateMutation>;
  prepareRunAgentInput(parameters?: RunAgentParameters): RunAgentInput;
}

/** Methods of AbstractAgent that a class may override to observe its runs. */
const HOOKS = ["apply", "processApplyEvents", "prepareRunAgentInput", "onInitialize", "onFinalize", "onError"] as const;

/** The agent and its prototypes; `base` is AbstractAgent's own. */
function classesOf(agent: AbstractAgent): { readonly chain: readonly object[]; readonly base: object | undefined } {
  const chain: object[] = [];
  for (let link: object | null = agent; link !== null; link = Object.getPrototypeOf(link) as object | null) {
    chain.push(link);
  }
  return { chain, base: chain.findLast((link) => Object.hasOwn(link, "runAgent")) };
}

/** The agent has subscribers, or its class overrides one of the hooks. */
function isWatched(agent: AbstractAgent): boolean {
  if (agent.subscribers.length > 0) return true;
  const { chain, base } = classesOf(agent);
  return HOOKS.some((hook) => chain.find((link) => Object.hasOwn(link, hook)) !== base);
}

/** Its class overrides `runAgent`; HttpAgent's does not count, which only adds the abort. */
function hasOwnRunAgent(agent: AbstractAgent): boolean {
  const { chain, base } = classesOf(agent);
  const found = chain.find((link) => Object.hasOwn(link, "runAgent"));
  if (found === undefined || found === base) return false;
  // HttpAgent of any copy of the client. Importing it would load its transports for agents that need none.
  return Object.getPrototypeOf(found) !== base || !Object.hasOwn(found, "requestInit");
}

/** Copies the messages into `target` when somebody first reads them: most agents never do. */
function setLazily(target: { messages: Message[] }, copy: () => Message[]): void {
  let messages: Message[] | undefined;
  Object.defineProperty(target, "messages", {
    get: () => (messages ??= copy()),
    set: (value: Message[]) => {
      messages = value;
    },
    enumerable: true,
    configurable: true,
  });
}

/** Properties that the pipeline sets on the agent and restores when the run is over. */
const REPLACED = ["messages", "apply", "onInitialize", "onFinalize", "onError", "run", "middlewares", "fetch"] as const;

const nothing = async (): Promise<void> => undefined;

/** @returns a function that restores them */
function remember(agent: AbstractAgent): () => void {
  const before = REPLACED.map((name) => [name, Object.getOwnPropertyDescriptor(agent, name)] as const);
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(agent, name);
      else Object.defineProperty(agent, name, descriptor);
    }
  };
}

/** The host of a run, as its agent's pipeline sees it. */
export interface PipelineHost extends Omit<CourseHost, "runId"> {
  /** The thread's messages, the new ones at the end. */
  readonly messages: () => readonly Message[];
  /**
   * Checks each event as it was emitted.
   *
   * @returns the event that takes its place; undefined: the run is over, and further events are ignored
   */
  readonly take: (event: BaseEvent) => BaseEvent | undefined;
  /** Receives each accepted event, in order, and keeps it: it must not change any more. */
  readonly next: (event: BaseEvent) => void;
  /** What an agent that asks for it is told of its run. */
  readonly hosted?: HostedRun;
}

type Input = Omit<RunAgentInput, "messages">;

/**
 * Runs an agent through its own pipeline (middlewares, schema check, chunk expansion, verification), handing each
 * accepted event to `host.next`. The default apply stage, which clones all messages for each event, is left out unless
 * the agent has subscribers or hooks of its own, which then keep their meaning.
 *
 * An agent whose class overrides `runAgent` is run by that method: its events are those that it hands to the
 * subscriber, and they are checked after that.
 *
 * @param agent is run itself, so callers pass a clone
 * @returns resolves when the agent has completed: with nothing, or with the failure that a subscriber of the agent
 *   suppressed; rejects with what it threw, with {@link InvalidStream} where it emitted something invalid, or with
 *   {@link BrokenConnection}
 */
export async function runAgent(agent: AbstractAgent, input: Input, host: PipelineHost): Promise<unknown> {
  if (runningAgents.has(agent)) throw new TypeError("The agent is running already: pass a clone");
  runningAgents.add(agent);
  const putBack = remember(agent);
  const over = (): void => {
    putBack();
    runningAgents.delete(agent);
  };
  const run = new AgentRun(agent, input, host);
  try {
    await (hasOwnRunAgent(agent) ? run.throughSubscriber(over) : run.direct().finally(over));
  } catch (error) {
    throw run.reason(error);
  }
  return run.rejected && run.reason(run.rejected.error);
}

/** One run of an agent: prepares the agent and receives its events. */
class AgentRun {
  private readonly course: StreamCourse;
  private readonly repeated = new RepeatedDeltas();
  private readonly watched: boolean;
  /** Protected or private in the class; replaced on this instance alone. */
  private readonly inner: Inner;
  /** The error with which the checks rejected the stream. */
  rejected: { readonly error: unknown } | undefined;
  /** The agent itself threw. */
  private failed = false;
  private connection: "open" | "over" = "open";

  constructor(
    private readonly agent: AbstractAgent,
    private readonly input: Input,
    private readonly host: PipelineHost,
  ) {
    this.course = new StreamCourse({ ...host, runId: input.runId });
    this.watched = isWatched(agent);
    this.inner = agent as unknown as Inner;
    agent.threadId = input.threadId;
    agent.state = cloneJson(input.state);
    // Open interrupts were checked before the fence; a clone may carry those of another thread.
    agent.pendingInterrupts = [];
    if (host.hosted !== undefined) tellHosted(agent, host.hosted);
    // The default also prints the error to the console; here the run's end reports it.
    if (!this.watched) this.inner.onError = (_input, error) => throwError(() => error);
    this.watchConnection();
  }

  /** Receives events through the agent's own pipeline, which checks them. */
  async direct(): Promise<void> {
    const { agent, inner, host, watched, input } = this;
    agent.messages = watched ? this.messages() : [];
    // Both copy messages and state for each subscriber, and there is none.
    if (!watched) inner.onInitialize = inner.onFinalize = nothing;
    const apply = inner.apply.bind(agent);
    inner.apply = (runInput, events$, subscribers) => {
      const checked$ = this.checked(events$);
      // Subscribers get the same event objects and may change them.
      if (watched) return apply(runInput, checked$.pipe(tap((event) => host.next({ ...event }))), subscribers);
      return this.lean(checked$.pipe(tap(host.next)));
    };

    const whole = (prepared: RunAgentInput): RunAgentInput => {
      if (watched) return prepared;
      const given = { ...prepared };
      setLazily(agent, () => this.messages());
      setLazily(given, () => agent.messages.filter((message) => message.role !== "activity"));
      return given;
    };
    // The client wraps `run` in a check of the input that reads every message. Without other middlewares the messages are
    // set behind that check: the runner has checked them already.
    const isBare = inner.middlewares.length === 0;
    if (isBare) {
      const run = agent.run.bind(agent);
      agent.run = (prepared) => run(whole(prepared));
    }
    // Outermost, so that it sees the events as the other middlewares leave them.
    const outermost = new FunctionMiddleware((prepared, next) => {
      // A clone of the running agent has this middleware too, but is not part of this run.
      if (prepared.runId !== input.runId || prepared.threadId !== input.threadId) return next.run(prepared);
      const { parentRunId } = input;
      const given = { ...prepared, ...(parentRunId !== undefined && { parentRunId }) };
      return next.run(isBare ? given : whole(given)).pipe(this.tidied());
    });
    inner.middlewares = [outermost, ...inner.middlewares];
    let failure: { readonly error: unknown } | undefined;
    const parameters: RunAgentParameters = {
      runId: input.runId,
      tools: input.tools,
      context: input.context,
      forwardedProps: input.forwardedProps,
      ...(input.resume !== undefined && { resume: input.resume }),
    };
    // As the last subscriber it stops the client from printing the failure, which the run's end reports.
    const heard: AgentStateMutation = { stopPropagation: true };
    const quiet: AgentSubscriber = {
      onRunFailed: ({ error }) => {
        failure = { error };
        return heard;
      },
    };
    await agent.runAgent(parameters, watched ? quiet : undefined);
    if (failure !== undefined) throw failure.error;
  }

  /**
   * Receives the events that the agent's own `runAgent` hands to the subscriber.
   *
   * @param over called when `runAgent` has settled, which may be after the stream was rejected
   */
  async throughSubscriber(over: () => void): Promise<void> {
    const { agent, inner, host } = this;
    agent.messages = this.messages();
    const events$ = new Subject<BaseEvent>();
    const subscriber: AgentSubscriber = { onEvent: ({ event }) => events$.next(event) };
    const apply = inner.apply.bind(agent);
    inner.apply = (runInput, own$, subscribers) => {
      // Also for its default pipeline: where nobody else gets the events, nothing is folded.
      const last = subscribers.at(-1);
      if (!this.watched && (last === subscriber || last?.onEvent === undefined)) {
        return this.lean(own$.pipe(tap((event) => events$.next(event))));
      }
      return apply(runInput, own$, last?.onEvent === undefined ? [...subscribers, subscriber] : subscribers);
    };
    const taken = new Promise<void>((resolve, reject) => {
      const stages$ = events$.pipe(this.tidied(), enforceEvents(), transformChunks(), verifyEvents());
      this.checked(stages$).subscribe({ next: (event) => host.next({ ...event }), error: reject, complete: resolve });
    });
    const params: RunAgentInput = { ...this.input, messages: this.messages(), state: cloneJson(this.input.state) };
    // Async, so that a synchronous throw becomes a rejection.
    const work = async (): Promise<unknown> => agent.runAgent(params, subscriber);
    void work()
      .finally(over)
      .then(
        () => events$.complete(),
        (error: unknown) => events$.error(error),
      );
    await taken;
  }

  /** The error that the run's failure is reported with. */
  reason(error: unknown): unknown {
    // Inspecting a proxy may throw: later code is never handed one that does.
    if (!isReadable(error)) return new Error(messageOf(error));
    if (!this.failed && this.rejected !== undefined && error === this.rejected.error) {
      if (error instanceof InvalidStream) return error;
      return new InvalidStream(`${this.course.place}: ${this.faultOf(error)}`, { cause: error });
    }
    return this.connection === "over" ? new BrokenConnection(messageOf(error), { cause: error }) : error;
  }

  /** A copy for the agent, whose changes must not reach the host's thread. */
  private messages(): Message[] {
    return cloneJson([...this.host.messages()]);
  }

  private tidied(): MonoTypeOperatorFunction<BaseEvent> {
    const stream = {
      failed: () => (this.failed = true),
      wentOn: this.host.dropped,
      isCutOff: () => this.connection === "over",
    };
    // Subscribers, hooks and the debug logger must see every event.
    const isShown = this.watched || this.agent.debugLogger !== undefined;
    const repeated = this.repeated.around((event, made) => {
      this.course.pass(event);
      this.host.next(made);
    });
    const taken = takeWhile((event: BaseEvent | undefined): event is BaseEvent => event !== undefined);
    return pipe(map(this.host.take), taken, isShown ? identity : repeated, tidyLifecycle(this.course, stream));
  }

  /** After the checks: notes each event that they passed, or the error with which they rejected the stream. */
  private checked(events$: Observable<BaseEvent>): Observable<BaseEvent> {
    return events$.pipe(
      tap({
        next: (event) => this.repeated.leave(event),
        error: (error: unknown) => (this.rejected = { error }),
      }),
    );
  }

  /** Replaces the default apply stage. Emits one empty mutation: runAgent rejects if its pipeline emits nothing. */
  private lean(events$: Observable<BaseEvent>): Observable<AgentStateMutation> {
    return concat(
      events$.pipe(ignoreElements()),
      defer(() => {
        // runAgent would copy them all into a result that nobody reads.
        this.agent.messages = [];
        return of({});
      }),
    );
  }

  private faultOf(error: unknown): string {
    const issues = typeof error === "object" && error !== null && "issues" in error ? error.issues : undefined;
    if (!Array.isArray(issues)) return messageOf(error);
    const faults = issues.slice(0, 3).map(({ path, message }: { path: PropertyKey[]; message: string }) => {
      return `${path.map(String).join(".")}: ${message}`;
    });
    return `${faults.join("; ")} (its fields: ${this.course.fields})`;
  }

  /** HttpAgent: tells a response that breaks off or ends inside an event from an error that the agent throws. */
  private watchConnection(): void {
    const { agent } = this;
    if (!("fetch" in agent) || typeof agent.fetch !== "function") return;
    const fetch = agent.fetch.bind(agent) as HttpAgent["fetch"];
    agent.fetch = async (url: string, init: RequestInit) => {
      this.connection = "open";
      const response = await fetch(url, init);
      watchBody(response.body, () => {
        // The body of an error response is read whole, and is no event stream.
        if (response.ok && init.signal?.aborted !== true) this.connection = "over";
      });
      return response;
    };
  }
}

function isReadable(thrown: unknown): boolean {
  try {
    void (thrown instanceof Error);
    return true;
  } catch {
    return false;
  }
}

/** The response broke off before the agent's terminal event. */
export class BrokenConnection extends Error {}

/** @param over called when the body has ended or failed: a later error is about an incomplete last event */
function watchBody(body: ReadableStream<Uint8Array> | null, over: () => void): void {
  if (body === null) return;
  const getReader = body.getReader.bind(body) as () => ReadableStreamDefaultReader<Uint8Array>;
  // HttpAgent uses no other kind of reader.
  body.getReader = (() => {
    const reader = getReader();
    const [read, cancel] = [reader.read.bind(reader), reader.cancel.bind(reader)];
    let isLeft = false;
    reader.read = async () => {
      const result = await read().catch((error: unknown) => {
        over();
        throw error;
      });
      if (result.done && !isLeft) over();
      return result;
    };
    // Canceling a failed stream rejects, and HttpAgent does not handle that: it would end a Node process.
    reader.cancel = (reason) => {
      isLeft = true;
      return cancel(reason).catch(() => undefined);
    };
    return reader;
  }) as typeof body.getReader;
}
