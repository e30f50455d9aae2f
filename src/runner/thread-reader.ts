import type { BaseEvent, Message, State } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { PlacedEvent } from "../run/pack.js";
import type {
  MessagePage,
  MessagePageQuery,
  RunListQuery,
  RunSummary,
  ThreadChange,
  ThreadListQuery,
  ThreadSummary,
} from "../wire/shapes.js";
import { checkId } from "./checks.js";
import type { RunnerEngine } from "./engine.js";
import { here } from "./history/here.js";
import type { RunEventsQuery, RunName, ThreadReads } from "./read/reads.js";
import { listThreads, threadSummary } from "./read/threads.js";

/** The reading side of a runner. */
export abstract class ThreadReader {
  /** @internal */
  protected abstract readonly engine: RunnerEngine;

  /**
   * Resolves when the thread is on this device, if any device has it. Errors: RunnerError `offline` where it cannot come now
   *
   * @internal
   */
  protected here(threadId: string): Promise<void> {
    return here(this.engine.parts, threadId);
  }

  /** Threads, newest first. */
  listThreads(query: ThreadListQuery = {}): Promise<readonly ThreadSummary[]> {
    return listThreads(this.engine.parts.store, query, this.engine.isOver);
  }

  /** A thread as the list shows it, archived or not; undefined for an unknown one. */
  async getThread(threadId: string): Promise<ThreadSummary | undefined> {
    checkId("threadId", threadId);
    return threadSummary(this.engine.parts.store, threadId, this.engine.isOver);
  }

  /** Changes to the list of threads, made by any host, from now on. */
  watchThreads(): Observable<ThreadChange> {
    return this.engine.threadChanges$;
  }

  /** A thread's runs on all branches, newest first. */
  async listRuns(threadId: string, query: RunListQuery = {}): Promise<readonly RunSummary[]> {
    return (await this.readsOf(threadId)).listRuns(threadId, query);
  }

  /**
   * The agents that have run in a thread, on every branch; none for an unknown thread. Undefined where this is not
   * known: limits have cut off its oldest runs, or a run has no agent id.
   */
  async agentIds(threadId: string): Promise<readonly string[] | undefined> {
    checkId("threadId", threadId);
    // Also without the key: by them a middleware decides who may delete a thread that cannot be read.
    await this.here(threadId);
    return (await this.engine.reads.get()).agentIds(threadId);
  }

  /**
   * A run by its id; undefined where there is none.
   *
   * Errors: RunnerError `invalid-input` where several threads have a run of this id and `threadId` names none.
   */
  async getRun(runId: string, name: RunName = {}): Promise<RunSummary | undefined> {
    return (await this.readsOf(name.threadId)).getRun(runId, name);
  }

  /**
   * The committed events of a run with their sequence numbers and arrival times (ms since the Unix epoch), each as
   * recorded; none for an unknown run, or one that a limit cut off. Errors as {@link getRun}.
   */
  async getRunEvents(runId: string, query: RunEventsQuery = {}): Promise<readonly PlacedEvent[]> {
    return (await this.readsOf(query.threadId)).getRunEvents(runId, query);
  }

  /** The messages of the active path, including the live run's so far; none for an unknown thread. */
  async getThreadMessages(threadId: string): Promise<Message[]> {
    return (await this.readsOf(threadId)).getThreadMessages(threadId);
  }

  /**
   * A page of the messages of the active path, including the live run's so far; empty for an unknown thread.
   *
   * @param place `before`: id of the message that the page ends before; absent: the last page. `limit`: default 50, at
   *   most 500. Errors: RunnerError `invalid-input` where the path has no message `before`
   */
  async getMessagePage(threadId: string, place: Omit<MessagePageQuery, "threadId"> = {}): Promise<MessagePage> {
    return (await this.readsOf(threadId)).getMessagePage(threadId, place);
  }

  /** The compacted events of the active path up to now; none for an unknown thread. */
  async getThreadEvents(threadId: string): Promise<BaseEvent[]> {
    return (await this.readsOf(threadId)).getThreadEvents(threadId);
  }

  /** The state of the active path, as the live run has changed it so far; undefined for an unknown thread. */
  async getThreadState(threadId: string): Promise<State | undefined> {
    return (await this.readsOf(threadId)).getThreadState(threadId);
  }

  private async readsOf(threadId: string | undefined): Promise<ThreadReads> {
    if (typeof threadId === "string") await this.here(threadId);
    await this.engine.parts.store.readable?.();
    return this.engine.reads.get();
  }
}
