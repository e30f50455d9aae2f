import type {
  AbstractAgent,
  AgentStateMutation,
  AgentSubscriber,
  BaseEvent,
  RunAgentInput,
  RunAgentParameters,
} from "@ag-ui/client";
import { concat, defer, ignoreElements, of, tap, throwError, type Observable } from "rxjs";
import { cloneJson } from "../run/json.js";

/** The parts of AbstractAgent that the pipeline replaces on one instance; the class keeps them protected. */
interface Replaceable {
  apply(
    input: RunAgentInput,
    events$: Observable<BaseEvent>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation>;
  onError(input: RunAgentInput, error: Error, subscribers: AgentSubscriber[]): Observable<AgentStateMutation>;
  prepareRunAgentInput(parameters?: RunAgentParameters): RunAgentInput;
}

/** The class that has both the method and `runAgent` as its own is AbstractAgent itself: nobody replaced the method. */
function replaces(agent: AbstractAgent, method: keyof Replaceable): boolean {
  for (let prototype: unknown = agent; prototype !== null; prototype = Object.getPrototypeOf(prototype)) {
    if (Object.hasOwn(prototype as object, method)) return !Object.hasOwn(prototype as object, "runAgent");
  }
  return false;
}

/**
 * Runs an agent through its own pipeline (middlewares, schema check, chunk expansion, verification), handing each
 * accepted event to `next`. The default apply stage, which clones all messages for each event, is left out unless the
 * agent has subscribers or an apply stage of its own, which then keep their meaning.
 *
 * @param agent runs as it is given, so callers pass a clone
 * @returns resolves when the agent has completed; rejects with what it threw, or with the verifier's reason
 */
export async function runAgent(
  agent: AbstractAgent,
  input: RunAgentInput,
  next: (event: BaseEvent) => void,
): Promise<void> {
  agent.threadId = input.threadId;
  // The agent's own: what it does to them must not reach the thread as the host keeps it.
  agent.messages = cloneJson(input.messages);
  agent.state = cloneJson(input.state);
  // The thread's open interrupts were checked where the run was asked for; a clone may carry those of another thread.
  agent.pendingInterrupts = [];

  // Protected in the class; replaced on this instance alone.
  const replaceable = agent as unknown as Replaceable;
  const apply = replaceable.apply.bind(agent);
  const keepsHooks = agent.subscribers.length > 0 || replaces(agent, "apply");
  replaceable.apply = (runInput, events$, subscribers) => {
    const accepted$ = events$.pipe(tap(next));
    if (keepsHooks) return apply(runInput, accepted$, subscribers);
    // One empty mutation: a pipeline that emits nothing makes runAgent reject with EmptyError.
    return concat(
      accepted$.pipe(ignoreElements()),
      defer(() => {
        // Nobody reads them any more, and runAgent would copy them all for a result that nobody reads.
        agent.messages = [];
        return of({});
      }),
    );
  };
  if (!keepsHooks && !replaces(agent, "prepareRunAgentInput")) {
    const prepare = replaceable.prepareRunAgentInput.bind(agent);
    // The default copies all messages; these are the agent's own copy already.
    replaceable.prepareRunAgentInput = (parameters) => {
      const { messages } = agent;
      agent.messages = [];
      const prepared = prepare(parameters);
      agent.messages = messages;
      return { ...prepared, messages: messages.filter((message) => message.role !== "activity") };
    };
  }
  // The default prints the error to the console before it throws it; here the run's end tells it.
  if (!keepsHooks) replaceable.onError = (_input, error) => throwError(() => error);

  await agent.runAgent({
    runId: input.runId,
    tools: input.tools,
    context: input.context,
    forwardedProps: input.forwardedProps,
    ...(input.resume !== undefined && { resume: input.resume }),
  });
}
