import type { RuntimeConnection, ThreadSummary } from "ag-ui-local-runtime/client";
import { agentView } from "./agents.js";
import type { Feedback } from "./feedback.js";
import { allMessages, download, fileNameOf, threadMarkdown } from "./thread-markdown.js";
import { titleOf } from "./threads.js";

/** What the person does with a thread as a whole, in all tabs. */
export class ThreadActions {
  constructor(
    private readonly page: Feedback,
    private readonly runtime: RuntimeConnection,
  ) {}

  rename({ threadId }: ThreadSummary, title: string): Promise<void> {
    return this.page.try(async () => {
      await this.runtime.threads.rename(threadId, title);
      this.page.announce(`Renamed to ${title}`);
    });
  }

  pin({ threadId, pinned }: ThreadSummary): Promise<void> {
    return this.page.try(async () => {
      await this.runtime.threads.pin(threadId, !pinned);
      this.page.announce(pinned ? "Thread unpinned" : "Thread pinned");
    });
  }

  archive({ threadId, archived }: ThreadSummary): Promise<void> {
    return this.page.try(async () => {
      await this.runtime.threads.archive(threadId, !archived);
      this.page.announce(archived ? "Thread restored" : "Thread archived");
    });
  }

  export(thread: ThreadSummary): Promise<void> {
    return this.page.try(async () => {
      const title = titleOf(thread);
      const messages = await allMessages(this.runtime, thread.threadId);
      download(fileNameOf(title), threadMarkdown(title, agentView(thread.agentId).name, messages));
      this.page.announce("Thread exported");
    });
  }
}
