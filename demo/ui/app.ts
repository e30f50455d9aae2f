import type { Message } from "@ag-ui/client";
import {
  RunnerError,
  type RuntimeConnection,
  type RuntimeStatus,
  type SettledStatus,
  ThreadStore,
  type ThreadSnapshot,
  type ThreadSummary,
} from "ag-ui-local-runtime/client";
import type { Subscription } from "rxjs";
import { endHost } from "../end-host.js";
import type { TextFile } from "../reader/intake.js";
import { fileMessage } from "../reader/message.js";
import { type AgentView, agentView, type Starter } from "./agents.js";
import { takeFiles, takeText } from "./attach.js";
import { Drafting } from "./drafting.js";
import { type Editing, editedContent, editingOf } from "./editing.js";
import { plural } from "./format.js";
import { agentInUrl, threadInUrl, threadUrl } from "./route.js";
import { fetchSample } from "./samples.js";
import { isShown } from "./shown.js";
import { keepStorage, storageUse, type StorageUse } from "./storage.js";
import { allMessages, download, fileNameOf, threadMarkdown } from "./thread-markdown.js";
import { Threads, titleOf } from "./threads.js";

/** Something that the person should read; `failure` in the colours of one. */
export interface Notice {
  readonly kind: "note" | "failure";
  readonly text: string;
}

/** What the screen shall do once, after the next render. */
export type Focus =
  | "composer"
  | "conversation"
  | "stop"
  | "panel"
  | "threads"
  | "search"
  | "edit"
  | "panel-toggle"
  | "threads-toggle"
  | "second-toggle";

/** What lies over the page and waits for an answer. */
export type Dialog =
  { readonly is: "shortcuts" } | { readonly is: "rename" | "delete"; readonly thread: ThreadSummary };

/** So many of a thread's messages come at a time: the newest when it is opened, earlier ones where they are wanted. */
const PAGE = 30;

/** What the page knows and does. The screen renders it; it knows nothing of elements. */
export class App {
  status: RuntimeStatus = { is: "connecting" };
  online = navigator.onLine;
  storage: StorageUse | undefined;
  notice: Notice | undefined;
  /** For screen readers: one thing that just happened. */
  announcement = "";
  dropping = false;
  dialog: Dialog | undefined;
  /** The question that is being changed. */
  editing: Editing | undefined;
  /** Why the last page of earlier messages did not come. */
  earlierFailure: string | undefined;
  threadsOpen = false;
  /** undefined: as the width of the page suggests. */
  panelOpen: boolean | undefined;
  /** The address of the second tab that is shown in this one. */
  second: string | undefined;
  /** This page is such a second tab. */
  readonly isSecond = window !== window.top;
  readonly drafting = new Drafting({
    changed: () => this.changed(),
    announce: (text) => this.announce(text),
    failed: (text) => this.#fail(text),
  });

  /** Set by the screen. */
  changed: () => void = () => undefined;
  focus: (target: Focus) => void = () => undefined;

  #runtime!: RuntimeConnection;
  #threads!: Threads;
  #store!: ThreadStore;
  #leave = (): void => undefined;
  #statusSubscription: Subscription | undefined;
  /** Ids of the messages that were loaded as earlier ones. */
  #loaded = new Set<string>();
  /** The runs that this tab started since it was loaded. */
  readonly #ownRuns = new Set<string>();
  /** The last run that began while this tab looked on. */
  #seenToBegin: string | undefined;

  constructor(private readonly connect: () => RuntimeConnection) {}

  get threads(): Threads {
    return this.#threads;
  }

  /** The thread as it is shown now. */
  get now(): ThreadSnapshot {
    return this.#store.getSnapshot();
  }

  start(): void {
    const threadId = threadInUrl() ?? crypto.randomUUID();
    // The thread is in the address at once, so that a copy of the address shows the same thread.
    history.replaceState(null, "", threadUrl(threadId, agentView(agentInUrl()).id));
    this.#open(threadId);
    addEventListener("popstate", () => {
      const id = threadInUrl() ?? crypto.randomUUID();
      if (id !== this.now.threadId) this.#show(id);
    });
    for (const type of ["online", "offline"]) {
      addEventListener(type, () => {
        this.online = navigator.onLine;
        this.announce(
          this.online ? "Online again" : "Offline. The agents run in this browser, so everything still works",
        );
      });
    }
    setInterval(() => this.changed(), 30_000);
  }

  /** The current thread, whether a list has it yet or not. */
  get thread(): ThreadSummary | undefined {
    return this.threads.get(this.now.threadId);
  }

  /** Who answers in the current thread: who has answered before, else whom the person chose. */
  get agent(): AgentView {
    return agentView(this.thread?.agentId ?? agentInUrl());
  }

  /** For a thread in which nobody has answered yet. */
  chooseAgent(id: string): void {
    history.replaceState(null, "", threadUrl(this.now.threadId, agentView(id).id));
    this.announce(`${this.agent.name} will answer`);
  }

  get title(): string {
    // A thread too old for the list that was read.
    if (!this.thread && this.now.messages.length > 0) return "Older thread";
    return titleOf(this.thread);
  }

  get isRunning(): boolean {
    return this.now.run.is === "running";
  }

  /** The live run began while this tab looked on, and not here: so another tab started it. */
  get isElsewhere(): boolean {
    const { run } = this.now;
    return run.is === "running" && run.runId === this.#seenToBegin && !this.#ownRuns.has(run.runId);
  }

  /** Whether the thread may have messages that have not come yet. */
  get isLoading(): boolean {
    if (this.now.messages.length > 0 || this.isFailed) return false;
    return (this.thread?.runCount ?? 0) > 0;
  }

  get isFailed(): boolean {
    return this.status.is === "failed" || this.status.is === "closed";
  }

  /** Whether a run can begin now. */
  get isFree(): boolean {
    return !this.isRunning && !this.now.isSending && !this.isFailed;
  }

  get maySend(): boolean {
    return this.isFree && this.drafting.isReady;
  }

  /** Whether the message came as an earlier one: nothing that has just happened. */
  isLoaded(messageId: string): boolean {
    return this.#loaded.has(messageId);
  }

  openThread(threadId: string): void {
    this.threadsOpen = false;
    if (threadId !== this.now.threadId) {
      history.pushState(null, "", threadUrl(threadId, this.threads.get(threadId)?.agentId));
      this.#show(threadId);
      this.announce(`Thread opened: ${this.title}`);
    }
    this.focus("conversation");
  }

  newThread(): void {
    this.threadsOpen = false;
    // What is being sent is no part of the thread yet.
    if (this.now.messages.length > 0 || this.isRunning || this.thread || this.drafting.draft.sent) {
      const threadId = crypto.randomUUID();
      history.pushState(null, "", threadUrl(threadId, this.agent.id));
      this.#show(threadId);
      this.announce("New thread");
    }
    this.focus("composer");
  }

  attachFiles(files: readonly File[]): Promise<void> {
    this.notice = undefined;
    return this.drafting.attach(takeFiles(files));
  }

  attachText(file: TextFile): Promise<void> {
    this.notice = undefined;
    return this.drafting.attach(takeText(file));
  }

  /** Sends something to begin with, and leaves what is typed as it is. */
  async begin({ question = "", sample }: Starter): Promise<void> {
    if (!this.isFree) return;
    const { threadId } = this.now;
    await this.#try(async () => {
      const { refs, refusals } = await takeFiles(sample === undefined ? [] : [await fetchSample(sample)]);
      if (refusals.length > 0) throw new Error(refusals.join(" "));
      if (threadId !== this.now.threadId) return;
      await this.#run((store, agentId) =>
        store.send(refs.length > 0 ? fileMessage(question, refs) : question, { agentId }),
      );
    });
  }

  async send(): Promise<void> {
    if (!this.maySend) return;
    const { text, files } = this.drafting.draft;
    const content = files.length > 0 ? fileMessage(text.trim(), files) : text.trim();
    const messageId = crypto.randomUUID();
    this.drafting.sent(messageId);
    await this.#run((store, agentId) => store.send(content, { agentId, messageId }));
  }

  /** After a run that did not finish: see {@link AgentView.again}. */
  async again(): Promise<void> {
    const { again } = this.agent;
    await this.#run((store, agentId) =>
      again === "continue" ? store.send("Continue", { agentId }) : store.retry({ agentId }),
    );
  }

  async regenerate(messageId: string): Promise<void> {
    await this.#run((store, agentId) => store.regenerate(messageId, { agentId }));
  }

  /** Opens a question for changes; without an id the last one. */
  edit(messageId?: string): void {
    if (!this.isFree) return;
    const message = this.now.messages.findLast(
      (it) => it.role === "user" && (messageId === undefined || it.id === messageId),
    );
    this.editing = editingOf(message);
    if (this.editing) this.focus("edit");
    this.changed();
  }

  async sendEdited(): Promise<void> {
    const { editing } = this;
    const content = editing && editedContent(editing);
    if (!editing || content === undefined) return;
    await this.#run(async (store, agentId) => {
      const runId = await store.edit(editing.message.id, content, { agentId });
      this.editing = undefined;
      return runId;
    });
  }

  cancelEdit(): void {
    this.editing = undefined;
    this.focus("composer");
    this.changed();
  }

  stop(): void {
    this.#store.stop();
    this.focus("composer");
  }

  /** Ends the worker that runs the agents, as a crash would. */
  endHost(): void {
    endHost();
    this.announce("The worker was ended. The next one is starting");
  }

  /** Shows the same thread a second time, in a frame that is a tab of its own to the runtime; or ends that. */
  toggleSecond(): void {
    const { threadId } = this.now;
    // What differs from this page's address is forgotten at once by the page in the frame.
    this.second = this.second === undefined ? `${threadUrl(threadId, this.agent.id)}&tab=2` : undefined;
    if (this.second !== undefined) this.panelOpen = false;
    this.focus("second-toggle");
    this.announce(this.second === undefined ? "Second tab closed" : "Second tab opened beside this one");
  }

  /** Shows the messages before the first one, a page of them. */
  async showEarlier(): Promise<void> {
    const store = this.#store;
    if (this.now.earlier !== "more" || this.isFailed) return;
    this.earlierFailure = undefined;
    try {
      const page = await store.loadEarlier();
      if (store !== this.#store) return;
      for (const { id } of page) this.#loaded.add(id);
      const beginning = this.now.earlier === "more" ? "" : ". This is the beginning of the thread";
      this.announce(`${plural(page.filter(isShown).length, "earlier message")}${beginning}`);
    } catch (error) {
      if (store === this.#store) this.earlierFailure = messageOf(error);
    } finally {
      this.changed();
    }
  }

  async copy(text: string): Promise<void> {
    await this.#try(async () => {
      await navigator.clipboard.writeText(text);
      this.announce("Copied");
    });
  }

  open(dialog: Dialog): void {
    this.dialog = dialog;
    this.changed();
  }

  closeDialog(): void {
    this.dialog = undefined;
    this.changed();
  }

  rename({ threadId }: ThreadSummary, title: string): Promise<void> {
    return this.#try(async () => {
      await this.#runtime.threads.rename(threadId, title);
      this.announce(`Renamed to ${title}`);
    });
  }

  pin({ threadId, pinned }: ThreadSummary): Promise<void> {
    return this.#try(async () => {
      await this.#runtime.threads.pin(threadId, !pinned);
      this.announce(pinned ? "Thread unpinned" : "Thread pinned");
    });
  }

  archive({ threadId, archived }: ThreadSummary): Promise<void> {
    return this.#try(async () => {
      await this.#runtime.threads.archive(threadId, !archived);
      this.announce(archived ? "Thread restored" : "Thread archived");
    });
  }

  async delete({ threadId }: ThreadSummary): Promise<void> {
    // So that this tab does not say that somebody deleted it.
    if (threadId === this.now.threadId) {
      const next = crypto.randomUUID();
      history.replaceState(null, "", threadUrl(next, this.agent.id));
      this.#show(next);
    }
    await this.#try(async () => {
      await this.#runtime.threads.delete(threadId);
      this.announce("Thread deleted");
    });
  }

  exportThread(thread: ThreadSummary): Promise<void> {
    return this.#try(async () => {
      const title = titleOf(thread);
      const messages: readonly Message[] = await allMessages(this.#runtime, thread.threadId);
      download(fileNameOf(title), threadMarkdown(title, agentView(thread.agentId).name, messages));
      this.announce("Thread exported");
    });
  }

  async search(query: string): Promise<void> {
    await this.#try(() => this.threads.search(query));
    if (query.trim() !== "") this.announce(plural(this.threads.shown.length, "thread"));
    this.changed();
  }

  showArchived(archived: boolean): void {
    this.threads.archived = archived;
    this.announce(archived ? "Archived threads" : "Threads");
  }

  /** Finds out how much is stored. */
  async measureStorage(): Promise<void> {
    this.storage = await storageUse().catch(() => undefined);
    this.changed();
  }

  async keepStorage(): Promise<void> {
    const isKept = await keepStorage().catch(() => false);
    this.announce(isKept ? "The browser keeps your threads" : "The browser did not agree");
    await this.measureStorage();
  }

  /** After a failed connection. */
  retry(): void {
    const code = this.status.is === "failed" ? this.status.error.code : undefined;
    if (code === "protocol-mismatch" || code === "outdated") {
      // Only a newer page helps. The draft survives it.
      location.reload();
      return;
    }
    const old = this.#runtime;
    const { threadId } = this.now;
    this.#statusSubscription?.unsubscribe();
    this.threads.close();
    this.#leave();
    old.close().catch(() => undefined);
    this.notice = undefined;
    this.#open(threadId);
  }

  dismiss(): void {
    this.notice = undefined;
    this.changed();
  }

  announce(text: string): void {
    // The same words twice are news as well.
    this.announcement = this.announcement === text ? `${text}\u00a0` : text;
    this.changed();
  }

  #open(threadId: string): void {
    this.status = { is: "connecting" };
    this.#runtime = this.connect();
    this.#threads = new Threads(this.#runtime, () => this.changed());
    this.#show(threadId);
    this.#statusSubscription = this.#runtime.status$.subscribe((status) => {
      const was = this.status;
      this.status = status;
      if (status.is === "reconnecting" && was.is === "connected")
        this.announce("The worker ended. The next one is starting");
      if (status.is === "connected" && was.is === "reconnecting") this.announce("Connected again");
      if (status.is === "failed") this.announce(`No worker: ${status.error.message}`);
      this.changed();
    });
  }

  #show(threadId: string): void {
    this.#leave();
    this.#loaded = new Set();
    this.notice = this.editing = this.earlierFailure = undefined;
    this.drafting.open(threadId);
    this.#store = new ThreadStore(this.#runtime, { threadId, agentId: agentView(undefined).id, messageLimit: PAGE });
    let was = this.now;
    this.#leave = this.#store.subscribe(() => {
      const before = was;
      was = this.now;
      this.#tell(before, was);
      this.drafting.clearSent(this.#runtime, was);
      this.changed();
    });
    this.changed();
  }

  /** Says what has happened in the shown thread. */
  #tell(was: ThreadSnapshot, { run }: ThreadSnapshot): void {
    const runWas = was.run;
    if (run.is === "running") {
      if (runWas.is === "running" && runWas.runId === run.runId) return;
      if (was.status === "ready") this.#seenToBegin = run.runId;
      this.announce(`${this.agent.name} is working`);
      return;
    }
    if (run.gone && !(runWas.is === "idle" && runWas.gone)) {
      this.notice = { kind: "failure", text: run.gone.code === "storage-deleted" ? ALL_DELETED : THREAD_DELETED };
    }
    const isNews = runWas.is === "running" || (was.status === "ready" && runWas.last?.runId !== run.last?.runId);
    if (!run.last || !isNews) return;
    // That the thread is busy is over.
    if (this.notice?.kind === "note") this.notice = undefined;
    this.announce(ENDED[run.last.status]);
  }

  /** Starts a run of the thread's agent in the shown thread, and says why it could not begin. */
  async #run(start: (store: ThreadStore, agentId: string) => Promise<string>): Promise<void> {
    const store = this.#store;
    if (!this.isFree) return;
    this.notice = undefined;
    this.focus("composer");
    try {
      this.#ownRuns.add(await start(store, this.agent.id));
    } catch (error) {
      if (store !== this.#store) return;
      if (RunnerError.is(error, "thread-busy")) this.notice = { kind: "note", text: BUSY };
      else this.#fail(RunnerError.is(error, "quota-exceeded") ? NO_ROOM : messageOf(error));
    } finally {
      this.changed();
    }
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#fail(messageOf(error));
    }
  }

  #fail(text: string): void {
    this.notice = { kind: "failure", text };
    this.changed();
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

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
