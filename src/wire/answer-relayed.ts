import { onAbort } from "../platform/abort.js";
import { RunnerError } from "../run/errors.js";
import { toErrorData } from "./errors.js";
import { BODY_FRAME_BYTES, NULL_BODY, type RelayFrame, type RelayHandler } from "./relay.js";
import type { RelayedHost, RelayedRequest } from "./relayed-request.js";
import { windowOn } from "./window.js";

/**
 * The host's side of a relayed request: passes it to `handle` and sends the answer, at most one window ahead of its
 * reader.
 *
 * @param relayed checked
 * @param options when `signal` aborts, the requester is told that the host is lost
 * @returns resolves when everything is sent, the requester has aborted, or `signal` has aborted; never rejects
 */
export async function answerRelayed(
  relayed: RelayedRequest,
  port: MessagePort,
  handle: RelayHandler,
  { hostId, dbName, signal }: RelayedHost & { readonly signal: AbortSignal },
): Promise<void> {
  // Aborts only when the answer is no longer wanted: to the handler it means that the reader disconnected.
  const gone = new AbortController();
  const over = new AbortController();
  let body: ReadableStreamDefaultReader<unknown> | undefined;
  const stop = (): void => {
    gone.abort();
    window.wake();
    // Ends a pending read.
    body?.cancel(gone.signal.reason).catch(() => undefined);
  };
  const window = windowOn(port, "abort", stop);
  onAbort(signal, stop, over.signal);

  const post = (frame: RelayFrame, transfer: Transferable[] = []): void => port.postMessage(frame, transfer);
  /** @returns whether the whole body was sent; it stops when the answer is no longer wanted */
  const sendBody = async (reader: ReadableStreamDefaultReader<unknown>): Promise<boolean> => {
    // Backpressure: read only what can be sent.
    while (await window.opens(gone.signal)) {
      const { done, value } = await reader.read();
      if (gone.signal.aborted) return false;
      if (done) return true;
      if (!(value instanceof Uint8Array)) throw new TypeError("The body of a Response must be a stream of bytes");
      for (let at = 0; at < value.byteLength; at += BODY_FRAME_BYTES) {
        if (!(await window.opens(gone.signal))) return false;
        // A copy: transferring detaches the buffer, and the handler may send it again.
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
    // An answer to HEAD has no body, whatever the handler returns: https://www.rfc-editor.org/rfc/rfc9110#name-head
    const hasBody = response.body !== null && relayed.method !== "HEAD" && !NULL_BODY.has(status);
    if (!hasBody) discard(response);
    else body = (response.body as ReadableStream<unknown>).getReader();
    post({ type: "head", status, statusText, headers: [...headers], hasBody, hostId, dbName });
    if (body !== undefined && !(await sendBody(body))) return;
    post({ type: "end" });
  } catch (error) {
    if (!gone.signal.aborted) post({ type: "error", error: toErrorData(error) });
  } finally {
    if (signal.aborted)
      post({
        type: "error",
        error: toErrorData(RunnerError.is(signal.reason) ? signal.reason : new RunnerError("host-lost")),
      });
    over.abort();
    // A no-op if it was read to its end.
    body?.cancel(gone.signal.reason).catch(() => undefined);
    port.onmessage = null;
    // Frames already posted are still delivered.
    port.close();
  }
}

async function handled(relayed: RelayedRequest, handle: RelayHandler, signal: AbortSignal): Promise<Response> {
  const { url, method, headers, body, basePath } = relayed;
  // Pairs are copied: the platform's type requires mutable ones.
  const init = { method, headers: headers.map(([name, value]): [string, string] => [name, value]), signal };
  return handle(new Request(url, body === undefined ? init : { ...init, body }), { basePath });
}

/** The handler's answer; undefined if `signal` aborts first, in which case a later answer is discarded. */
function unlessAborted(answer: Promise<Response>, signal: AbortSignal): Promise<Response | undefined> {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    onAbort(
      signal,
      () => {
        resolve(undefined);
        answer.then(discard, () => undefined);
      },
      over.signal,
    );
    answer.then(resolve, reject).finally(() => over.abort());
  });
}

function discard(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}
