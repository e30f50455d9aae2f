import {
  AbstractAgent,
  type AgentStateMutation,
  type AgentSubscriber,
  type BaseEvent,
  type RunAgentInput,
  type State,
} from "@ag-ui/client";
import { defaultIfEmpty, mergeMap, tap, throwError, type Observable } from "rxjs";
import { Lazy } from "../../platform/lazy.js";
import { RunnerError } from "../../run/errors.js";
import { EarlierMessages } from "../earlier-messages.js";
import { KnownMessages } from "../known-messages.js";
import type { ApplyStage, StageParts } from "./apply-stage.js";
import { tell, watches } from "./hooks.js";
import { JoinedDeltas } from "./joined.js";
import { Placing } from "./placing.js";

const stages = new Lazy(async () => (await import("./apply-stage.js")).ApplyStage);

/**
 * Loads the apply stage ahead of the first event; a page that shows no thread never loads it. If that fails, the first
 * event tries again.
 */
export const preloadStage = (): void => void stages.get().catch(() => undefined);

/** Errors: RunnerError `outdated`. */
async function loadedStage(parts: StageParts): Promise<ApplyStage> {
  try {
    return new (await stages.get())(parts);
  } catch (cause) {
    const message =
      "The code that shows a thread could not be loaded: reload the page, or try again when there is a network";
    throw new RunnerError("outdated", {}, { message, cause });
  }
}

/** An agent with an apply stage of its own, {@link ApplyStage}; `run` and `connect` may emit joined deltas. */
export abstract class ApplyingAgent extends AbstractAgent {
  /** The joined deltas in the pipeline. */
  protected readonly joined = new JoinedDeltas();
  protected known = new KnownMessages();
  protected earlier = new EarlierMessages();
  /** The state that the host gave; another one was set by the caller. */
  protected hostState: unknown = this.state;
  /** Readings of the thread that run or wait for their turn: meanwhile the pipeline reads, and applies no own run. */
  protected readings = 0;
  /** How many of the session's next MESSAGES_SNAPSHOT events are the host's: the whole thread, in its order. */
  protected snapshotsToCome = 0;

  /** The thread has messages before the first one here, because of `messageLimit`. */
  get hasEarlier(): boolean {
    return this.earlier.before !== undefined;
  }

  protected override apply(
    input: RunAgentInput,
    events$: Observable<BaseEvent>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation> {
    const parts: StageParts = {
      agent: this,
      messages: [...this.messages],
      input,
      subscribers: () => this.withLater(subscribers),
      isThread: () => this.snapshotsToCome > 0 && this.snapshotsToCome-- > 0,
      isUnsent: (id) => this.known.isUnsent(id),
      isPart: () => this.hasEarlier,
    };
    let stage = stages.made && new stages.made(parts);
    const first = async (event: BaseEvent): Promise<readonly AgentStateMutation[]> =>
      (stage = await loadedStage(parts)).take(event);
    return events$.pipe(
      this.joined.behind(
        ({ type }) => watches(parts.subscribers(), type),
        // One at a time: the next event comes when the first one is done.
        (event) => stage?.take(event) ?? first(event),
      ),
      // Without a mutation runAgent rejects.
      defaultIfEmpty<AgentStateMutation, AgentStateMutation>({}),
    );
  }

  protected override processApplyEvents(
    input: RunAgentInput,
    mutations$: Observable<AgentStateMutation>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation> {
    const placing = new Placing(
      this.messages,
      { isUnsent: (id) => this.known.isUnsent(id), isLoaded: (id) => this.earlier.isLoaded(id) },
      this.readings === 0,
    );
    const changed = (hook: "onMessagesChanged" | "onStateChanged"): void => {
      const { messages, state } = this;
      tell(this.withLater(subscribers), hook, { messages, state: state as unknown, agent: this, input });
    };
    return mutations$.pipe(
      tap(({ messages, state }) => {
        if (messages !== undefined) {
          this.messages = placing.place(messages, this.messages);
          changed("onMessagesChanged");
        }
        if (state !== undefined) {
          this.hostState = this.state = state as State;
          changed("onStateChanged");
        }
      }),
    );
  }

  /** As the base class, but a refusal, of which the caller is told anyway, is not printed to the console. */
  protected override onError(
    input: RunAgentInput,
    error: Error,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation> {
    if (!RunnerError.is(error)) return super.onError(input, error, this.withLater(subscribers));
    let unhandled = false;
    const last: AgentSubscriber = {
      // The base class prints and throws unless a hook stops it; the hook's type lacks the field for that.
      onRunFailed: () => {
        unhandled = true;
        const mutation: AgentStateMutation = { stopPropagation: true };
        return mutation;
      },
    };
    return super
      .onError(input, error, [...this.withLater(subscribers), last])
      .pipe(mergeMap((mutation) => (unhandled ? throwError(() => error) : [mutation])));
  }

  protected override onFinalize(input: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void> {
    return super.onFinalize(input, this.withLater(subscribers));
  }

  protected get hasMiddlewares(): boolean {
    // Private in the base class, which has no other way to see them.
    return (this as unknown as { middlewares: unknown[] }).middlewares.length > 0;
  }

  /** With those who subscribed during the run: they are told from then on. */
  private withLater(subscribers: AgentSubscriber[]): AgentSubscriber[] {
    const later = this.subscribers.filter((subscriber) => !subscribers.includes(subscriber));
    return later.length === 0 ? subscribers : [...subscribers, ...later];
  }
}
