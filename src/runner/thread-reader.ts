import type { BaseEvent, Message, State } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { PlacedEvent } from "../run/pack.js";
import type { RunStore } from "../storage/run-store.js";
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
import type { RunEventsQuery, RunName, ThreadReads } from "./read/reads.js";
import { listThreads, threadSummary } from "./read/threads.js";

/** The reading side of a runner. */
export abstract class ThreadReader {
  /** @internal */
  protected abstract readonly store: RunStore;
  /** @internal */
  protected abstract readonly reads: ThreadReads;
  /** @internal */
  protected abstract readonly threadChanges$: Observable<ThreadChange>;
  /**
   * The run is over but still live in the log, because its end cannot be written now.
   *
   * @internal
   */
  protected abstract readonly isOver: (threadId: string, runId: string) => boolean;

  /** Threads, newest first. */
  listThreads(query: ThreadListQuery = {}): Promise<readonly ThreadSummary[]> {
    return listThreads(this.store, query, this.isOver);
  }

  /** A thread as the list shows it, archived or not; undefined for an unknown one. */
  async getThread(threadId: string): Promise<ThreadSummary | undefined> {
    checkId("threadId", threadId);
    return threadSummary(this.store, threadId, this.isOver);
  }

  /** Changes to the list of threads, made by any host, from now on. */
  watchThreads(): Observable<ThreadChange> {
    return this.threadChanges$;
  }

  /** A thread's runs on all branches, newest first. */
  listRuns(threadId: string, query: RunListQuery = {}): Promise<readonly RunSummary[]> {
    return this.reads.listRuns(threadId, query);
  }

  /**
   * The agents that have run in a thread, on every branch; none for an unknown thread. Undefined where this is not
   * known: limits have cut off its oldest runs, or a run has no agent id.
   */
  agentIds(threadId: string): Promise<readonly string[] | undefined> {
    return this.reads.agentIds(threadId);
  }

  /**
   * A run by its id; undefined where there is none.
   *
   * Errors: RunnerError `invalid-input` where several threads have a run of this id and `threadId` names none.
   */
  getRun(runId: string, name: RunName = {}): Promise<RunSummary | undefined> {
    return this.reads.getRun(runId, name);
  }

  /**
   * The committed events of a run with their sequence numbers and arrival times (ms since the Unix epoch), each as
   * recorded; none for an unknown run, or one that a limit cut off. Errors as {@link getRun}.
   */
  getRunEvents(runId: string, query: RunEventsQuery = {}): Promise<readonly PlacedEvent[]> {
    return this.reads.getRunEvents(runId, query);
  }

  /** The messages of the active path, including the live run's so far; none for an unknown thread. */
  getThreadMessages(threadId: string): Promise<Message[]> {
    return this.reads.getThreadMessages(threadId);
  }

  /**
   * A page of the messages of the active path, including the live run's so far; empty for an unknown thread.
   *
   * @param place `before`: id of the message that the page ends before; absent: the last page. `limit`: default 50, at
   *   most 500. Errors: RunnerError `invalid-input` where the path has no message `before`
   */
  getMessagePage(threadId: string, place: Omit<MessagePageQuery, "threadId"> = {}): Promise<MessagePage> {
    return this.reads.getMessagePage(threadId, place);
  }

  /** The compacted events of the active path up to now; none for an unknown thread. */
  getThreadEvents(threadId: string): Promise<BaseEvent[]> {
    return this.reads.getThreadEvents(threadId);
  }

  /** The state of the active path, as the live run has changed it so far; undefined for an unknown thread. */
  getThreadState(threadId: string): Promise<State | undefined> {
    return this.reads.getThreadState(threadId);
  }
}
