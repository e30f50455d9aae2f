import type { Interrupt, ToolCall } from "@ag-ui/core";
import {
  type FrontendTools,
  RunnerError,
  type RunRecovery,
  type RuntimeConnection,
  type SettledStatus,
  type ThreadSnapshot,
  ThreadStore,
  type WaitingRun,
} from "ag-ui-local-runtime/client";
import { fileMessage, fileRefOf } from "../documents/message.js";
import { type AgentView, agentView, type Starter } from "./agents.js";
import { takeFiles } from "./attach.js";
import type { Drafting } from "./drafting.js";
import { type Editing, editedContent, editingOf, textOfQuestion } from "./editing.js";
import { type Feedback, messageOf } from "./feedback.js";
import { plural } from "./format.js";
import { fetchSample } from "../documents/samples.js";
import { isShown } from "./shown.js";

/** What a chat knows of the page around it. */
export interface Page extends Feedback {
  readonly drafting: Drafting;
  readonly agent: AgentView;
  readonly agentId: string;
  readonly tools: FrontendTools;
  /** There is no worker. */
  readonly isFailed: boolean;
}

/** So many of a thread's messages come at a time: the newest when it is opened, earlier ones where they are wanted. */
const PAGE = 30;

/** The runs that this tab started since it was loaded, and the questions that they answer: others go on with those. */
const ownRuns = new Set<string>();
const ownQuestions = new Set<string>();

/** The thread on show, until another one is: what has happened in it, and what the person does in it. */
export class Chat {
  /** The question that is being changed. */
  editing: Editing | undefined;
  /** Why the last page of earlier messages did not come. */
  earlierFailure: string | undefined;

  /** What was answered of the questions that the agent asks at once, by their interrupts. */
  readonly decisions = new Map<string, boolean>();

  readonly #store: ThreadStore;
  #unsubscribe = (): void => undefined;
  #isLeft = false;
  /** Ids of the messages that were loaded as earlier ones. */
  readonly #loaded = new Set<string>();
  /** The last run that began while this tab looked on. */
  #seenToBegin: string | undefined;

  constructor(
    private readonly page: Page,
    private readonly runtime: RuntimeConnection,
    threadId: string,
  ) {
    this.#store = new ThreadStore(runtime, {
      threadId,
      agentId: agentView(undefined).id,
      messageLimit: PAGE,
      tools: page.tools,
    });
  }

  follow(): void {
    let was = this.now;
    this.#unsubscribe = this.#store.subscribe(() => {
      const before = was;
      was = this.now;
      this.#tell(before, was);
      this.page.drafting.clearSent(this.runtime, was);
      this.page.changed();
    });
  }

  leave(): void {
    this.#isLeft = true;
    this.#unsubscribe();
  }

  /** The thread as it is shown now. */
  get now(): ThreadSnapshot {
    return this.#store.getSnapshot();
  }

  /** Why the thread cannot be read. It is read again by itself. */
  get failure(): string | undefined {
    const { status, error } = this.now;
    return status === "failed" ? messageOf(error) : undefined;
  }

  get isRunning(): boolean {
    return this.now.run.is === "running";
  }

  /** The live run began while this tab looked on, for what another tab sent. */
  get isElsewhere(): boolean {
    const { run, messages } = this.now;
    if (run.is !== "running" || run.runId !== this.#seenToBegin || run.attempt !== undefined) return false;
    const question = messages.findLast(({ role }) => role === "user");
    return !ownRuns.has(run.runId) && !(question && ownQuestions.has(question.id));
  }

  /** Whether a run can begin now. */
  get isFree(): boolean {
    return !this.isRunning && !this.now.isSending && !this.page.isFailed;
  }

  /** The agent waits for a permission: it goes on with nothing else. */
  get asks(): boolean {
    return this.now.interrupts.length > 0;
  }

  /** Whether a message can be sent now. While an answer streams, or the network is away, it waits for its turn. */
  get maySend(): boolean {
    return !this.now.isSending && !this.page.isFailed && this.page.drafting.isReady;
  }

  /** Whether the message came as an earlier one: nothing that has just happened. */
  isLoaded(messageId: string): boolean {
    return this.#loaded.has(messageId);
  }

  /** Sends something to begin with, and leaves what is typed as it is. */
  async begin({ question = "", sample }: Starter): Promise<void> {
    if (!this.isFree) return;
    await this.page.try(async () => {
      const { refs, refusals } = await takeFiles(sample === undefined ? [] : [await fetchSample(sample)]);
      if (refusals.length > 0) throw new Error(refusals.join(" "));
      if (this.#isLeft) return;
      await this.#run((agentId) =>
        this.#store.send(refs.length > 0 ? fileMessage(question, refs) : question, { agentId }),
      );
    });
  }

  async send(): Promise<void> {
    if (!this.maySend) return;
    const { drafting } = this.page;
    const { text, files } = drafting.draft;
    const content = files.length > 0 ? fileMessage(text.trim(), files) : text.trim();
    const messageId = crypto.randomUUID();
    drafting.sent(messageId);
    ownQuestions.add(messageId);
    await this.#run(
      (agentId) => this.#store.send(content, { agentId, messageId, onBusy: "queue", whenOffline: "wait" }),
      this.maySend,
    );
  }

  /** After a run that did not finish: see {@link AgentView.again}. */
  async again(): Promise<void> {
    const { again } = this.page.agent;
    await this.#run((agentId) =>
      again === "continue" ? this.#store.send("Continue", { agentId }) : this.#store.retry({ agentId }),
    );
  }

  async regenerate(messageId: string): Promise<void> {
    await this.#run((agentId) => this.#store.regenerate(messageId, { agentId }));
  }

  /** Opens a question for changes; without an id the last one. */
  edit(messageId?: string): void {
    if (!this.isFree) return;
    const message = this.now.messages.findLast(
      (it) => it.role === "user" && (messageId === undefined || it.id === messageId),
    );
    this.editing = editingOf(message);
    if (this.editing) this.page.focus("edit");
    this.page.changed();
  }

  async sendEdited(): Promise<void> {
    const { editing } = this;
    const content = editing && editedContent(editing);
    if (!editing || content === undefined) return;
    await this.#run(async (agentId) => {
      const runId = await this.#store.edit(editing.message.id, content, { agentId });
      this.editing = undefined;
      return runId;
    });
  }

  cancelEdit(): void {
    this.editing = undefined;
    this.page.focus("composer");
    this.page.changed();
  }

  /** The call that an interrupt asks about. */
  callOf({ toolCallId }: Interrupt): ToolCall | undefined {
    const calls = this.now.messages.flatMap((message) =>
      message.role === "assistant" ? (message.toolCalls ?? []) : [],
    );
    return calls.findLast(({ id }) => id === toolCallId);
  }

  /** Answers a question of the agent; it goes on when all that it asked are answered. */
  async decide(interruptId: string, approved: boolean): Promise<void> {
    this.decisions.set(interruptId, approved);
    const { interrupts } = this.now;
    this.page.changed();
    if (!interrupts.every(({ id }) => this.decisions.has(id))) return;
    const answers = interrupts.map(({ id }) => ({
      interruptId: id,
      status: "resolved" as const,
      payload: { approved: this.decisions.get(id) },
    }));
    await this.#run((agentId) => this.#store.respond(answers, { agentId }));
    this.decisions.clear();
  }

  /** What was sent and waits, without what goes on with a broken run: that is shown where it broke. */
  get queued(): readonly WaitingRun[] {
    return this.now.waiting.filter(({ attempt }) => attempt === undefined);
  }

  /** How the thread's last run goes on after it broke, if its agent's policy says so. */
  get recovery(): RunRecovery | undefined {
    const { run } = this.now;
    return run.is === "idle" ? run.last?.recovery : undefined;
  }

  /** Seconds are shown that pass. */
  get isCounting(): boolean {
    return this.recovery?.is === "waiting" || this.now.waiting.some(({ reason }) => reason.is === "retry");
  }

  /** @param before which one it waits then; null: at the end */
  async moveWaiting(runId: string, before: string | null, place: number): Promise<void> {
    await this.page.try(async () => {
      if (await this.#store.moveWaiting(runId, before)) this.page.announce(`Moved to place ${place}`);
    });
  }

  /** Takes a message back: what was written goes back to where it can be changed, if that is empty. */
  async cancelWaiting({ runId, messages }: WaitingRun): Promise<void> {
    const { drafting } = this.page;
    await this.page.try(async () => {
      if (!(await this.#store.cancelWaiting(runId))) return;
      this.page.announce("Message taken back");
      const [message] = messages;
      if (message?.role === "user" && drafting.isEmpty) {
        const files = typeof message.content === "string" ? [] : message.content.map(fileRefOf);
        drafting.restore(
          textOfQuestion(message),
          files.filter((file) => file !== undefined),
        );
      }
      this.page.focus("composer");
    });
  }

  /** Starts now what waits for a time, or could not start. */
  async retryWaiting(runId: string): Promise<void> {
    await this.page.try(async () => void (await this.#store.retryWaiting(runId)));
    this.page.focus("composer");
  }

  /** Leaves a broken run as it is. */
  async giveUp(runId: string): Promise<void> {
    await this.page.try(async () => void (await this.#store.cancelWaiting(runId)));
    this.page.focus("composer");
  }

  stop(): void {
    this.#store.stop();
    this.page.focus("composer");
  }

  /** Shows the messages before the first one, a page of them. */
  async showEarlier(): Promise<void> {
    if (this.now.earlier !== "more" || this.page.isFailed) return;
    this.earlierFailure = undefined;
    try {
      const page = await this.#store.loadEarlier();
      if (this.#isLeft) return;
      for (const { id } of page) this.#loaded.add(id);
      const beginning = this.now.earlier === "more" ? "" : ". This is the beginning of the thread";
      this.page.announce(`${plural(page.filter(isShown).length, "earlier message")}${beginning}`);
    } catch (error) {
      this.earlierFailure = messageOf(error);
    } finally {
      this.page.changed();
    }
  }

  /** Says what has happened. */
  #tell(was: ThreadSnapshot, now: ThreadSnapshot): void {
    const { page } = this;
    const { run } = now;
    const runWas = was.run;
    if (was.status === "ready" && was.waiting.length < now.waiting.length) {
      const isAttempt = now.waiting[0]?.attempt !== undefined;
      page.announce(isAttempt ? `${page.agent.name} goes on in a moment` : "A message waits for its turn");
    }
    if (run.is === "running") {
      if (runWas.is === "running" && runWas.runId === run.runId) return;
      if (was.status === "ready") this.#seenToBegin = run.runId;
      page.announce(`${page.agent.name} is working`);
      return;
    }
    if (run.gone && !(runWas.is === "idle" && runWas.gone)) {
      page.fail(run.gone.code === "storage-deleted" ? ALL_DELETED : THREAD_DELETED);
    }
    const isNews = runWas.is === "running" || (was.status === "ready" && runWas.last?.runId !== run.last?.runId);
    if (!run.last || !isNews) return;
    // That the thread is busy is over.
    if (page.notice?.kind === "note") page.notice = undefined;
    page.announce(now.interrupts.length > 0 ? `${page.agent.name} asks for permission` : ENDED[run.last.status]);
  }

  /** Starts a run of the thread's agent, and says why it could not begin. */
  async #run(start: (agentId: string) => Promise<string>, may = this.isFree): Promise<void> {
    const { page } = this;
    if (!may) return;
    page.notice = undefined;
    page.focus("composer");
    try {
      ownRuns.add(await start(page.agentId));
      const question = this.now.messages.findLast(({ role }) => role === "user");
      if (question) ownQuestions.add(question.id);
    } catch (error) {
      if (this.#isLeft) return;
      if (RunnerError.is(error, "thread-busy")) page.notice = { kind: "note", text: BUSY };
      else page.fail(RunnerError.is(error, "quota-exceeded") ? NO_ROOM : messageOf(error));
    } finally {
      page.changed();
    }
  }
}

const BUSY =
  "This thread is busy in another tab. Nothing was sent: your message is still here. Wait for the run to end, or stop it.";
const NO_ROOM =
  "The browser has no room left for this page. What you see and what you typed is kept. Free some space to go on.";
const ALL_DELETED =
  "What this page had stored was deleted, and all threads with it: by hand, by another page of this site, or by the " +
  "browser. What you send now starts a new thread.";
const THREAD_DELETED = "This thread was deleted in another tab. What you send now starts it again.";

const ENDED: Record<SettledStatus, string> = {
  finished: "Answer complete",
  stopped: "Stopped",
  superseded: "Replaced by a later run",
  errored: "The run failed",
  broken: "The run was interrupted",
};
