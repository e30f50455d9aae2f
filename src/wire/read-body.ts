/**
 * The whole body of a request; undefined where it has more than `maxBytes`: then no more of it is read.
 *
 * Errors: the body's own; the reason of `signal`, which ends the reading.
 */
export async function readBody(
  request: Request,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  // Older versions of Firefox have no `Request.body`: the size is known only after reading.
  const body = request.body as Request["body"] | undefined;
  if (body === null) return new Uint8Array();
  if (body === undefined) {
    const whole = new Uint8Array(await request.arrayBuffer());
    return whole.byteLength > maxBytes ? undefined : whole;
  }
  const reader = body.getReader();
  const giveUp = (): void => void reader.cancel(signal?.reason).catch(() => undefined);
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return joined(pieces, size);
      size += value.byteLength;
      if (size > maxBytes) {
        // Not awaited: the sender could delay it.
        void reader.cancel().catch(() => undefined);
        return undefined;
      }
      pieces.push(value);
    }
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}

/** @param size of all pieces together, in bytes */
export function joined(pieces: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}
