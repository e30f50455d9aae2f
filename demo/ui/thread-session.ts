import { EventType, type Message, type RunErrorEvent } from "@ag-ui/client";
import {
  type LocalAgent,
  RunnerError,
  type RuntimeConnection,
  type SettledStatus,
  type ThreadRun,
} from "ag-ui-local-runtime/client";
import { filter, Subscription, take } from "rxjs";

/** A run that ended otherwise than finished, and where it stands in the conversation. */
export interface Ending {
  readonly runId: string;
  readonly status: Exclude<SettledStatus, "finished">;
  /** What the agent or the runtime said about it. */
  readonly message: string;
  /** The message that it stands after; none: before all. */
  readonly after: string | undefined;
}

export interface SessionListener {
  /** Something to show changed. */
  changed(): void;
  /** The thread's run began or ended, in whichever tab. Not called for what had ended before this tab looked. */
  started(): void;
  ended(status: SettledStatus): void;
  /** A run of this tab failed after it had begun. */
  failed(error: Error): void;
  /** Nothing is left of what was shown: the thread (`unknown-thread`) or all of them (`storage-deleted`) were deleted. */
  gone(code: string | undefined): void;
}

/** How it stands with the messages before the first one that is shown. */
export type Earlier =
  { readonly is: "resting" } | { readonly is: "loading" } | { readonly is: "failed"; readonly message: string };

/** So many of a thread's messages come at a time: the newest when it is opened, earlier ones where they are wanted. */
const PAGE = 30;

/** One thread as this tab shows it: follows every run of it, starts and stops runs. */
export class ThreadSession {
  readonly agent: LocalAgent;
  run: ThreadRun = { is: "idle" };
  /** A message is on its way to the host, which has not said yes yet. */
  sending = false;
  stopping = false;
  earlier: Earlier = { is: "resting" };
  /** Ids of the messages that were loaded as earlier ones. */
  readonly #loaded = new Set<string>();
  readonly #endings = new Map<string, Ending>();
  readonly #subscription = new Subscription();
  #shownRunId: string | undefined;

  constructor(
    private readonly runtime: RuntimeConnection,
    readonly threadId: string,
    /** The runs that this tab started, of all its sessions. */
    private readonly ownRuns: Set<string>,
    private readonly listener: SessionListener,
  ) {
    this.agent = runtime.agent("reader", { threadId, messageLimit: PAGE });
  }

  /** Shows what the thread has, then every run of it, until `close()`. */
  attach(): void {
    const hooks = this.agent.subscribe({
      onMessagesChanged: () => this.listener.changed(),
      onStateChanged: () => this.listener.changed(),
      onRunStartedEvent: ({ event }) => {
        this.#shownRunId = event.runId;
      },
      onRunFinishedEvent: ({ event, outcome, messages }) => {
        if (outcome === "cancelled") this.#end(event.runId, "stopped", "", messages);
      },
      onRunErrorEvent: ({ event, messages }) => this.#fail(event, messages),
    });
    this.#subscription.add(() => hooks.unsubscribe());
    this.#subscription.add(this.agent.run$.subscribe((run) => this.#runChanged(run)));
    this.#subscription.add(this.agent.follow());
  }

  /** Whether a live run was started by this tab since it was loaded. */
  get isOwnRun(): boolean {
    return this.run.is === "running" && this.ownRuns.has(this.run.runId);
  }

  /** The endings to show, by the message that they stand after. */
  get endings(): ReadonlyMap<string | undefined, readonly Ending[]> {
    const { lastEnding } = this;
    const endings = new Set(this.#endings.values());
    if (lastEnding) endings.add(lastEnding);
    return Map.groupBy(endings, ({ after }) => after);
  }

  /** How the thread's last run ended, where it ended otherwise than finished. */
  get lastEnding(): Ending | undefined {
    if (this.run.is !== "idle" || !this.run.last) return undefined;
    const { runId, status, error } = this.run.last;
    const known = this.#endings.get(runId);
    // The run is known to be over before its last events are shown.
    if (known || status === "finished") return known;
    const lost = status === "broken" && error !== undefined && error.code !== "RUN_BROKEN";
    const message = lost ? `This run was interrupted: ${error.message}` : (error?.message ?? "");
    return { runId, status, message, after: this.agent.messages.at(-1)?.id };
  }

  /** It was loaded as an earlier one: nothing that has just happened. */
  isLoaded(messageId: string): boolean {
    return this.#loaded.has(messageId);
  }

  /** Loads a page of the messages before the first one. Never rejects: `earlier` says that it failed. */
  async loadEarlier(): Promise<readonly Message[]> {
    this.earlier = { is: "loading" };
    this.listener.changed();
    try {
      const page = await this.#load();
      this.earlier = { is: "resting" };
      return page;
    } catch (error) {
      this.earlier = { is: "failed", message: asError(error).message };
      return [];
    } finally {
      this.listener.changed();
    }
  }

  /** Whether the thread has this message, among those that are not shown too. Rejects where the host cannot tell. */
  async has(messageId: string): Promise<boolean> {
    if (this.agent.messages.some(({ id }) => id === messageId)) return true;
    if (!this.agent.hasEarlier) return false;
    try {
      // What stands before a message can only be asked where the thread has it.
      await this.runtime.threads.messages(this.threadId, { before: messageId, limit: 1 });
      return true;
    } catch (error) {
      if (RunnerError.is(error, "invalid-input")) return false;
      throw error;
    }
  }

  /**
   * Sends a message and starts a run of this agent. Resolves as soon as the run has begun, rejects when it cannot begin: then the
   * message is not part of the thread.
   */
  async send(
    agentId: string,
    content: Extract<Message, { role: "user" }>["content"],
    messageId: string = crypto.randomUUID(),
  ): Promise<void> {
    const message: Message = { id: messageId, role: "user", content };
    const runId = crypto.randomUUID();
    this.ownRuns.add(runId);
    this.sending = true;
    this.agent.agentId = agentId;
    this.agent.addMessage(message);
    this.listener.changed();

    let begun = false;
    const beginning = new Promise<void>((resolve) => {
      this.#subscription.add(
        this.agent.run$
          .pipe(
            filter((run) => (run.is === "running" ? run : run.last)?.runId === runId),
            take(1),
          )
          .subscribe(() => {
            begun = true;
            resolve();
          }),
      );
    });
    const running = this.agent.runAgent({ runId });
    running.catch((error: unknown) => {
      if (begun) this.listener.failed(asError(error));
    });
    try {
      await Promise.race([beginning, running]);
    } catch (error) {
      this.agent.setMessages(this.agent.messages.filter(({ id }) => id !== message.id));
      throw asError(error);
    } finally {
      this.sending = false;
      this.listener.changed();
    }
  }

  /**
   * Sends the last user message again, as a new message of a new run. The broken run stays in the thread as it was:
   * nothing that was shown is taken back, and the agent sees how far it had got.
   */
  async again(agentId: string): Promise<void> {
    const last = await this.#lastOfUser();
    if (last) await this.send(agentId, structuredClone(last.content));
  }

  /** Stops the thread's live run, in whichever tab it was started. */
  stop(): void {
    if (this.run.is !== "running") return;
    this.stopping = true;
    this.agent.abortRun();
    this.listener.changed();
  }

  /** Lets go of the thread. Its runs go on. */
  close(): void {
    this.#subscription.unsubscribe();
  }

  async #load(): Promise<readonly Message[]> {
    const page = await this.agent.loadEarlier();
    for (const { id } of page) this.#loaded.add(id);
    return page;
  }

  /** A run of many messages may have begun before the first one that is shown. */
  async #lastOfUser(): Promise<Extract<Message, { role: "user" }> | undefined> {
    const find = () => this.agent.messages.findLast((message) => message.role === "user");
    if (find() || !this.agent.hasEarlier) return find();
    this.sending = true;
    this.listener.changed();
    try {
      while (!find() && this.agent.hasEarlier) await this.#load();
      return find();
    } finally {
      this.sending = false;
      this.listener.changed();
    }
  }

  #runChanged(run: ThreadRun): void {
    const was = this.run;
    this.run = run;
    if (run.is === "idle") {
      this.stopping = false;
      const ending = run.last && this.#endings.get(run.last.runId);
      // Both leave the same event; only this tells them apart.
      if (ending && run.last?.status === "superseded")
        this.#endings.set(ending.runId, { ...ending, status: "superseded" });
    }
    if (was.is === "idle" && run.is === "running") this.listener.started();
    if (was.is === "running" && run.is === "idle" && run.last) this.listener.ended(run.last.status);
    if (run.is === "idle" && run.gone && !(was.is === "idle" && was.gone)) {
      this.#endings.clear();
      this.listener.gone(run.gone.code);
    }
    this.listener.changed();
  }

  #fail(event: RunErrorEvent, messages: readonly Message[]): void {
    const runId = this.#shownRunId;
    if (runId === undefined || event.type !== EventType.RUN_ERROR) return;
    this.#end(runId, event.code === "RUN_BROKEN" ? "broken" : "errored", event.message, messages);
  }

  #end(runId: string, status: Ending["status"], message: string, messages: readonly Message[]): void {
    const known = this.#endings.get(runId);
    // A reader that attaches again is told again: the ending keeps its place.
    const after = known ? known.after : messages.at(-1)?.id;
    this.#endings.set(runId, { runId, status, message: message === "" ? (known?.message ?? "") : message, after });
    this.listener.changed();
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
