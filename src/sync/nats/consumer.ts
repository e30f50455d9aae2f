import type { ConsumerAPI, ConsumerConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Clock } from "../../platform/clock.js";
import type { Nats } from "./packages.js";
import { pulled, type Delivered } from "./pull.js";

/** The server drops a consumer that nobody asks for this long, in ms. */
const INACTIVE_MS = 60_000;

/** A stream whose messages are read by consumers. */
export interface ConsumedStream {
  readonly nc: NatsConnection;
  readonly nats: Nats;
  readonly consumers: ConsumerAPI;
  readonly name: string;
  readonly inboxPrefix: string;
  readonly clock: Clock;
  /** Aborts when the connection has ended. */
  readonly signal: AbortSignal;
}

/** Which messages, and in which order. */
export type Selection = Pick<ConsumerConfig, "deliver_policy" | "opt_start_seq" | "filter_subject">;

/**
 * Reads a stream through a consumer of its own, which is deleted afterwards.
 *
 * @param lastSeq called once the consumer exists. @returns the seq of the message after which it ends, undefined: at once,
 *   Infinity: when the consumer is lost. With a number a consumer that is lost before is an error, and so is `signal`
 */
export async function* consume(
  stream: ConsumedStream,
  selection: Selection,
  lastSeq: () => Promise<number | undefined>,
  signal: AbortSignal,
): AsyncGenerator<Delivered, void> {
  const { nc, nats, consumers, clock } = stream;
  const name = `read_${nats.core.nuid.next()}`;
  await consumers.add(stream.name, {
    ...selection,
    name,
    ack_policy: nats.jetstream.AckPolicy.None,
    inactive_threshold: nats.core.nanos(INACTIVE_MS),
    mem_storage: true,
    num_replicas: 1,
  });
  try {
    const last = await lastSeq();
    if (last === undefined) return;
    const next = `$JS.API.CONSUMER.MSG.NEXT.${stream.name}.${name}`;
    const inbox = nats.core.createInbox(stream.inboxPrefix);
    const isThere = last < Infinity;
    for await (const delivered of pulled({ nc, next, inbox, clock, isThere }, signal, stream.signal)) {
      yield delivered;
      if (delivered.seq >= last) return;
    }
    if (isThere) throw new Error("The consumer was lost before its last message");
  } finally {
    if (!stream.signal.aborted) void consumers.delete(stream.name, name).catch(() => undefined);
  }
}
