import type { ConsumerAPI, ConsumerConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { abortWith } from "../../platform/abort.js";
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

/** Where it ends. */
export type Until =
  /** With the last message that is there once the consumer exists; a consumer that is lost before is an error, and so is `signal`. */
  | "now"
  /** When the consumer is lost, or gets nothing of what is there. */
  | "lost";

/** How often it is looked whether the consumer gets what is there, and how late that may be, in ms. */
const CHECK_MS = 20_000;
const LATE_MS = 5_000;

/**
 * Reads a stream through a consumer of its own, which is deleted afterwards.
 *
 * @param lastSeq the seq of the last message that is there, as the leader of the stream has it; undefined: there is none
 */
export async function* consume(
  stream: ConsumedStream,
  selection: Selection,
  until: Until,
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
  const reading = abortWith(signal, stream.signal);
  const read = { seq: (selection.opt_start_seq ?? 1) - 1, isWaiting: true };
  try {
    const last = until === "lost" ? Infinity : await lastSeq();
    if (last === undefined || last <= read.seq) return;
    if (until === "lost") void missed(read, lastSeq, clock, reading.signal).then(() => reading.abort());
    const next = `$JS.API.CONSUMER.MSG.NEXT.${stream.name}.${name}`;
    const inbox = nats.core.createInbox(stream.inboxPrefix);
    const isThere = last < Infinity;
    for await (const delivered of pulled({ nc, next, inbox, clock, isThere }, reading.signal)) {
      read.isWaiting = false;
      read.seq = delivered.seq;
      yield delivered;
      if (delivered.seq >= last) return;
      read.isWaiting = true;
    }
    if (isThere) throw new Error("The consumer was lost before its last message");
  } finally {
    reading.abort();
    if (!stream.signal.aborted) void consumers.delete(stream.name, name).catch(() => undefined);
  }
}

/**
 * Resolves when something is there that does not come: a server that was killed may take itself for in step again, and hear
 * of nothing (seen with 2.9.10). Its consumers go on to say that they are there. Where nobody answers what is there, nothing
 * says that the consumer gets it.
 */
async function missed(
  read: { readonly seq: number; readonly isWaiting: boolean },
  lastSeq: () => Promise<number | undefined>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.after(CHECK_MS, signal);
    const { seq } = read;
    const last = signal.aborted ? undefined : await lastSeq().catch(() => Infinity);
    if (last === undefined || last <= seq) continue;
    await clock.after(LATE_MS, signal);
    if (read.isWaiting && read.seq === seq) return;
  }
}
