import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { abortWith } from "../../platform/abort.js";
import { Bell } from "../../platform/bell.js";
import type { Clock } from "../../platform/clock.js";

/** How much one request asks for. The next one follows when half of it was taken, so memory stays bounded. */
const BATCH = 256;
const BATCH_BYTES = 4 * 1_024 * 1_024;
/** How long a request waits at the server, and how often the server says meanwhile that it is there, in ms. */
const EXPIRES_MS = 30_000;
const HEARTBEAT_MS = 5_000;

const nanos = (ms: number): number => ms * 1_000_000;

/** A consumer of the stream that acknowledges nothing, and where it is asked for more. */
export interface Pulled {
  readonly nc: NatsConnection;
  /** The subject of its requests. */
  readonly next: string;
  readonly inbox: string;
  readonly clock: Clock;
  /** The next message is always in the stream already, so a request that gets none has failed. */
  readonly isThere: boolean;
}

export interface Delivered {
  readonly seq: number;
  readonly msg: Msg;
}

/**
 * The messages of a consumer, each once, in order, asked for as they are taken. The library's own ordered consumer begins
 * anew by itself; here the caller must know, and look first whether it is still the same stream.
 *
 * It ends when the consumer is gone, or has left something out. Errors: the server refuses the request.
 */
export async function* pulled(
  { nc, next, inbox, clock, isThere }: Pulled,
  ...signals: readonly AbortSignal[]
): AsyncGenerator<Delivered, void> {
  const ended = abortWith(...signals);
  const bell = new Bell();
  const queue: Delivered[] = [];
  let queued = 0;
  let asked = 0;
  let answered = 0;
  let isTooLarge = false;
  let delivered = 0;
  let heard = clock.elapsed();
  let refused: string | undefined;

  const fail = (why?: string): void => {
    refused ??= why;
    ended.abort();
  };
  const subscription = nc.subscribe(inbox, {
    callback: (error, msg) => {
      heard = clock.elapsed();
      if (error !== null) fail(error.message);
      else if (msg.subject === inbox) take(msg.headers?.code ?? 0, msg.headers?.description ?? "");
      else put(msg);
      bell.ring();
    },
  });

  function take(code: number, description: string): void {
    // A heartbeat; all that was asked for has come, as servers from 2.10 on say besides.
    if (code === 100 || (code === 409 && /batch completed/i.test(description))) return;
    isTooLarge = code === 409 && /maxbytes/i.test(description) && answered === 0;
    if (code === 408 && isThere && answered === 0 && queue.length === 0) fail();
    else if (code === 404 || code === 408 || (code === 409 && /maxbytes/i.test(description))) asked = 0;
    else fail(code === 400 ? `the server refuses to send: ${description}` : undefined);
  }

  function put(msg: Msg): void {
    const { seq, count } = placeIn(msg.reply ?? "");
    if (count !== delivered + 1) return fail();
    delivered = count;
    answered++;
    asked = Math.max(0, asked - 1);
    queued += msg.data.length;
    queue.push({ seq, msg });
  }

  function ask(): void {
    asked = isTooLarge ? 1 : BATCH;
    answered = 0;
    heard = clock.elapsed();
    const request = {
      batch: asked,
      // A message that is larger than that comes alone.
      ...(!isTooLarge && { max_bytes: BATCH_BYTES }),
      // Where what it asks for is there already: as short as servers allow.
      expires: nanos(isThere ? 2 * HEARTBEAT_MS : EXPIRES_MS),
      idle_heartbeat: nanos(HEARTBEAT_MS),
    };
    isTooLarge = false;
    nc.publish(next, JSON.stringify(request), { reply: inbox });
  }

  async function watch(): Promise<void> {
    while (!ended.signal.aborted) {
      await clock.after(HEARTBEAT_MS, ended.signal);
      if (asked > 0 && clock.elapsed() - heard > 2.5 * HEARTBEAT_MS) fail();
    }
    bell.ring();
  }

  void watch();
  try {
    while (!ended.signal.aborted) {
      const seen = bell.count;
      if (asked === 0 && queued <= BATCH_BYTES / 2 && queue.length <= BATCH / 2) ask();
      const first = queue.shift();
      if (first === undefined) await bell.wait(seen, ended.signal);
      else {
        queued -= first.msg.data.length;
        yield first;
      }
    }
    if (refused !== undefined) throw new Error(refused);
  } finally {
    ended.abort();
    subscription.unsubscribe();
  }
}

/**
 * The message's seq in the stream, and how many this consumer has got with it, from the subject of its acknowledgement:
 * https://docs.nats.io/reference/reference-protocols/nats_api_reference, "$JS.ACK".
 */
function placeIn(reply: string): { readonly seq: number; readonly count: number } {
  const tokens = reply.split(".");
  // Newer servers name the domain and the account before the stream.
  const at = tokens.length === 9 ? 5 : 7;
  return { seq: Number(tokens[at]), count: Number(tokens[at + 1]) };
}
