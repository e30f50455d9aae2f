import { AbstractAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { Observable } from "rxjs";
import { nextTask } from "../../platform/clock.js";
import { isTerminal } from "../../run/event-kinds.js";
import { mustBeEvent, returns } from "./valid-stream.js";

/** How long an agent may yield before other tasks of its host (messages, storage, stops) get a turn, in ms. */
const SLICE_MS = 8;

const isStart = (event: unknown): boolean => (event as BaseEvent | undefined)?.type === EventType.RUN_STARTED;

/**
 * An agent whose runs are async generators of events. RUN_STARTED and the terminal event may be left out. On stop the
 * signal aborts, and the generator returns at its next yield.
 */
export abstract class GeneratorAgent extends AbstractAgent {
  private aborting: AbortController | undefined;
  /** The first run was aborted before it came here: a middleware or a subscriber delays it. A runner's clone has one. */
  private abortedEarly = false;

  /** The events of one run. What it throws ends the run as errored. */
  protected abstract events(input: RunAgentInput, signal: AbortSignal): AsyncIterable<BaseEvent>;

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return new Observable<BaseEvent>((subscriber) => {
      const aborting = new AbortController();
      this.aborting = aborting;
      const { signal } = aborting;
      if (this.abortedEarly) aborting.abort();
      this.abortedEarly = false;
      const { threadId, runId } = input;
      let isEnded = false;
      let yielded = 0;
      const drive = async (): Promise<void> => {
        if (signal.aborted) return subscriber.next({ type: EventType.RUN_STARTED, threadId, runId });
        const iterator = this.events(input, signal)[Symbol.asyncIterator]();
        try {
          let upcoming = iterator.next();
          // Readers see the question before the agent's first event, unless that is an immediate RUN_STARTED.
          const early = await Promise.race([upcoming, nextTask()]).catch(() => undefined);
          const startsItself = isStart(early?.value);
          if (!startsItself) subscriber.next({ type: EventType.RUN_STARTED, threadId, runId });
          let sliceEnds = performance.now() + SLICE_MS;
          for (;;) {
            const next = await upcoming;
            if (next.done === true) return;
            if (signal.aborted) break;
            mustBeEvent(next.value, ++yielded);
            const { type } = next.value;
            isEnded = isTerminal(type) || (isEnded && type !== EventType.RUN_STARTED);
            const wasSent = yielded === 1 && isStart(next.value) && !startsItself;
            if (!wasSent) subscriber.next(next.value);
            if (performance.now() >= sliceEnds) {
              await nextTask();
              sliceEnds = performance.now() + SLICE_MS;
            }
            // An agent that was stopped is not asked for more.
            if (signal.aborted) break;
            upcoming = iterator.next();
          }
        } finally {
          await iterator.return?.();
        }
      };
      drive().then(
        () => {
          // To return ends the run, unless it was stopped (L18).
          if (!isEnded && !signal.aborted) {
            const end: BaseEvent = { type: EventType.RUN_FINISHED, threadId, runId };
            returns.add(end);
            subscriber.next(end);
          }
          subscriber.complete();
        },
        (error: unknown) => (signal.aborted ? subscriber.complete() : subscriber.error(error)),
      );
      return () => aborting.abort();
    });
  }

  override abortRun(): void {
    this.aborting?.abort();
    // While nothing runs, it would abort a later run; after a run, a subscriber may still be at its end.
    this.abortedEarly = this.isRunning && this.aborting === undefined;
  }

  /** The base class copies only its own fields, onto an object that no constructor made. */
  override clone(): this {
    const copy = super.clone() as this;
    copy.aborting = undefined;
    copy.abortedEarly = false;
    return copy;
  }
}
