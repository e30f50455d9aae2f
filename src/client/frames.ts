import { transfer } from "comlink";
import { defer, Observable } from "rxjs";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import { receiveFrames } from "../wire/frames.js";
import { cursorBehind } from "../wire/thread-events.js";
import type { AttachControl, AttachRequest, Frame, LiveRun, RunRequest } from "../wire/shapes.js";
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

/** Hands the frames on to `next` that come on the port which `ask` is given; `ask` is to send it to the host. */
async function stream(
  link: HostLink,
  ask: (port: MessagePort) => Promise<unknown>,
  next: (frame: Frame) => void,
  signal: AbortSignal,
): Promise<void> {
  const { lost } = await link.linked();
  const { port1, port2 } = new MessageChannel();
  const incoming$ = receiveFrames(port1, lost);
  try {
    await ask(transfer(port2, [port2]));
  } catch (error) {
    // The host may get the other end yet, and would wait for a reader on it.
    port1.postMessage({ type: "detach" } satisfies AttachControl);
    port1.close();
    throw error;
  }
  await forEach(incoming$, next, signal);
}

/** Runs `work` for a subscriber until it unsubscribes, and again in the next host when a host dies, where it `mayRepeat`. */
function frames(
  work: (next: (frame: Frame) => void, signal: AbortSignal) => Promise<void>,
  mayRepeat: () => boolean,
): Observable<Frame> {
  return new Observable((subscriber) => {
    const reading = new AbortController();
    const { signal } = reading;
    const read = async (): Promise<void> => {
      for (;;) {
        try {
          return await work((frame) => subscriber.next(frame), signal);
        } catch (error) {
          if (signal.aborted) return;
          if (!RunnerError.is(error, "host-lost") || !mayRepeat()) throw error;
        }
      }
    };
    read().then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
    return () => reading.abort();
  });
}

/** What a reader asks for. Fields that are undefined are not sent. */
type Asked = { readonly [Field in keyof AttachRequest]: AttachRequest[Field] | undefined } & Pick<
  AttachRequest,
  "threadId"
>;

/** A thread's frames from `after` on, or those of one run. Goes on by cursor in the next host when a host dies. */
export const attachFrames = (link: HostLink, asked: Asked): Observable<Frame> =>
  defer(() => {
    let cursor = asked.after;
    let { holds } = asked;
    return frames(
      (next, signal) => {
        const now = { ...asked, after: cursor, holds: cursor === undefined ? holds : undefined };
        const sent = Object.entries(now).filter(([, value]) => value !== undefined);
        const request = Object.fromEntries(sent) as unknown as AttachRequest; // of its fields, those that are there
        const take = (frame: Frame): void => {
          cursor = cursorBehind(frame, cursor);
          holds ||= cursor !== undefined;
          next(frame);
        };
        return stream(link, (port) => link.callOnce("attach", request, port), take, signal);
      },
      () => true,
    );
  });

/**
 * Starts a run and hands out its frames to the settled end. When the host dies, the next one is asked for this run by
 * cursor; where it died before it answered, the same run is sent again, and a run that was started all the same is
 * found by its id.
 *
 * @param accepted called once the run stands in the log
 */
export const runFrames = (link: HostLink, request: RunRequest, accepted: (run: LiveRun) => void): Observable<Frame> =>
  defer(() => {
    const { threadId, agentId } = request;
    let cursor: Cursor | undefined;
    let run: LiveRun | undefined;
    const start = async (port: MessagePort): Promise<void> => {
      run = await link.callOnce("run", request, port);
      cursor = { runIndex: run.runIndex, seq: -1, epoch: run.epoch };
      accepted(run);
    };
    return frames(
      (next, signal) => {
        const take = (frame: Frame): void => {
          cursor = cursorBehind(frame, cursor);
          next(frame);
        };
        if (run === undefined) return stream(link, start, take, signal);
        const { runId } = run;
        return forEach(attachFrames(link, { threadId, agentId, runId, after: cursor }), take, signal);
      },
      // Of a run that stands in no log the next host knows nothing, and sent again it would be done twice.
      () => run?.unrecorded !== true,
    );
  });
