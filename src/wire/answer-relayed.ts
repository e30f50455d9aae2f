import { RunnerError } from "../run/errors.js";
import { toErrorData } from "./errors.js";
import { BODY_FRAME_BYTES, NULL_BODY, type RelayFrame, type RelayHandler } from "./relay.js";
import type { RelayedHost, RelayedRequest } from "./relayed-request.js";
import { SendWindow } from "./window.js";

/** @param reason of the signal that ended the work in this host */
const hostLost = (reason: unknown): RunnerError => (RunnerError.is(reason) ? reason : new RunnerError("host-lost"));

/**
 * The host's end: has `handle` answer a request and sends the answer, never more than a window ahead of its reader.
 *
 * @param relayed checked
 * @param options `signal` ends it: the asker is told that the host is lost
 * @returns resolves when all is sent, the asker wants no more or `signal` aborted; never rejects
 */
export async function answerRelayed(
  relayed: RelayedRequest,
  port: MessagePort,
  handle: RelayHandler,
  { hostId, dbName, signal }: RelayedHost & { readonly signal: AbortSignal },
): Promise<void> {
  const window = new SendWindow();
  // Aborts only where the answer is wanted no more: who handles the request may take that for a reader that went away.
  const gone = new AbortController();
  const over = new AbortController();
  let body: ReadableStreamDefaultReader<unknown> | undefined;
  let refill: (() => void) | undefined;
  const wake = (): void => {
    refill?.();
    refill = undefined;
  };
  const stop = (): void => {
    gone.abort();
    wake();
    // A read that is pending ends by it.
    body?.cancel(gone.signal.reason).catch(() => undefined);
  };
  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    // Whatever the asker sends: each field is checked where it is used.
    const control = data as { readonly type?: unknown; readonly frames?: unknown } | null;
    if (control?.type === "credit") {
      window.consumed(control.frames);
      wake();
    } else if (control?.type === "abort") stop();
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true, signal: over.signal });

  const post = (frame: RelayFrame, transfer: Transferable[] = []): void => port.postMessage(frame, transfer);
  const opened = async (): Promise<boolean> => {
    while (!window.isOpen && !gone.signal.aborted) await new Promise<void>((resolve) => (refill = resolve));
    return !gone.signal.aborted;
  };
  /** Whether the body was sent whole: no further where the answer is wanted no more. */
  const sendBody = async (reader: ReadableStreamDefaultReader<unknown>): Promise<boolean> => {
    // Nothing is read before it can be sent: what the asker does not take stays with the handler.
    while (await opened()) {
      const { done, value } = await reader.read();
      if (gone.signal.aborted) return false;
      if (done) return true;
      if (!(value instanceof Uint8Array)) throw new TypeError("The body of a Response must be a stream of bytes");
      for (let at = 0; at < value.byteLength; at += BODY_FRAME_BYTES) {
        if (!(await opened())) return false;
        // A copy: the handler may send the same bytes again, and what is transferred is gone here.
        const bytes = new Uint8Array(value.subarray(at, at + BODY_FRAME_BYTES));
        const frame = { type: "body", bytes } as const;
        window.sent(frame);
        post(frame, [bytes.buffer]);
      }
    }
    return false;
  };
  try {
    if (gone.signal.aborted) return;
    const response = await unlessAborted(handled(relayed, handle, gone.signal), gone.signal);
    if (gone.signal.aborted) {
      if (response !== undefined) discard(response);
      return;
    }
    if (response === undefined) throw new TypeError("The handler of requests must give a Response");
    const { status, statusText, headers } = response;
    // No answer to HEAD has a body, whatever a handler makes of it: https://www.rfc-editor.org/rfc/rfc9110#name-head
    const hasBody = response.body !== null && relayed.method !== "HEAD" && !NULL_BODY.has(status);
    if (!hasBody) discard(response);
    else body = (response.body as ReadableStream<unknown>).getReader();
    post({ type: "head", status, statusText, headers: [...headers], hasBody, hostId, dbName });
    if (body !== undefined && !(await sendBody(body))) return;
    post({ type: "end" });
  } catch (error) {
    if (!gone.signal.aborted) post({ type: "error", error: toErrorData(error) });
  } finally {
    if (signal.aborted) post({ type: "error", error: toErrorData(hostLost(signal.reason)) });
    over.abort();
    // Of no effect where it was read whole.
    body?.cancel(gone.signal.reason).catch(() => undefined);
    port.onmessage = null;
    // Frames already posted are still delivered.
    port.close();
  }
}

async function handled(relayed: RelayedRequest, handle: RelayHandler, signal: AbortSignal): Promise<Response> {
  const { url, method, headers, body, basePath } = relayed;
  // A copy of the pairs: the platform's type asks for ones that can be changed.
  const init = { method, headers: headers.map(([name, value]): [string, string] => [name, value]), signal };
  return handle(new Request(url, body === undefined ? init : { ...init, body }), { basePath });
}

/** The handler's answer; undefined where `signal` aborts first: then what comes late is let go of. */
function unlessAborted(answer: Promise<Response>, signal: AbortSignal): Promise<Response | undefined> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => {
      resolve(undefined);
      answer.then(discard, () => undefined);
    };
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", aborted, { once: true });
    answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
  });
}

function discard(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}
