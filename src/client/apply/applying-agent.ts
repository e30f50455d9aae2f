import {
  AbstractAgent,
  type AgentStateMutation,
  type AgentSubscriber,
  type BaseEvent,
  type Message,
  type RunAgentInput,
  type State,
} from "@ag-ui/client";
import {
  defaultIfEmpty,
  finalize,
  mergeMap,
  tap,
  throwError,
  type MonoTypeOperatorFunction,
  type Observable,
} from "rxjs";
import { Lazy } from "../../platform/lazy.js";
import { RunnerError } from "../../run/errors.js";
import { loaded } from "../../run/loaded.js";
import { EarlierMessages, withPage } from "../earlier-messages.js";
import { inTurn } from "../in-turn.js";
import { KnownMessages } from "../known-messages.js";
import type { ApplyStage, StageParts } from "./apply-stage.js";
import { tell, watches } from "./hooks.js";
import { JoinedDeltas } from "./joined.js";
import { Placing } from "./placing.js";

const stages = new Lazy(() => loaded(import("./apply-stage.js").then((code) => code.ApplyStage)));

/**
 * Loads the apply stage ahead of the first event; a page that shows no thread never loads it. If that fails, the first
 * event tries again.
 */
export const preloadStage = (): void => void stages.get().catch(() => undefined);

/**
 * Holds back what comes before the apply stage is loaded, so that `run$` does not tell of events that the messages do not
 * show. If the load fails, the first event says so.
 */
export const whenStageIsLoaded = <T>(): MonoTypeOperatorFunction<T> =>
  inTurn((value, emit) => {
    if (stages.made !== undefined) return emit(value);
    const go = (): void => emit(value);
    return stages.get().then(go, go);
  });

type EditMessages = (messages: readonly Message[]) => Message[];

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

  /** The pipelines that apply events, each to messages of its own: a reading and an own run may overlap. */
  private readonly applying = new Set<{ edit(change: EditMessages): void }>();

  /** The thread has messages before the first one here, because of `messageLimit`. */
  get hasEarlier(): boolean {
    return this.earlier.before !== undefined;
  }

  protected override apply(
    input: RunAgentInput,
    events$: Observable<BaseEvent>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation> {
    const parts: StageParts & { messages: readonly Message[] } = {
      agent: this,
      messages: [...this.messages],
      input,
      subscribers: () => this.withLater(subscribers),
      snapshotsToCome: () => (this.snapshotsToCome > 0 ? this.snapshotsToCome-- : 0),
      isUnsent: (id) => this.known.isUnsent(id),
      isLoaded: (id) => this.earlier.isLoaded(id),
      isPart: () => this.hasEarlier,
    };
    let stage: ApplyStage | undefined;
    const made = (): ApplyStage | undefined => (stage ??= stages.made && new stages.made(parts));
    const pipeline = {
      edit: (change: EditMessages): void => {
        if (stage === undefined) parts.messages = change(parts.messages);
        else stage.edit(change);
      },
    };
    this.applying.add(pipeline);
    const first = async (event: BaseEvent): Promise<readonly AgentStateMutation[]> =>
      (stage = new (await stages.get())(parts)).take(event);
    return events$.pipe(
      this.joined.behind(
        ({ type }) => watches(parts.subscribers(), type),
        // One at a time: the next event comes when the first one is done.
        (event) => made()?.take(event) ?? first(event),
      ),
      finalize(() => this.applying.delete(pipeline)),
      // Without a mutation runAgent rejects.
      defaultIfEmpty<AgentStateMutation, AgentStateMutation>({}),
    );
  }

  /** Puts a page of earlier messages in front. */
  protected putInFront(page: readonly Message[]): void {
    // While a shorter snapshot waits for a hook, some messages of the page are still here.
    this.edit((messages) => withPage(page, messages));
  }

  /**
   * Takes messages out that the thread does not have. What is being applied would bring them back in their old place.
   *
   * @returns whether there were any
   */
  protected takeOutUnsent(ids: ReadonlySet<string>): boolean {
    const isOut = ({ id }: Message): boolean => ids.has(id) && this.known.isUnsent(id);
    if (!this.messages.some(isOut)) return false;
    this.edit((messages) => messages.filter((message) => !isOut(message)));
    return true;
  }

  private edit(change: EditMessages): void {
    this.messages = change(this.messages);
    for (const pipeline of this.applying) pipeline.edit(change);
  }

  protected override processApplyEvents(
    input: RunAgentInput,
    mutations$: Observable<AgentStateMutation>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation> {
    const placing = new Placing(this.messages, (id) => this.known.isUnsent(id), this.readings === 0);
    const changed = (hook: "onMessagesChanged" | "onStateChanged"): void => {
      const { messages, state } = this;
      tell(this.withLater(subscribers), hook, { messages, state: state as unknown, agent: this, input });
    };
    return mutations$.pipe(
      tap(({ messages, state }) => {
        // A hook was awaited, and the page has set another thread meanwhile.
        if (this.threadId !== input.threadId) return;
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
