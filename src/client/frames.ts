import { transfer } from "comlink";
import { defer, Observable, retry, tap, type MonoTypeOperatorFunction } from "rxjs";
import { defined } from "../platform/defined.js";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import { receiveFrames } from "../wire/frames.js";
import type { AttachControl, AttachRequest, Frame, LiveRun, RunRequest } from "../wire/shapes.js";
import { cursorBehind } from "../wire/thread-events.js";
import type { HostLink } from "./host-link.js";

/** The frames that come on the port which `ask` is given; `ask` sends it to the host. Unsubscribing detaches. */
const stream = (link: HostLink, ask: (port: MessagePort) => Promise<unknown>): Observable<Frame> =>
  new Observable((subscriber) => {
    const open = async (): Promise<void> => {
      const { lost } = await link.linked();
      const { port1, port2 } = new MessageChannel();
      const incoming$ = receiveFrames(port1, lost);
      try {
        await ask(transfer(port2, [port2]));
      } catch (error) {
        // The host may still get the other end, and would wait for a reader on it.
        port1.postMessage({ type: "detach" } satisfies AttachControl);
        port1.close();
        throw error;
      }
      // Detaches at once where the subscriber has left meanwhile.
      incoming$.subscribe(subscriber);
    };
    open().catch((error: unknown) => subscriber.error(error));
  });

/** When a host dies, subscribes again: the next host is asked. @param mayRepeat whether it may be asked */
const inNextHost = (mayRepeat = (): boolean => true): MonoTypeOperatorFunction<Frame> =>
  retry({
    delay: (error: unknown) => {
      if (!RunnerError.is(error, "host-lost") || !mayRepeat()) throw error;
      // Not within the event that told the loss: the link has no next host before it is over.
      return Promise.resolve();
    },
  });

/** What a reader asks for. Fields that are undefined are not sent. */
type Asked = { readonly [Field in keyof AttachRequest]: AttachRequest[Field] | undefined } & Pick<
  AttachRequest,
  "threadId"
>;

/** A thread's frames from `after` on, or those of one run. When a host dies, it goes on by cursor in the next one. */
export const attachFrames = (link: HostLink, asked: Asked): Observable<Frame> =>
  defer(() => {
    const { threadId, ...others } = asked;
    let { after, holds } = asked;
    const attached$ = defer(() => {
      const request: AttachRequest = { threadId, ...defined({ ...others, after, holds }) };
      return stream(link, (port) => link.callOnce("attach", request, port));
    });
    return attached$.pipe(
      inNextHost(),
      tap((frame) => {
        after = cursorBehind(frame, after);
        if (holds === false) holds = after !== undefined;
      }),
    );
  });

/**
 * Starts a run and hands out its frames to the settled end. When the host dies, the next one is asked for this run by
 * cursor; where it died before it answered, the same run is sent again, and a run that was started all the same is
 * found by its id.
 *
 * @param accepted called once the run is in the log
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
    const frames$ = defer(() =>
      run === undefined
        ? stream(link, start)
        : attachFrames(link, { threadId, agentId, runId: run.runId, after: cursor }),
    );
    return frames$.pipe(
      // The next host knows nothing of a run that is in no log; sent again, it would be done twice.
      inNextHost(() => run?.unrecorded !== true),
      tap((frame) => (cursor = cursorBehind(frame, cursor))),
    );
  });
