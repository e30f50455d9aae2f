import { RunnerError } from "../run/errors.js";
import { fromErrorData } from "./errors.js";
import { checkFrame, NULL_BODY, type RelayControl, type RelayFrame } from "./relay.js";
import type { RelayedHost } from "./relayed-request.js";
import { ConsumedFrames, WINDOW_FRAMES } from "./window.js";

/** Callbacks for the requester besides the answer. */
export interface RelayListener {
  /** The answer from `host` begins. */
  readonly onHead?: (host: RelayedHost) => void;
  /** Nothing more will arrive. Called once, on every path. */
  readonly onSettled?: () => void;
}

/**
 * The requester's side: the answer that arrives on a port. Call it before the other end is transferred. The host sends
 * at most one window ahead of the body's reader; cancelling the body stops it.
 *
 * Errors (a rejection before the head, an error of the body after it): the reason of `signal`; the host's RunnerError.
 *
 * @param signal aborts when the answer is no longer wanted, or when the host is lost, which no port reports
 */
export function relayResponse(
  port: MessagePort,
  signal: AbortSignal,
  { onHead, onSettled }: RelayListener = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const incoming = new IncomingBody(
      (frames) => port.postMessage({ type: "credit", frames } satisfies RelayControl),
      () => abort(),
    );
    let headed = false;
    let bodyless = false;
    let settled = false;
    const settle = (): void => {
      if (settled) return;
      settled = true;
      signal.removeEventListener("abort", lost);
      port.onmessage = null;
      port.onmessageerror = null;
      port.close();
      onSettled?.();
    };
    const abort = (): void => {
      if (!settled) port.postMessage({ type: "abort" } satisfies RelayControl);
      settle();
    };
    const fail = (error: unknown): void => {
      abort();
      if (headed) incoming.fail(error);
      else reject(error);
    };
    const lost = (): void => fail(signal.reason);
    const take = (frame: RelayFrame): void => {
      if (frame.type === "error") return fail(fromErrorData(frame.error));
      if (headed === (frame.type === "head")) throw new TypeError(`The frame ${frame.type} is out of order`);
      switch (frame.type) {
        case "head": {
          const { status, statusText, headers, hasBody, hostId, dbName } = frame;
          const init = { status, statusText, headers: headers.map(([name, value]): [string, string] => [name, value]) };
          bodyless = !hasBody || NULL_BODY.has(status);
          const response = new Response(bodyless ? null : incoming.stream, init);
          headed = true;
          onHead?.({ hostId, dbName });
          return resolve(response);
        }
        case "body":
          if (bodyless) throw new TypeError("There is no body");
          return incoming.push(frame);
        case "end":
          incoming.end();
          return settle();
      }
    };
    port.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (settled) return;
      try {
        take(checkFrame(data));
      } catch (error) {
        fail(malformed(error));
      }
    };
    port.onmessageerror = () => fail(malformed(new TypeError("A frame could not be read")));
    if (signal.aborted) lost();
    else signal.addEventListener("abort", lost, { once: true });
  });
}

/** The body of an answer: the received, unread frames. */
class IncomingBody {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Frames in the stream's queue. */
  private readonly unread: BodyFrame[] = [];
  private controller!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  private isOver = false;

  /**
   * @param tell called with the number of frames read
   * @param onCancel called when the reader cancels
   */
  constructor(tell: (frames: number) => void, onCancel: () => void) {
    const consumed = new ConsumedFrames();
    // More than the host sends ahead, so that `pull` is called after each read.
    const highWaterMark = WINDOW_FRAMES + 1;
    this.stream = new ReadableStream(
      {
        start: (controller) => void (this.controller = controller),
        pull: ({ desiredSize }) => {
          for (const frame of this.unread.splice(0, this.unread.length - (highWaterMark - desiredSize!))) {
            const told = consumed.add(frame);
            if (told > 0 && !this.isOver) tell(told);
          }
        },
        cancel: () => {
          this.isOver = true;
          onCancel();
        },
      },
      { highWaterMark },
    );
  }

  push(frame: BodyFrame): void {
    if (this.isOver) return;
    this.unread.push(frame);
    this.controller.enqueue(frame.bytes);
  }

  end(): void {
    if (!this.isOver) this.controller.close();
    this.isOver = true;
  }

  fail(error: unknown): void {
    if (!this.isOver) this.controller.error(error);
    this.isOver = true;
  }
}

type BodyFrame = RelayFrame & { readonly type: "body" };

function malformed(cause: unknown): RunnerError {
  return new RunnerError("host-failed", {}, { message: `The host's answer is not valid: ${String(cause)}`, cause });
}
