import { transfer } from "comlink";
import { Observable, takeWhile, tap } from "rxjs";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import { receiveFrames } from "../wire/frames.js";
import { cursorBehind } from "../wire/thread-events.js";
import type { AttachControl, AttachRequest, Frame, LiveRun, Replay, RunRequest } from "../wire/shapes.js";
import type { HostLink } from "./host-link.js";

export { cursorBehind };

/** Hands every frame of `frames$` on; resolves when it completes. */
function forEach(frames$: Observable<Frame>, next: (frame: Frame) => void, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const reading = frames$.subscribe({ next, error: reject, complete: resolve });
    const stop = (): void => {
      reading.unsubscribe();
      resolve();
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    reading.add(() => signal.removeEventListener("abort", stop));
  });
}

/** The answer to the call that handed over the other end of `port`; without one, nothing comes on the port any more. */
async function orClose<T>(port: MessagePort, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    // The host may get the other end yet, and would wait for a reader on it.
    port.postMessage({ type: "detach" } satisfies AttachControl);
    port.close();
    throw error;
  }
}

/**
 * A run's frames out of its thread's, to its settled end: the next host tells of later runs as well. Errors where the
 * thread went on without the run (its path, or the whole database, is another one): the reader cannot go on in it.
 */
function onlyRun({ runIndex, runId }: LiveRun, frames$: Observable<Frame>): Observable<Frame> {
  return frames$.pipe(
    tap((frame) => {
      if (frame.type === "prelude") throw new RunnerError("fenced", { runId });
    }),
    takeWhile((frame) => {
      if (frame.type === "run") return frame.run.runIndex === runIndex;
      return frame.type !== "chunk" || frame.chunk.runIndex === runIndex;
    }),
    takeWhile((frame) => frame.type !== "settled", true),
  );
}

/** Runs `work` for a subscriber until it unsubscribes. */
function frames(work: (next: (frame: Frame) => void, signal: AbortSignal) => Promise<void>): Observable<Frame> {
  return new Observable((subscriber) => {
    const reading = new AbortController();
    work((frame) => subscriber.next(frame), reading.signal).then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
    return () => reading.abort();
  });
}

/**
 * A thread's frames from `after` on. Goes on by cursor in the next host when a host dies.
 */
export function attachFrames(
  link: HostLink,
  request: {
    readonly threadId: string;
    readonly agentId?: string | undefined;
    readonly after?: Cursor | undefined;
    readonly holds?: boolean;
    readonly replay?: Replay;
    readonly follow: boolean;
    readonly runId?: string;
    /** Of a snapshot: at most so many messages. */
    readonly limit?: number;
  },
): Observable<Frame> {
  return frames(async (next, signal) => {
    let cursor = request.after;
    let { holds = false } = request;
    for (;;) {
      try {
        const { lost } = await link.linked();
        const { port1, port2 } = new MessageChannel();
        const incoming$ = receiveFrames(port1, lost);
        const attach: AttachRequest = {
          threadId: request.threadId,
          ...(request.agentId !== undefined && { agentId: request.agentId }),
          follow: request.follow,
          ...(request.replay !== undefined && { replay: request.replay }),
          ...(request.runId !== undefined && { runId: request.runId }),
          ...(request.limit !== undefined && { limit: request.limit }),
          ...(cursor !== undefined ? { after: cursor } : holds && { holds }),
        };
        await orClose(
          port1,
          link.callOnce(({ api }) => api.attach(attach, transfer(port2, [port2]))),
        );
        await forEach(
          incoming$,
          (frame) => {
            cursor = cursorBehind(frame, cursor);
            holds ||= cursor !== undefined;
            next(frame);
          },
          signal,
        );
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!RunnerError.is(error, "host-lost")) throw error;
      }
    }
  });
}

/**
 * Starts a run and hands out its frames to the settled end. When the host dies, the next one is asked for the run by
 * cursor; where it died before it answered, the same run is sent again, and a run that was started all the same is
 * found by its id.
 *
 * @param accepted called once the run stands in the log
 */
export function runFrames(link: HostLink, request: RunRequest, accepted: (run: LiveRun) => void): Observable<Frame> {
  return frames(async (next, signal) => {
    let cursor: Cursor | undefined;
    let run: LiveRun | undefined;
    const take = (frame: Frame): void => {
      cursor = cursorBehind(frame, cursor);
      next(frame);
    };
    for (;;) {
      try {
        if (run !== undefined) {
          const { threadId, agentId } = request;
          const later$ = attachFrames(link, { threadId, agentId, after: cursor, follow: false });
          await forEach(onlyRun(run, later$), take, signal);
          return;
        }
        const { lost } = await link.linked();
        const { port1, port2 } = new MessageChannel();
        const incoming$ = receiveFrames(port1, lost);
        const started: LiveRun = await orClose(
          port1,
          link.callOnce(({ api }) => api.run(request, transfer(port2, [port2]))),
        );
        run = started;
        cursor = { runIndex: started.runIndex, seq: -1, epoch: started.epoch };
        accepted(started);
        await forEach(incoming$, take, signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        // Of a run that stands in no log the next host knows nothing, and sent again it would be done twice.
        if (!RunnerError.is(error, "host-lost") || run?.unrecorded === true) throw error;
      }
    }
  });
}
