import type { Message, ResumeEntry, State, UserMessage } from "@ag-ui/core";
import type { RunAgentInput } from "@ag-ui/client";
import { filter, firstValueFrom, map, merge, Subscription } from "rxjs";
import { defined } from "../../platform/defined.js";
import { randomId } from "../../platform/ids.js";
import { invalidInput, RunnerError } from "../../run/errors.js";
import { describeFaults, resumeFaults } from "../../run/interrupts.js";
import { cloneJson } from "../../run/json.js";
import type { RuntimeConnection } from "../connect-runtime.js";
import type { LocalAgent, LocalRunParameters } from "../local-agent.js";
import type { WaitingApi } from "../waiting/waiting-api.js";
import type { WaitingRun } from "../../wire/waiting-shapes.js";
import { cutForBranch } from "../branch.js";
import { againAfterErrors, asError, readUntilDone } from "../read-until-done.js";
import { busyWith, type ThreadRun } from "../thread-run.js";
import { callsIn, FrontendTools, NO_CALLS, withTools, type ShownToolCall } from "../tools/frontend-tools.js";
import { ToolCallsOfAgent } from "../tools/run-frontend-tools.js";
import { sameList, Store } from "./store.js";
import {
  emptyThread,
  NO_INTERRUPTS,
  NONE_WAITS,
  type RunOptions,
  type SendOptions,
  type ThreadSnapshot,
  type ThreadStoreOptions,
} from "./thread-snapshot.js";
import { UnsentMessages } from "./unsent-messages.js";

type Content = UserMessage["content"];

/** How long a store is kept, and follows, after {@link ThreadStore.settled} has resolved, in ms. */
const LINGER_MS = 5_000;

/** A thread for a front end of any framework: it follows the thread while somebody listens. */
export class ThreadStore extends Store<ThreadSnapshot> {
  /** What it stands on. Whoever calls it directly is seen here too. */
  readonly agent: LocalAgent;
  readonly threadId: string;
  private status: ThreadSnapshot["status"] = "loading";
  private run: ThreadRun = { is: "idle" };
  /** Calls whose run has not begun. */
  private sending = 0;
  private readonly unsent = new UnsentMessages(() => this.isReading, this.subscribe);
  /** The run whose stop was requested here. */
  private stopping: string | undefined;
  private isLoading = false;
  private error: Error | undefined;
  /** What keeps tool calls from being run or answered: nobody has called for it. */
  private toolError: Error | undefined;
  private settling: Promise<void> | undefined;
  /**
   * By id, the runs that were started here: what they tell is not the thread's history. And what they were given, until they
   * begin.
   */
  private readonly ownRuns = new Map<string, RunOptions | undefined>();
  private readonly tools: FrontendTools;
  private readonly ownToolCalls: ToolCallsOfAgent;
  private toolCalls: readonly ShownToolCall[] = NO_CALLS;
  private readonly waitingRuns: WaitingApi;
  private waiting: readonly WaitingRun[] = NONE_WAITS;
  /** Of the last run that was started here and has begun: a run that goes on with results of tools is given the same. */
  private parameters: RunOptions = {};

  constructor(
    runtime: Pick<RuntimeConnection, "agent" | "threads" | "toolCalls" | "waiting">,
    options: ThreadStoreOptions,
  ) {
    const { threadId = randomId(), agentId, messageLimit } = options;
    const agent = runtime.agent(agentId, { threadId, ...(messageLimit !== undefined && { messageLimit }) });
    super(emptyThread(threadId));
    this.agent = agent;
    this.waitingRuns = runtime.waiting;
    this.threadId = threadId;
    this.tools = options.tools ?? new FrontendTools();
    this.ownToolCalls = new ToolCallsOfAgent(runtime, agent, this.tools, {
      parameters: () => this.parameters,
      failed: (error) => this.toolsFailed(error),
      passed: () => this.toolsFailed(undefined),
    });
    // Both also while nobody listens: a run that waits begins later, and whoever comes then is not to wait for its end.
    agent.run$.subscribe((run) => this.runChanged(run));
    agent.unstopped$.subscribe((reason) => {
      if (!this.isStopping) return;
      this.stopping = undefined;
      this.failed(reason);
    });
  }

  /**
   * Sends a message and starts a run. Resolves with its `runId` once it has begun, or waits for its turn (`onBusy`,
   * `whenOffline`): then its message is in `waiting`. How it ends is told by `run`. Errors: as `runAgent` of a
   * `LocalAgent`; then the message is not part of the thread. RunnerError `invalid-input` for a `messageId` that it has;
   * `cancelled` if it was stopped while it waited for its files, or for the history.
   */
  async send(
    content: Content,
    { attachments = [], messageId = randomId(), onBusy = "reject", whenOffline = "fail", ...options }: SendOptions = {},
  ): Promise<string> {
    return this.call(async () => {
      const { agent, unsent } = this;
      const check = (sending?: number): void => {
        this.checkNew(messageId);
        // What may wait, waits for these, too.
        if (onBusy === "queue") return;
        if (onBusy === "reject") this.checkFree(sending);
        this.checkAnswered([]);
      };
      check();
      const message: UserMessage = { id: messageId, role: "user", content: cloneJson(content) };
      // Else at once: a stop in the same tick finds the run.
      if (attachments.length > 0 || this.isReading || unsent.count > 0) {
        const prepared = unsent.prepare(message, attachments);
        this.tell();
        await prepared;
        // What was sent later comes later.
        check(0);
      }
      return this.start({ ...options, onBusy, whenOffline }, () => {
        agent.addMessage(message);
        return () => agent.show(agent.messages.filter(({ id }) => id !== message.id));
      });
    });
  }

  /** Answers open interrupts, all of them, and goes on. Errors: `interrupts-open` if some are left out. */
  async respond(answers: ResumeEntry | readonly ResumeEntry[], options: RunOptions = {}): Promise<string> {
    return this.call(async () => {
      const resume = [answers].flat();
      this.checkFree();
      this.checkAnswered(resume);
      return this.start({ ...options, resume });
    });
  }

  /**
   * Has a message answered anew, on a branch: it and what comes after leave the path.
   *
   * @param messageId of an answer: that of the last question before it is given again
   * Errors: RunnerError `invalid-input` if no such message is loaded, or none of the user stands before it in the thread
   */
  async regenerate(messageId: string, options: RunOptions = {}): Promise<string> {
    return this.call(async () => {
      this.indexOf(messageId);
      return this.answerAgain(messageId, options);
    });
  }

  /**
   * Runs the last question again, after a run that failed or was stopped; one that went on with results of this page's
   * tools goes on with them again. Errors: as {@link regenerate}.
   */
  async retry(options: RunOptions = {}): Promise<string> {
    return this.call(() => {
      if (!this.endsWithOwnResults()) return this.answerAgain(undefined, options);
      this.checkFree();
      return this.start(options);
    });
  }

  /**
   * Replaces a message of the user, on a branch: what comes after it leaves the path, and it is answered anew.
   * Errors: RunnerError `invalid-input` if no such message of the user is loaded.
   */
  async edit(messageId: string, content: Content, options: RunOptions = {}): Promise<string> {
    return this.call(() => {
      const { messages } = this.agent;
      const index = this.indexOf(messageId);
      const message = messages[index]!;
      if (message.role !== "user") throw invalidInput("messageId", `"${messageId}" is no message of the user`);
      return this.branch(options, [...messages.slice(0, index), { ...message, content: cloneJson(content) }]);
    });
  }

  /**
   * Gives a tool call its result, in place of a handler; the agent goes on when all calls have theirs. Errors: RunnerError
   * `call-over` if it has one, or the thread went on without it.
   *
   * @param result text as it is, anything else as JSON
   */
  async answerToolCall(toolCallId: string, result: unknown): Promise<void> {
    await this.call(() => this.ownToolCalls.answer(toolCallId, result));
  }

  /** Runs an interrupted tool call again, in this tab. Errors: RunnerError `call-over`, also if its tool is not offered here. */
  async runToolCallAgain(toolCallId: string): Promise<void> {
    return this.call(() => this.ownToolCalls.runAgain(toolCallId));
  }

  /**
   * Cancels a run that waits, and its messages with it.
   *
   * @returns false where it does not wait any more
   */
  async cancelWaiting(runId: string): Promise<boolean> {
    return this.call(() => this.waitingRuns.cancel(this.threadId, runId));
  }

  /** Puts a waiting run before another one, or (null) at the end. @returns false where one of them does not wait any more */
  async moveWaiting(runId: string, before: string | null): Promise<boolean> {
    return this.call(() => this.waitingRuns.move(this.threadId, runId, before));
  }

  /** Tries a waiting run again that failed. @returns false where it does not wait any more */
  async retryWaiting(runId: string): Promise<boolean> {
    return this.call(() => this.waitingRuns.retry(this.threadId, runId));
  }

  /** Stops the live run, in whichever tab or host it is. A message whose files are still being read is not sent. */
  stop(): void {
    this.error = this.toolError = undefined;
    if (this.run.is === "running") this.stopping = this.run.runId;
    this.unsent.cancel(new RunnerError("cancelled", { threadId: this.threadId }));
    this.agent.abortRun();
    this.tell();
  }

  /** Sets the state that the next run begins with. */
  setState(state: State): void {
    this.error = this.toolError = undefined;
    this.agent.setState(cloneJson(state));
    this.tell();
  }

  /** Loads a page of messages before the first one. Errors: as `loadEarlier` of a `LocalAgent`. */
  async loadEarlier(limit?: number): Promise<readonly Message[]> {
    return this.call(async () => {
      this.isLoading = true;
      this.tell();
      return this.agent.loadEarlier(limit).finally(() => (this.isLoading = false));
    });
  }

  /**
   * Resolves when the history was read, or cannot be read. Listens until then, and somewhat longer: whoever waits for it
   * comes to listen.
   */
  settled(): Promise<void> {
    this.settling ??= new Promise((resolve) => {
      const look = (): void => {
        if (this.settling === undefined || this.getSnapshot().status === "loading") return;
        this.settling = undefined;
        setTimeout(stop, LINGER_MS);
        resolve();
      };
      const stop = this.subscribe(look);
      queueMicrotask(look);
    });
    return this.settling;
  }

  protected override begin(): () => void {
    const { agent } = this;
    const following = new Subscription();
    const isReady = (): void => {
      if (this.status === "failed") this.error = undefined;
      this.status = "ready";
      this.changed();
    };
    // Messages and state that a reading of the thread brings; also called for changes made here.
    const changed = ({ input }: { readonly input?: RunAgentInput }): void => {
      if (input === undefined || this.ownRuns.has(input.runId)) this.changed();
      else isReady();
    };
    const hooks = agent.subscribe({
      onMessagesChanged: changed,
      onStateChanged: changed,
      // Interrupts are set by the last event.
      onRunFinalized: () => this.changed(),
    });
    following.add(() => hooks.unsubscribe());
    // Somebody may have used the agent while nobody listened.
    this.changed();
    const hasRead = (): void => {
      // What was not read by the end of the following is not known.
      if (following.closed) return;
      isReady();
      // Not with the next frame: a hidden tab draws none, and what happens from here on is news.
      this.tell();
    };
    following.add(agent.follow());
    // After a failure the follower reads again as soon as there is a host that can, this store after a time.
    following.add(agent.caughtUp$.subscribe(() => this.status !== "ready" && hasRead()));
    following.add(
      this.ownToolCalls.begin((calls) => {
        this.toolCalls = calls;
        this.changed();
      }),
    );
    following.add(
      // The thread itself tells why nothing can be read of it.
      againAfterErrors(this.waitingRuns.watch(this.threadId)).subscribe((waiting) => {
        this.waiting = waiting.length === 0 ? NONE_WAITS : waiting;
        this.tell();
      }),
    );
    following.add(
      // A follower tries again by itself; until it succeeds, this asks no host.
      readUntilDone(
        async () => {
          await agent.connectAgent();
          hasRead();
        },
        (error) => {
          if (this.status === "ready") return;
          this.status = "failed";
          this.error = error;
          this.tell();
        },
      ),
    );
    return () => following.unsubscribe();
  }

  protected override read(was: ThreadSnapshot): ThreadSnapshot {
    const { agent, run, unsent, error = this.toolError } = this;
    const more = agent.hasEarlier ? "more" : "none";
    return {
      threadId: this.threadId,
      status: this.status,
      messages: sameList(was.messages, [...agent.messages, ...unsent.messages]),
      state: agent.state as State,
      run,
      isSending: this.sending + unsent.count > 0,
      isStopping: this.isStopping,
      interrupts: run.is === "running" ? NO_INTERRUPTS : sameList(was.interrupts, agent.pendingInterrupts),
      toolCalls: this.toolCalls,
      waiting: this.waiting,
      earlier: this.isLoading ? "loading" : more,
      error,
      failure: error ?? (run.is === "idle" ? (run.gone ?? run.last?.error) : undefined),
    };
  }

  /** The last run failed before it said anything to results of tools that are offered here: they are not to run again. */
  private endsWithOwnResults(): boolean {
    const { run, agent, tools } = this;
    const last = agent.messages.at(-1);
    const isFailed = run.is === "idle" && run.last !== undefined && run.last.status !== "finished";
    if (!isFailed || last?.role !== "tool") return false;
    const call = callsIn(agent.messages).findLast(({ id }) => id === last.toolCallId);
    return call !== undefined && tools.find(call.function.name, agent.agentId) !== undefined;
  }

  /** Another run may have begun without the end of that one being seen. */
  private get isStopping(): boolean {
    return this.run.is === "running" && this.run.runId === this.stopping;
  }

  private failed(error: Error): void {
    this.error = error;
    this.tell();
  }

  private toolsFailed(error: Error | undefined): void {
    this.toolError = error;
    this.changed();
  }

  private runChanged(run: ThreadRun): void {
    this.run = run;
    const runId = runIdOf(run);
    const given = runId !== undefined && this.ownRuns.get(runId);
    if (given) {
      this.parameters = given;
      this.ownRuns.set(runId, undefined);
    }
    if (run.is === "running") this.toolError = undefined;
    if (run.is === "idle") this.stopping = undefined;
    // There is nothing before it that would be read.
    else if (run.runIndex === 0 && this.ownRuns.has(run.runId)) this.status = "ready";
    // Nothing is left of what was shown.
    if (run.is === "idle" && run.gone !== undefined) this.error = this.toolError = undefined;
    this.changed();
  }

  /** A call of the user: `error` is its failure. */
  private async call<T>(work: () => Promise<T>): Promise<T> {
    this.error = this.toolError = undefined;
    try {
      return await work();
    } catch (error) {
      this.error = asError(error);
      throw this.error;
    } finally {
      this.tell();
    }
  }

  /** The history is being read. */
  private get isReading(): boolean {
    return this.isBegun && this.getSnapshot().status === "loading";
  }

  /** @param messageId whose question is run again; undefined: the last one */
  private async answerAgain(messageId: string | undefined, options: RunOptions): Promise<string> {
    const { agent } = this;
    const question = (): number => {
      const end = messageId === undefined ? agent.messages.length : this.indexOf(messageId) + 1;
      return agent.messages.slice(0, end).findLastIndex(({ role }) => role === "user");
    };
    // A run of many messages may have begun before the first one that is loaded.
    while (question() < 0 && agent.hasEarlier) await agent.loadEarlier();
    if (question() < 0) throw invalidInput("messageId", "no message of the user stands before what is to be answered");
    return this.branch(options, agent.messages.slice(0, question() + 1));
  }

  /** Starts a run on a part of the thread. */
  private async branch(options: RunOptions, messages: readonly Message[]): Promise<string> {
    const { agent } = this;
    this.checkFree();
    // Not by `setMessages`, which makes copies: unchanged messages are to stay the same objects.
    return this.start(options, () => cutForBranch(agent, () => (agent.messages = [...messages])));
  }

  /**
   * Starts a run and resolves once it has begun.
   *
   * @param change changes the messages before it; returns what undoes that, where the run is refused
   */
  private async start(
    { agentId, onBusy, whenOffline, ...parameters }: RunOptions & LocalRunParameters,
    change = (): (() => void) => () => undefined,
  ): Promise<string> {
    const { agent } = this;
    const { agentId: before } = agent;
    if (agentId !== undefined) agent.agentId = agentId;
    const runId = randomId();
    const begun$ = merge(agent.run$.pipe(map(runIdOf)), agent.waits$).pipe(filter((id) => id === runId));
    this.ownRuns.set(runId, undefined);
    this.sending++;
    const undo = change();
    this.tell();
    try {
      // A page's framework may have given them as proxies, which cannot be sent.
      const given = cloneJson(parameters);
      const { resume: _resume, ...kept } = given;
      this.ownRuns.set(runId, kept);
      const offered = withTools(given, this.tools.definitions(agent.agentId));
      const running = agent.runAgent({ ...offered, ...defined({ onBusy, whenOffline }), runId });
      // A run that fails later is told by `run`.
      await firstValueFrom(merge(begun$, running));
      return runId;
    } catch (error) {
      // Unless another one was named meanwhile.
      if (before !== undefined && agent.agentId === agentId) agent.agentId = before;
      undo();
      throw error;
    } finally {
      this.sending--;
    }
  }

  /** Before anything is changed here: a message that comes to a run that begins would be taken for a part of it. */
  private checkFree(sending = this.sending + this.unsent.count): void {
    const { threadId, run } = this;
    if (run.is === "running") throw busyWith(threadId, run);
    if (sending > 0) throw busyWith(threadId, {});
  }

  /** A message that came although its call failed would be shown twice, and answered again. */
  private checkNew(messageId: string): void {
    for (const { messages } of [this.agent, this.unsent, ...this.waiting])
      if (messages.some(({ id }) => id === messageId))
        throw invalidInput("messageId", `the thread has a message "${messageId}" already`);
  }

  /** As the host does: the client's class would refuse it with an error that has no code. */
  private checkAnswered(resume: readonly ResumeEntry[]): void {
    const { threadId } = this;
    const open = this.agent.pendingInterrupts;
    const faults = resumeFaults(open, [...resume], Date.now());
    if (faults === undefined) return;
    const interruptIds = open.map(({ id }) => id);
    throw new RunnerError(
      "interrupts-open",
      { threadId, interruptIds, ...faults },
      { message: describeFaults(faults) },
    );
  }

  private indexOf(messageId: string): number {
    const index = this.agent.messages.findIndex(({ id }) => id === messageId);
    if (index < 0) throw invalidInput("messageId", `no message "${messageId}" is loaded`);
    return index;
  }
}

const runIdOf = (run: ThreadRun): string | undefined => (run.is === "running" ? run : run.last)?.runId;
