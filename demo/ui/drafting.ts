import type { RuntimeConnection, ThreadSnapshot } from "ag-ui-local-runtime/client";
import type { FileRef } from "../documents/files.js";
import type { Intake } from "./attach.js";
import { type Draft, EMPTY_DRAFT, isEmptyDraft, loadDraft, saveDraft, withoutSent } from "./drafts.js";
import { type Feedback, messageOf } from "./feedback.js";

/** What is typed and attached in the shown thread, until the thread has it. */
export class Drafting {
  draft: Draft = EMPTY_DRAFT;
  /** Files being read. */
  attaching = 0;
  #threadId = "";
  /** The message that was sought among those that are not shown. */
  #sought: string | undefined;

  constructor(private readonly page: Feedback) {}

  get isEmpty(): boolean {
    return this.attaching === 0 && isEmptyDraft(this.draft);
  }

  get isReady(): boolean {
    return this.attaching === 0 && !isEmptyDraft(this.draft);
  }

  open(threadId: string): void {
    this.#threadId = threadId;
    this.#sought = undefined;
    this.draft = loadDraft(threadId);
  }

  type(text: string): void {
    this.#set({ ...this.draft, text });
  }

  /** What was taken back after it was sent. */
  restore(text: string, files: readonly FileRef[]): void {
    this.#set({ text, files });
  }

  detach(fileId: string): void {
    const file = this.draft.files.find(({ id }) => id === fileId);
    this.#set({ ...this.draft, files: this.draft.files.filter(({ id }) => id !== fileId) });
    if (file) this.page.announce(`Removed ${file.name}`);
  }

  async attach(taking: Promise<Intake>): Promise<void> {
    const threadId = this.#threadId;
    this.attaching++;
    this.page.changed();
    try {
      const { refs, refusals } = await taking;
      const here = threadId === this.#threadId;
      const draft = here ? this.draft : loadDraft(threadId);
      const fresh = refs.filter((ref) => !draft.files.some(({ id }) => id === ref.id));
      const next = { ...draft, files: [...draft.files, ...fresh] };
      if (here) this.#set(next);
      else saveDraft(threadId, next);
      if (fresh.length > 0) this.page.announce(`Attached ${fresh.map(({ name }) => name).join(", ")}`);
      if (refusals.length > 0) this.page.fail(refusals.join(" "));
    } catch (error) {
      this.page.fail(messageOf(error));
    } finally {
      this.attaching--;
      this.page.changed();
    }
  }

  /** It is sent as this message. Kept until the thread has that, also by a reload or a look at another thread. */
  sent(messageId: string): void {
    const { draft } = this;
    this.#set({ ...draft, sent: { messageId, text: draft.text, fileIds: draft.files.map(({ id }) => id) } });
  }

  /** Drops what the thread has. */
  clearSent(runtime: RuntimeConnection, { messages, waiting, isSending, earlier }: ThreadSnapshot): void {
    const { messageId } = this.draft.sent ?? {};
    if (messageId === undefined || isSending) return;
    const isThere = [messages, ...waiting.map((run) => run.messages)].some((list) =>
      list.some(({ id }) => id === messageId),
    );
    if (isThere) this.#set(withoutSent(this.draft));
    else if (earlier !== "none" && this.#sought !== messageId) {
      this.#sought = messageId;
      void this.#clearIfEarlier(runtime, messageId);
    }
  }

  /** Sent before this page was loaded, and so long ago that the message is not among those that are shown. */
  async #clearIfEarlier(runtime: RuntimeConnection, messageId: string): Promise<void> {
    // What stands before a message can only be asked where the thread has it. Where the host cannot tell, the draft is
    // kept: a text too many is better than one that is lost.
    const isThere = await runtime.threads.messages(this.#threadId, { before: messageId, limit: 1 }).then(
      () => true,
      () => false,
    );
    if (isThere && this.draft.sent?.messageId === messageId) this.#set(withoutSent(this.draft));
  }

  #set(draft: Draft): void {
    this.draft = draft;
    saveDraft(this.#threadId, draft);
    this.page.changed();
  }
}
