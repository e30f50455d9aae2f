import {
  FunctionMiddleware,
  type AbstractAgent,
  type AgentStateMutation,
  type AgentSubscriber,
  type BaseEvent,
  type Message,
  type Middleware,
  type RunAgentInput,
  type RunAgentParameters,
} from "@ag-ui/client";
import { concat, defer, ignoreElements, of, takeWhile, tap, throwError, type Observable } from "rxjs";
import { cloneJson } from "../run/json.js";
import type { OpenConstructs } from "../run/types.js";
import { tidyLifecycle } from "./lifecycle.js";

/** What the pipeline uses of AbstractAgent and replaces on one instance; the class keeps it protected or private. */
interface Inner {
  middlewares: Middleware[];
  apply(
    input: RunAgentInput,
    events$: Observable<BaseEvent>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation>;
  onError(input: RunAgentInput, error: Error, subscribers: AgentSubscriber[]): Observable<AgentStateMutation>;
  prepareRunAgentInput(parameters?: RunAgentParameters): RunAgentInput;
}

/** Methods of AbstractAgent that a class may have replaced to see what its runs do. */
const HOOKS = ["apply", "processApplyEvents", "prepareRunAgentInput", "onInitialize", "onFinalize", "onError"] as const;

/** Somebody watches the run from inside the agent: subscribers, or a class that replaced one of the hooks. */
function isWatched(agent: AbstractAgent): boolean {
  if (agent.subscribers.length > 0) return true;
  const chain: object[] = [];
  for (let link: object | null = agent; link !== null; link = Object.getPrototypeOf(link) as object | null) {
    chain.push(link);
  }
  // The last that brings its own `runAgent` is AbstractAgent itself.
  const base = chain.findLast((link) => Object.hasOwn(link, "runAgent"));
  return HOOKS.some((hook) => chain.find((link) => Object.hasOwn(link, hook)) !== base);
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
const REPLACED = ["messages", "apply", "onError", "run", "middlewares"] as const;

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
export interface PipelineHost {
  /** The thread's messages, the new ones at the end. */
  readonly messages: () => readonly Message[];
  /** Looks at each event as it was emitted. False: the run is over, and the rest is not heard. */
  readonly mayPass: (event: BaseEvent) => boolean;
  /** Each event that passed, in order; kept by whoever takes it, so not to be changed any more. */
  readonly next: (event: BaseEvent) => void;
  /** What the events that passed have left open. */
  readonly open: () => OpenConstructs | undefined;
  /** Fresh ids for messages that are made up. */
  readonly makeId: () => string;
}

/**
 * Runs an agent through its own pipeline (middlewares, schema check, chunk expansion, verification), handing each
 * accepted event to `host.next`. The default apply stage, which clones all messages for each event, is left out unless
 * the agent has subscribers or hooks of its own, which then keep their meaning.
 *
 * @param agent runs as it is given, so callers pass a clone
 * @returns resolves when the agent has completed; rejects with what it threw, or with the verifier's reason
 */
export async function runAgent(
  agent: AbstractAgent,
  input: Omit<RunAgentInput, "messages">,
  host: PipelineHost,
): Promise<void> {
  if (running.has(agent)) throw new TypeError("The agent is running already: pass a clone");
  running.add(agent);
  const putBack = remember(agent);
  try {
    prepare(agent, input, host);
    await agent.runAgent({
      runId: input.runId,
      tools: input.tools,
      context: input.context,
      forwardedProps: input.forwardedProps,
      ...(input.resume !== undefined && { resume: input.resume }),
    });
  } finally {
    putBack();
    running.delete(agent);
  }
}

/** Puts the thread and this host's stages on the agent. */
function prepare(agent: AbstractAgent, input: Omit<RunAgentInput, "messages">, host: PipelineHost): void {
  const watched = isWatched(agent);
  // Protected or private in the class; replaced on this instance alone.
  const inner = agent as unknown as Inner;
  agent.threadId = input.threadId;
  // The agent's own: what it does to them must not reach the thread as the host keeps it.
  const ownMessages = (): Message[] => cloneJson([...host.messages()]);
  agent.messages = watched ? ownMessages() : [];
  agent.state = cloneJson(input.state);
  // The thread's open interrupts were checked where the run was asked for; a clone may carry those of another thread.
  agent.pendingInterrupts = [];

  const apply = inner.apply.bind(agent);
  inner.apply = (runInput, events$, subscribers) => {
    // Subscribers are handed the same events, and may do with them what they like.
    if (watched) return apply(runInput, events$.pipe(tap((event) => host.next({ ...event }))), subscribers);
    // One empty mutation: a pipeline that emits nothing makes runAgent reject with EmptyError.
    return concat(
      events$.pipe(tap(host.next), ignoreElements()),
      defer(() => {
        // Nobody reads them any more, and runAgent would copy them all for a result that nobody reads.
        agent.messages = [];
        return of({});
      }),
    );
  };
  // The default prints the error to the console before it throws it; here the run's end tells it.
  if (!watched) inner.onError = (_input, error) => throwError(() => error);

  const whole = (prepared: RunAgentInput): RunAgentInput => {
    if (watched) return prepared;
    const given = { ...prepared };
    setLazily(agent, ownMessages);
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
    return next.run(isBare ? given : whole(given)).pipe(takeWhile(host.mayPass), tidyLifecycle(host.open, host.makeId));
  });
  inner.middlewares = [outermost, ...inner.middlewares];
}
