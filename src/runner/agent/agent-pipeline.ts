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
import { cloneJson } from "../../run/json.js";
import { InvalidStream, StreamCourse, tidyLifecycle, type CourseHost } from "./lifecycle.js";
import { RepeatedDeltas } from "./repeated-deltas.js";

/** What the pipeline uses of AbstractAgent and replaces on one instance; the class keeps it protected or private. */
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

/** Methods of AbstractAgent that a class may have replaced to see what its runs do. */
const HOOKS = ["apply", "processApplyEvents", "prepareRunAgentInput", "onInitialize", "onFinalize", "onError"] as const;

/** The objects in which the methods of an agent stand, and the last of them: AbstractAgent's own. */
function classesOf(agent: AbstractAgent): { readonly chain: readonly object[]; readonly base: object | undefined } {
  const chain: object[] = [];
  for (let link: object | null = agent; link !== null; link = Object.getPrototypeOf(link) as object | null) {
    chain.push(link);
  }
  return { chain, base: chain.findLast((link) => Object.hasOwn(link, "runAgent")) };
}

/** Somebody watches the run from inside the agent: subscribers, or a class that replaced one of the hooks. */
function isWatched(agent: AbstractAgent): boolean {
  if (agent.subscribers.length > 0) return true;
  const { chain, base } = classesOf(agent);
  return HOOKS.some((hook) => chain.find((link) => Object.hasOwn(link, hook)) !== base);
}

/** Its class brings a `runAgent` that is neither AbstractAgent's nor HttpAgent's, which only adds the abort. */
function hasOwnRunAgent(agent: AbstractAgent): boolean {
  const { chain, base } = classesOf(agent);
  const found = chain.find((link) => Object.hasOwn(link, "runAgent"));
  if (found === undefined || found === base) return false;
  // HttpAgent of any copy of the client. To import it would load its transports for agents that have none.
  return Object.getPrototypeOf(found) !== base || !Object.hasOwn(found, "requestInit");
}

/** Gives `target` the messages as a copy that is made when somebody first reads it: most agents never do. */
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

/** What the pipeline puts on the agent itself; all of it is as it was when the run is over. */
const REPLACED = ["messages", "apply", "onInitialize", "onFinalize", "onError", "run", "middlewares", "fetch"] as const;

const nothing = async (): Promise<void> => undefined;

/** @returns puts everything back */
function remember(agent: AbstractAgent): () => void {
  const before = REPLACED.map((name) => [name, Object.getOwnPropertyDescriptor(agent, name)] as const);
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(agent, name);
      else Object.defineProperty(agent, name, descriptor);
    }
  };
}

const running = new WeakSet<AbstractAgent>();

/** One agent runs once at a time: who shares it between runs passes clones. */
export const isRunningAgent = (agent: AbstractAgent): boolean => running.has(agent);

/** How a run looks from its agent's side. */
export interface PipelineHost extends Omit<CourseHost, "runId"> {
  /** The thread's messages, the new ones at the end. */
  readonly messages: () => readonly Message[];
  /**
   * Looks at each event as it was emitted.
   *
   * @returns what goes on in its place; undefined: the run is over, and the rest is not heard
   */
  readonly take: (event: BaseEvent) => BaseEvent | undefined;
  /** Each event that passed, in order; kept by whoever takes it, so not to be changed any more. */
  readonly next: (event: BaseEvent) => void;
}

type Input = Omit<RunAgentInput, "messages">;

/**
 * Runs an agent through its own pipeline (middlewares, schema check, chunk expansion, verification), handing each
 * accepted event to `host.next`. The default apply stage, which clones all messages for each event, is left out unless
 * the agent has subscribers or hooks of its own, which then keep their meaning.
 *
 * An agent whose class brings a `runAgent` of its own is run by that: its events are those that it hands to the
 * subscriber, and they are checked behind it.
 *
 * @param agent runs as it is given, so callers pass a clone
 * @returns resolves when the agent has completed: with nothing, or with the failure that a subscriber of the agent kept
 *   from being thrown; rejects with what it threw, with {@link InvalidStream} where what it emitted is not valid, or with
 *   {@link BrokenConnection}
 */
export async function runAgent(agent: AbstractAgent, input: Input, host: PipelineHost): Promise<unknown> {
  if (running.has(agent)) throw new TypeError("The agent is running already: pass a clone");
  running.add(agent);
  const putBack = remember(agent);
  const over = (): void => {
    putBack();
    running.delete(agent);
  };
  const run = new AgentRun(agent, input, host);
  try {
    await (hasOwnRunAgent(agent) ? run.throughSubscriber(over) : run.direct().finally(over));
  } catch (error) {
    throw run.reason(error);
  }
  return run.rejected && run.reason(run.rejected.error);
}

/** One run of an agent: what is put on the agent for it, and how its events are taken. */
class AgentRun {
  private readonly course: StreamCourse;
  private readonly repeated = new RepeatedDeltas();
  private readonly watched: boolean;
  /** Protected or private in the class; replaced on this instance alone. */
  private readonly inner: Inner;
  /** What came out of the checks instead of events. */
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
    // The thread's open interrupts were checked where the run was asked for; a clone may carry those of another thread.
    agent.pendingInterrupts = [];
    // The default prints the error to the console before it throws it; here the run's end tells it.
    if (!this.watched) this.inner.onError = (_input, error) => throwError(() => error);
    this.watchConnection();
  }

  /** Its events are taken in its own pipeline, which checks them. */
  async direct(): Promise<void> {
    const { agent, inner, host, watched, input } = this;
    agent.messages = watched ? this.messages() : [];
    // They copy messages and state for each subscriber, and there is none.
    if (!watched) inner.onInitialize = inner.onFinalize = nothing;
    const apply = inner.apply.bind(agent);
    inner.apply = (runInput, events$, subscribers) => {
      const checked$ = this.checked(events$);
      // Subscribers are handed the same events, and may do with them what they like.
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
    // What the client puts around the agent itself reads every message. Where nothing else is around it, the messages are
    // given inside of that: they are of this protocol version already.
    const isBare = inner.middlewares.length === 0;
    if (isBare) {
      const run = agent.run.bind(agent);
      agent.run = (prepared) => run(whole(prepared));
    }
    // Around all others, so that it sees what they make of the events.
    const outermost = new FunctionMiddleware((prepared, next) => {
      // A clone of the running agent has this as well, and has nothing to do with this run.
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
    // The last subscriber: the client would print the failure before it throws it, and the run's end tells it.
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
   * Its events are those that its own `runAgent` hands to the subscriber.
   *
   * @param over called when that has settled, which may be after the stream was rejected
   */
  async throughSubscriber(over: () => void): Promise<void> {
    const { agent, inner, host } = this;
    agent.messages = this.messages();
    const events$ = new Subject<BaseEvent>();
    const subscriber: AgentSubscriber = { onEvent: ({ event }) => events$.next(event) };
    const apply = inner.apply.bind(agent);
    inner.apply = (runInput, own$, subscribers) => {
      // Of its own pipeline too: where nobody else is told of the events, nothing is folded.
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
    // In a function, so that what it throws at once is a rejection too.
    const work = async (): Promise<unknown> => agent.runAgent(params, subscriber);
    void work()
      .finally(over)
      .then(
        () => events$.complete(),
        (error: unknown) => events$.error(error),
      );
    await taken;
  }

  /** What is told of the run's failure. */
  reason(error: unknown): unknown {
    // To look at a proxy may throw: nobody after this is handed one that does.
    if (!isReadable(error)) return new Error(messageOf(error));
    if (!this.failed && this.rejected !== undefined && error === this.rejected.error) {
      if (error instanceof InvalidStream) return error;
      return new InvalidStream(`${this.course.place}: ${this.faultOf(error)}`, { cause: error });
    }
    return this.connection === "over" ? new BrokenConnection(messageOf(error), { cause: error }) : error;
  }

  /** The agent's own: what it does to them must not reach the thread as the host keeps it. */
  private messages(): Message[] {
    return cloneJson([...this.host.messages()]);
  }

  private tidied(): MonoTypeOperatorFunction<BaseEvent> {
    const stream = {
      failed: () => (this.failed = true),
      wentOn: this.host.dropped,
      isCutOff: () => this.connection === "over",
    };
    // Who watches the run from inside the agent is shown every event.
    const isShown = this.watched || this.agent.debugLogger !== undefined;
    const repeated = this.repeated.around((event, made) => {
      this.course.pass(event);
      this.host.next(made);
    });
    const taken = takeWhile((event: BaseEvent | undefined): event is BaseEvent => event !== undefined);
    return pipe(map(this.host.take), taken, isShown ? identity : repeated, tidyLifecycle(this.course, stream));
  }

  /** Behind the checks: notes what they made of each event, or with which error they rejected the stream. */
  private checked(events$: Observable<BaseEvent>): Observable<BaseEvent> {
    return events$.pipe(
      tap({
        next: (event) => this.repeated.leave(event),
        error: (error: unknown) => (this.rejected = { error }),
      }),
    );
  }

  /** In the place of the default apply stage. One empty mutation: a pipeline that emits nothing makes runAgent reject. */
  private lean(events$: Observable<BaseEvent>): Observable<AgentStateMutation> {
    return concat(
      events$.pipe(ignoreElements()),
      defer(() => {
        // Nobody reads them any more, and runAgent would copy them all for a result that nobody reads.
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

  /** HttpAgent: an answer that ends in the middle of an event, or breaks off, is told apart from what the agent throws. */
  private watchConnection(): void {
    const { agent } = this;
    if (!("fetch" in agent) || typeof agent.fetch !== "function") return;
    const fetch = agent.fetch.bind(agent) as HttpAgent["fetch"];
    agent.fetch = async (url: string, init: RequestInit) => {
      this.connection = "open";
      const response = await fetch(url, init);
      watchBody(response.body, () => {
        // What a server refuses with is read whole, and is no answer.
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

/** An answer that broke off before the agent had said its end. */
export class BrokenConnection extends Error {}

/** @param over called when nothing more comes: what fails after that fails at what is left of an event */
function watchBody(body: ReadableStream<Uint8Array> | null, over: () => void): void {
  if (body === null) return;
  const getReader = body.getReader.bind(body) as () => ReadableStreamDefaultReader<Uint8Array>;
  // HttpAgent asks for no other reader.
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
    // To cancel a stream that has failed fails too, and HttpAgent leaves that rejection to nobody: it ends a Node process.
    reader.cancel = (reason) => {
      isLeft = true;
      return cancel(reason).catch(() => undefined);
    };
    return reader;
  }) as typeof body.getReader;
}
