import {
  RunnerError,
  type RuntimeConnection,
  type RuntimeStatus,
  type SettledStatus,
  type ThreadSummary,
} from "ag-ui-local-runtime/client";
import type { Subscription } from "rxjs";
import { fileMessage } from "../reader/message.js";
import type { TextFile } from "../reader/intake.js";

import { type AgentView, agentView } from "./agents.js";
import { type Intake, takeFiles, takeText } from "./attach.js";
import { type Draft, EMPTY_DRAFT, isEmptyDraft, loadDraft, saveDraft, withoutSent } from "./drafts.js";
import { plural } from "./format.js";
import { agentInUrl, threadInUrl, threadUrl } from "./route.js";
import { fetchSample, type Sample } from "./samples.js";
import { ThreadIndex } from "./thread-index.js";
import { isShown } from "./shown.js";
import { ThreadSession } from "./thread-session.js";

/** Something that the person should read; `failure` in the colours of one. */
export interface Notice {
  readonly kind: "note" | "failure";
  readonly text: string;
}

/** What the screen shall do once, after the next render. */
export type Focus = "composer" | "conversation" | "stop" | "panel" | "threads" | "panel-toggle" | "threads-toggle";

/** What the page knows and does. The screen renders it; it knows nothing of elements. */
export class App {
  status: RuntimeStatus = { is: "connecting" };
  notice: Notice | undefined;
  /** For screen readers: one thing that just happened. */
  announcement = "";
  draft: Draft = EMPTY_DRAFT;
  /** Files being read. */
  attaching = 0;
  dropping = false;
  threadsOpen = false;
  /** undefined: as the width of the page suggests. */
  panelOpen: boolean | undefined;

  /** Set by the screen. */
  changed: () => void = () => undefined;
  focus: (target: Focus) => void = () => undefined;

  #runtime!: RuntimeConnection;
  #threads!: ThreadIndex;
  #session!: ThreadSession;
  #statusSubscription: Subscription | undefined;
  /** The session in which a message was sought that had been sent before. */
  #sought: ThreadSession | undefined;
  /** The runs that this tab started since it was loaded. */
  readonly #ownRuns = new Set<string>();

  constructor(private readonly connect: () => RuntimeConnection) {}

  get threads(): ThreadIndex {
    return this.#threads;
  }

  get session(): ThreadSession {
    return this.#session;
  }

  start(): void {
    const threadId = threadInUrl() ?? crypto.randomUUID();
    // The thread is in the address at once, so that a copy of the address shows the same thread.
    history.replaceState(null, "", threadUrl(threadId, agentView(agentInUrl()).id));
    this.#open(threadId);
    addEventListener("popstate", () => {
      const id = threadInUrl() ?? crypto.randomUUID();
      if (id !== this.session.threadId) this.#show(id);
    });
    setInterval(() => this.changed(), 30_000);
  }

  /** The current thread, whether the list has it yet or not. */
  get thread(): ThreadSummary | undefined {
    return this.threads.get(this.session.threadId);
  }

  /** Who answers in the current thread: who has answered before, else whom the person chose. */
  get agent(): AgentView {
    return agentView(this.thread?.agentId ?? agentInUrl());
  }

  /** For a thread in which nobody has answered yet. */
  chooseAgent(id: string): void {
    history.replaceState(null, "", threadUrl(this.session.threadId, agentView(id).id));
    this.announce(`${this.agent.name} will answer`);
  }

  get title(): string {
    // A thread too old for the list that was read.
    if (!this.thread && this.session.agent.messages.length > 0) return "Older thread";
    return titleOf(this.thread);
  }

  get isRunning(): boolean {
    return this.session.run.is === "running";
  }

  /** Whether the thread may have messages that have not come yet. */
  get isLoading(): boolean {
    if (this.session.agent.messages.length > 0 || this.isFailed) return false;
    return (this.thread?.runCount ?? 0) > 0;
  }

  get isFailed(): boolean {
    return this.status.is === "failed" || this.status.is === "closed";
  }

  get maySend(): boolean {
    return (
      !this.isRunning && !this.session.sending && !this.isFailed && this.attaching === 0 && !isEmptyDraft(this.draft)
    );
  }

  openThread(threadId: string): void {
    this.threadsOpen = false;
    if (threadId !== this.session.threadId) {
      history.pushState(null, "", threadUrl(threadId, this.threads.get(threadId)?.agentId));
      this.#show(threadId);
      this.announce(`Thread opened: ${this.title}`);
    }
    this.focus("conversation");
  }

  newThread(): void {
    this.threadsOpen = false;
    if (this.session.agent.messages.length > 0 || this.isRunning || this.thread) {
      const threadId = crypto.randomUUID();
      history.pushState(null, "", threadUrl(threadId, this.agent.id));
      this.#show(threadId);
      this.announce("New thread");
    }
    this.focus("composer");
  }

  type(text: string): void {
    this.#setDraft({ ...this.draft, text });
  }

  detach(fileId: string): void {
    const file = this.draft.files.find(({ id }) => id === fileId);
    this.#setDraft({ ...this.draft, files: this.draft.files.filter(({ id }) => id !== fileId) });
    if (file) this.announce(`Removed ${file.name}`);
    this.focus("composer");
  }

  attachFiles(files: readonly File[]): Promise<void> {
    return this.#attach(() => takeFiles(files));
  }

  attachText(file: TextFile): Promise<void> {
    return this.#attach(() => takeText(file));
  }

  async attachSample(sample: Sample): Promise<void> {
    await this.#attach(async () => {
      try {
        return await takeFiles([await fetchSample(sample)]);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        return { refs: [], refusals: [`“${sample.name}” could not be fetched from the demo's server.`] };
      }
    });
    this.focus("composer");
  }

  async send(): Promise<void> {
    if (!this.maySend) return;
    const { session, draft } = this;
    const text = draft.text.trim();
    const messageId = crypto.randomUUID();
    this.notice = undefined;
    this.focus("composer");
    // Kept until the thread has the message, also by a reload or a look at another thread in between.
    this.#setDraft({ ...draft, sent: { messageId, text: draft.text, fileIds: draft.files.map(({ id }) => id) } });
    try {
      const content = draft.files.length > 0 ? fileMessage(text, draft.files) : text;
      await session.send(this.agent.id, content, messageId);
    } catch (error) {
      this.#tellFailure(session, error);
    }
  }

  async again(): Promise<void> {
    const { session } = this;
    if (this.isRunning || session.sending) return;
    this.notice = undefined;
    this.focus("composer");
    try {
      await session.again(this.agent.id);
    } catch (error) {
      this.#tellFailure(session, error);
    }
  }

  stop(): void {
    this.session.stop();
    this.focus("composer");
  }

  /** Shows the messages before the first one, a page of them. */
  async showEarlier(): Promise<void> {
    const { session } = this;
    if (session.earlier.is === "loading" || this.isFailed) return;
    const count = (await session.loadEarlier()).filter(isShown).length;
    if (session !== this.#session || session.earlier.is === "failed") return;
    const beginning = session.agent.hasEarlier ? "" : ". This is the beginning of the thread";
    this.announce(`${plural(count, "earlier message")}${beginning}`);
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
    this.#statusSubscription?.unsubscribe();
    this.threads.close();
    this.session.close();
    old.close().catch(() => undefined);
    this.notice = undefined;
    this.#open(this.session.threadId);
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
    this.#threads = new ThreadIndex(this.#runtime, () => this.changed());
    this.#show(threadId);
    let bootId: string | undefined;
    this.#statusSubscription = this.#runtime.status$.subscribe((status) => {
      const was = this.status;
      this.status = status;
      if (status.is === "connected" && status.bootId !== bootId) {
        bootId = status.bootId;
        void this.threads.read();
      }
      if (status.is === "reconnecting" && was.is === "connected")
        this.announce("The host ended; looking for the next one");
      if (status.is === "failed") this.announce(`No host: ${status.error.message}`);
      this.changed();
    });
  }

  #show(threadId: string): void {
    (this.#session as ThreadSession | undefined)?.close();
    this.draft = loadDraft(threadId);
    this.notice = undefined;
    const session: ThreadSession = new ThreadSession(this.#runtime, threadId, this.#ownRuns, {
      changed: () => {
        if (session === this.#session) this.#clearSent();
        this.changed();
      },
      started: () => session === this.#session && this.announce(`${this.agent.name} is working`),
      ended: (status) => {
        if (session !== this.#session) return;
        // That the thread is busy is over.
        if (this.notice?.kind === "note") this.notice = undefined;
        this.announce(ENDED[status]);
      },
      failed: (error) => this.#tellFailure(session, error),
      gone: (code) => {
        if (session !== this.#session) return;
        this.notice = { kind: "failure", text: code === "storage-deleted" ? ALL_DELETED : THREAD_DELETED };
      },
    });
    this.#session = session;
    session.attach();
    this.changed();
  }

  #clearSent(): void {
    const { draft, session } = this;
    if (!draft.sent || session.sending) return;
    const { messageId } = draft.sent;
    if (session.agent.messages.some(({ id }) => id === messageId)) this.#setDraft(withoutSent(draft));
    else if (session.agent.hasEarlier && this.#sought !== session) {
      this.#sought = session;
      void this.#clearIfEarlier(session, messageId);
    }
  }

  /** Sent before this page was loaded, and so long ago that the message is not among those that are shown. */
  async #clearIfEarlier(session: ThreadSession, messageId: string): Promise<void> {
    // Where the host cannot tell, the draft is kept: a text too many is better than one that is lost.
    const isThere = await session.has(messageId).catch(() => false);
    const { draft } = this;
    if (isThere && session === this.#session && draft.sent?.messageId === messageId) this.#setDraft(withoutSent(draft));
  }

  #setDraft(draft: Draft): void {
    this.draft = draft;
    saveDraft(this.session.threadId, draft);
    this.changed();
  }

  async #attach(take: () => Promise<Intake>): Promise<void> {
    const { threadId } = this.session;
    this.attaching++;
    this.notice = undefined;
    this.changed();
    try {
      const { refs, refusals } = await take();
      const here = threadId === this.session.threadId;
      const draft = here ? this.draft : loadDraft(threadId);
      const fresh = refs.filter((ref) => !draft.files.some(({ id }) => id === ref.id));
      const next = { ...draft, files: [...draft.files, ...fresh] };
      if (here) this.#setDraft(next);
      else saveDraft(threadId, next);
      if (fresh.length > 0) this.announce(`Attached ${fresh.map(({ name }) => name).join(", ")}`);
      if (refusals.length > 0) this.notice = { kind: "failure", text: refusals.join(" ") };
    } catch (error) {
      this.notice = { kind: "failure", text: error instanceof Error ? error.message : String(error) };
    } finally {
      this.attaching--;
      this.changed();
    }
  }

  #tellFailure(session: ThreadSession, error: unknown): void {
    if (session !== this.#session) return;
    this.notice = RunnerError.is(error, "thread-busy")
      ? {
          kind: "note",
          text: "This thread is busy in another tab. Nothing was sent: your message is still here. Wait for the run to end, or stop it.",
        }
      : {
          kind: "failure",
          text: RunnerError.is(error, "quota-exceeded")
            ? "The browser has no room left for this page. What you see and what you typed is kept. Free some space to go on."
            : error instanceof Error
              ? error.message
              : String(error),
        };
    this.changed();
  }
}

const ALL_DELETED =
  "What this page had stored was deleted, and all threads with it: by hand, by another page of this site, or by the " +
  "browser. What you type now begins anew.";
const THREAD_DELETED = "This thread was deleted in another tab. What you type now begins it anew.";

const ENDED: Record<SettledStatus, string> = {
  finished: "Answer complete",
  stopped: "Stopped",
  superseded: "Replaced by a later run",
  errored: "The run failed",
  broken: "This run was interrupted: its host ended",
};

export function titleOf(thread: ThreadSummary | undefined): string {
  const title = thread?.title.trim() ?? "";
  if (title !== "") return title;
  return thread && thread.runCount > 0 ? "Untitled thread" : "Empty thread";
}
