import type { RuntimeConnection, RuntimeStatus, ThreadSummary } from "ag-ui-local-runtime/client";
import type { Subscription } from "rxjs";
import { endHost } from "../end-host.js";
import { BROWSER } from "../model/choice.js";
import type { TextFile } from "../documents/intake.js";
import { type AgentView, agentView, isModel } from "./agents.js";
import { takeFiles, takeText } from "./attach.js";
import { BrowserModel } from "./browser-model.js";
import { Chat } from "./chat.js";
import { Deletions } from "./deletions.js";
import { Drafting } from "./drafting.js";
import { Feedback, messageOf } from "./feedback.js";
import { plural } from "./format.js";
import { ModelSettings } from "./model-settings.js";
import { pageTools } from "./page-tools.js";
import { agentInUrl, threadInUrl, threadUrl } from "./route.js";
import { keepStorage, storageUse, type StorageUse } from "./storage.js";
import { ThreadActions } from "./thread-actions.js";
import { Threads, titleOf } from "./threads.js";

/** What lies over the page and waits for an answer. */
export type Dialog =
  { readonly is: "shortcuts" } | { readonly is: "model" } | { readonly is: "rename"; readonly thread: ThreadSummary };

/** What the page knows and does. The screen renders it; it knows nothing of elements. */
export class App extends Feedback {
  status: RuntimeStatus = { is: "connecting" };
  online = navigator.onLine;
  storage: StorageUse | undefined;
  dropping = false;
  dialog: Dialog | undefined;
  threadsOpen = false;
  /** undefined: as the width of the page suggests. */
  panelOpen: boolean | undefined;
  /** The address of the second tab that is shown in this one. */
  second: string | undefined;
  /** This page is such a second tab. */
  readonly isSecond = window !== window.top;
  readonly drafting = new Drafting(this);
  readonly model = new ModelSettings(this);
  readonly browserModel = new BrowserModel(this);
  readonly tools = pageTools(() => this.changed());
  threads!: Threads;
  actions!: ThreadActions;
  deletions!: Deletions;
  /** The thread on show. */
  chat!: Chat;

  #runtime!: RuntimeConnection;
  #statusSubscription: Subscription | undefined;

  /** @param connect given the headers of each call */
  constructor(private readonly connect: (headers: () => Record<string, string>) => RuntimeConnection) {
    super();
  }

  start(): void {
    const threadId = threadInUrl() ?? crypto.randomUUID();
    // The thread is in the address at once, so that a copy of the address shows the same thread.
    history.replaceState(null, "", threadUrl(threadId, agentView(agentInUrl()).id));
    this.#open(threadId);
    addEventListener("popstate", () => {
      const id = threadInUrl() ?? crypto.randomUUID();
      if (id !== this.chat.now.threadId) this.#show(id);
    });
    for (const type of ["online", "offline"]) {
      addEventListener(type, () => {
        this.online = navigator.onLine;
        this.announce(
          this.online
            ? "Online again"
            : this.needsNetwork
              ? "Offline. What you send waits for the network"
              : "Offline. The agents run in this browser, so everything still works",
        );
      });
    }
    setInterval(() => this.changed(), 30_000);
    setInterval(() => this.chat.isCounting && this.changed(), 1_000);
  }

  /** The current thread, whether a list has it yet or not. */
  get thread(): ThreadSummary | undefined {
    return this.threads.get(this.chat.now.threadId);
  }

  /** Who answers in the current thread: who has answered before, else whom the person chose. */
  get agent(): AgentView {
    return agentView(this.thread?.agentId ?? agentInUrl());
  }

  /** For a thread in which nobody has answered yet. */
  chooseAgent(id: string): void {
    history.replaceState(null, "", threadUrl(this.chat.now.threadId, agentView(id).id));
    this.announce(`${this.agent.name} will answer`);
  }

  /** The id under which the current agent is asked. */
  get agentId(): string {
    return isModel(this.agent.id) ? this.model.agentId : this.agent.id;
  }

  /** Whether who answers is not of this computer. */
  get needsNetwork(): boolean {
    return this.agentId === "model-remote";
  }

  /** Whose server is sent what the current agent is asked; undefined: it stays on this computer. */
  get recipient(): string | undefined {
    return this.needsNetwork ? (URL.parse(this.model.choice.address)?.host ?? "its server") : undefined;
  }

  chooseModel(): void {
    this.#offerBrowserModel();
    this.model.begin();
    this.open({ is: "model" });
  }

  get title(): string {
    // A thread too old for the list that was read.
    if (!this.thread && this.chat.now.messages.length > 0) return "Older thread";
    return titleOf(this.thread);
  }

  /** Whether the thread may have messages that have not come yet. */
  get isLoading(): boolean {
    if (this.chat.now.messages.length > 0 || this.isFailed) return false;
    return (this.thread?.runCount ?? 0) > 0;
  }

  get isFailed(): boolean {
    return this.status.is === "failed" || this.status.is === "closed";
  }

  openThread(threadId: string): void {
    this.threadsOpen = false;
    if (threadId !== this.chat.now.threadId) {
      history.pushState(null, "", threadUrl(threadId, this.threads.get(threadId)?.agentId));
      this.#show(threadId);
      this.announce(`Thread opened: ${this.title}`);
    }
    this.focus("conversation");
  }

  newThread(): void {
    this.threadsOpen = false;
    // What is being sent is no part of the thread yet.
    if (this.chat.now.messages.length > 0 || this.chat.isRunning || this.thread || this.drafting.draft.sent) {
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

  /** Ends the worker that runs the agents, as a crash would. */
  endHost(): void {
    endHost();
    this.announce("The worker was ended. The next one is starting");
  }

  /** Shows the same thread a second time, in a frame that is a tab of its own to the runtime; or ends that. */
  toggleSecond(): void {
    const { threadId } = this.chat.now;
    // What differs from this page's address is forgotten at once by the page in the frame.
    this.second = this.second === undefined ? `${threadUrl(threadId, this.agent.id)}&tab=2` : undefined;
    if (this.second !== undefined) this.panelOpen = false;
    this.focus("second-toggle");
    this.announce(this.second === undefined ? "Second tab closed" : "Second tab opened beside this one");
  }

  async copy(text: string): Promise<void> {
    await this.try(async () => {
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

  /** Another thread takes its place at once; it is gone when that can no longer be undone. */
  delete(thread: ThreadSummary): void {
    const isOnShow = thread.threadId === this.chat.now.threadId;
    const instead = isOnShow ? crypto.randomUUID() : undefined;
    this.deletions.add({ thread, instead });
    if (instead === undefined) return;
    history.replaceState(null, "", threadUrl(instead, this.agent.id));
    this.#show(instead);
  }

  /** Of the last one that waits. */
  undoDelete(): void {
    const last = this.deletions.waiting.at(-1);
    if (!last) return;
    this.deletions.undo(last);
    this.announce(`${titleOf(last.thread)} is back`);
    // Whoever has gone elsewhere meanwhile stays there.
    if (last.instead === this.chat.now.threadId) this.openThread(last.thread.threadId);
  }

  async search(query: string): Promise<void> {
    await this.try(() => this.threads.search(query));
    if (query === this.threads.query && query.trim() !== "") this.announce(plural(this.threads.shown.length, "thread"));
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
    const { threadId } = this.chat.now;
    this.#statusSubscription?.unsubscribe();
    this.deletions.close();
    this.threads.close();
    this.chat.leave();
    old.close().catch(() => undefined);
    this.#open(threadId);
  }

  #open(threadId: string): void {
    this.status = { is: "connecting" };
    this.#runtime = this.connect(this.model.headers);
    if (this.model.choice.address === BROWSER) this.#offerBrowserModel();
    this.threads = new Threads(this.#runtime, () => this.changed());
    this.actions = new ThreadActions(this, this.#runtime);
    this.deletions = new Deletions(this, this.#runtime, this.threads);
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

  #offerBrowserModel(): void {
    // Not known to the page until somebody wants it: browsers look for it then.
    this.browserModel.offer(this.#runtime).catch((error: unknown) => this.fail(messageOf(error)));
  }

  #show(threadId: string): void {
    // There is none at first.
    this.chat?.leave();
    // Whoever goes back to a thread wants to have it.
    const deletion = this.deletions.waiting.find(({ thread }) => thread.threadId === threadId);
    if (deletion) this.deletions.undo(deletion);
    this.notice = undefined;
    this.drafting.open(threadId);
    this.chat = new Chat(this, this.#runtime, threadId);
    this.chat.follow();
    this.changed();
  }
}
