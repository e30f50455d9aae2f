import type { Msg, MsgHdrs, NatsConnection } from "@nats-io/nats-core";
import type { JetStreamClient, JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { Lazy } from "../../platform/lazy.js";
import { inTime, type Clock } from "../../platform/clock.js";
import { consume, type Selection } from "./consumer.js";
import { codeOf, failAsBehind, isBehind, isUnanswered, STREAM_NAME_IN_USE, STREAM_NOT_FOUND } from "./errors.js";
import { isAboutMaking, makeAlone } from "./make-alone.js";
import type { Nats } from "./packages.js";
import {
  decodePart,
  encodePart,
  isComplete,
  isUnfinished,
  PART_HEADER,
  WHOLE_HEADER,
  type LogMessage,
  type Part,
} from "./parts.js";

/** Repeated message ids are found for this long, in ms. */
const DUPLICATES_MS = 120_000;

/**
 * The first servers that purge one subject and do nothing else, major and minor version. Before, readers that are behind miss
 * what others have added earlier than the first message that stays (seen with 2.9.10), and a server of a cluster that starts
 * removes the messages of all subjects (nats-server issue 4196).
 */
const PURGES: readonly [number, number] = [2, 10];

const MESSAGE_ID = "Nats-Msg-Id";
const EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence";

export interface LogOptions {
  readonly space: string;
  readonly replicas: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** What the subjects of answers begin with. */
export const inboxPrefix = (space: string): string => `_INBOX_${space}`;

/** The stream as it stands: which one it is, its last seq, and that of the last message that is still there. */
export interface Standing {
  readonly id: string;
  readonly lastSeq: number;
  readonly last: number;
}

/** Messages of the log: all from a seq on, the last one of each thread, or those of one thread behind a seq. */
export type Which =
  | { readonly are: "from"; readonly seq: number }
  | { readonly are: "lasts" }
  | { readonly are: "of-thread"; readonly thread: string; readonly after: number };

/** A message to publish. */
export interface NewMessage {
  readonly thread: string;
  readonly body: Uint8Array;
  /** The seq of the last message of its thread. */
  readonly after: number;
  /** By which the server knows a repeated message. Undefined: a part that is not the last. */
  readonly id?: string;
  readonly part: Part;
  readonly isWhole: boolean;
}

/** The stream of a space, by one connection: as long as that lasts. */
export class SpaceLog {
  private readonly js: JetStreamClient;
  private readonly manager: Lazy<JetStreamManager>;
  private readonly ended = new AbortController();
  /** Why it was dropped. */
  private why: unknown;
  private copies = 1;
  private readonly stream: string;
  private readonly threads: string;

  constructor(
    private readonly nc: NatsConnection,
    private readonly nats: Nats,
    private readonly options: LogOptions,
  ) {
    const { space, timeoutMs } = options;
    this.stream = `AGUI_${space}`;
    this.threads = `agui.${space}.t.`;
    this.js = nats.jetstream.jetstream(nc, { timeout: timeoutMs });
    this.manager = new Lazy(() => nats.jetstream.jetstreamManager(nc, { timeout: timeoutMs, checkAPI: false }));
    void nc.closed().then((error) => this.end(error ?? undefined));
  }

  /** Aborts when the connection has ended. */
  get signal(): AbortSignal {
    return this.ended.signal;
  }

  /** Why; undefined where nobody knows. */
  get endedBy(): unknown {
    return this.why;
  }

  /** The largest message, in bytes, its headers included. */
  get maxPayload(): number {
    return this.nc.info?.max_payload ?? 1_048_576;
  }

  /** Gives the connection up: the next one may be better. Nothing happens where it has ended, or sends its last. */
  drop(why: unknown): void {
    if (this.signal.aborted) return;
    this.end(why);
    void this.nc.close().catch(() => undefined);
  }

  /** Sends what is on its way, then closes. */
  async close(): Promise<void> {
    this.end(undefined);
    if (this.nc.isClosed()) return;
    const { timeoutMs, clock } = this.options;
    await inTime(this.nc.drain(), timeoutMs, clock).catch(() => void this.nc.close().catch(() => undefined));
  }

  /** Creates the stream where it is missing. Errors: it cannot be reached, or must not be created. */
  async ensure(): Promise<void> {
    const { nc, live: subject, signal } = this;
    const { headers } = this.nats.core;
    const { clock } = this.options;
    const isCluster = nc.info?.cluster !== undefined;
    while (!signal.aborted && (await this.isMissing())) {
      const make = async (): Promise<void> => {
        if (!isCluster || (await this.isMissing())) await this.make();
      };
      if (!isCluster) return make();
      if (await makeAlone({ nc, headers, subject, clock, signal }, make)) return;
    }
  }

  private async isMissing(): Promise<boolean> {
    const { streams } = await this.manager.get();
    return streams.info(this.stream).then(
      ({ config }) => {
        this.copies = config.num_replicas;
        return false;
      },
      (error: unknown) => {
        if (codeOf(error) !== STREAM_NOT_FOUND) throw error;
        return true;
      },
    );
  }

  private async make(): Promise<void> {
    const { streams } = await this.manager.get();
    const { StorageType, DiscardPolicy, RetentionPolicy } = this.nats.jetstream;
    const config = {
      name: this.stream,
      subjects: [`${this.threads}*`],
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      // Where somebody sets a limit, nothing that is there is dropped for what is new.
      discard: DiscardPolicy.New,
      duplicate_window: this.nats.core.nanos(DUPLICATES_MS),
      num_replicas: this.options.replicas,
      deny_delete: true,
    };
    this.copies = this.options.replicas;
    await streams.add(config).catch((error: unknown) => {
      // Another device was first.
      if (codeOf(error) !== STREAM_NAME_IN_USE) throw error;
    });
  }

  async standing(): Promise<Standing> {
    const { streams } = await this.manager.get();
    const info: StreamInfo = await streams.info(this.stream);
    this.copies = info.config.num_replicas;
    const { messages, last_seq: lastSeq } = info.state;
    const last = messages === 0 ? undefined : await this.lastOf("*");
    return { id: `${this.stream}.${info.created}`, lastSeq, last: last?.seq ?? 0 };
  }

  /**
   * Whether the stream is kept on several servers. There, several messages that expect the same last one may be stored: its
   * leader compares before it proposes, and not again when all apply it (nats-server issues 4320 and 8469; in 2.9.10 every
   * second time under load). So the log itself decides: the first entry that names another as its base is the next
   * one, all later ones are void, for each reader and for their writers.
   */
  get isReplicated(): boolean {
    return this.copies > 1;
  }

  /**
   * The entry that follows entry `base` of a thread, or stands for it where it was removed: the last part of it; undefined:
   * none yet.
   *
   * @param known the seq of one that is whole, which others may only look like
   */
  async follower(thread: string, base: number, known = 0): Promise<LogMessage | undefined> {
    const isThere = base > 0 && (await this.at(base)) !== undefined;
    for (let seq = isThere ? base + 1 : 1; ;) {
      const message = await this.next(thread, seq);
      if (message === undefined) return undefined;
      const isIts = (message.part?.base ?? message.before ?? base) === base;
      const isNext = !isUnfinished(message) && (isIts || (message.isWhole && !isThere));
      if (isNext && (message.seq === known || (await isComplete(message, this)))) return message;
      seq = message.seq + 1;
    }
  }

  /** As `follower`, of an entry that has one. Errors: SpaceOffline, the server that answered is behind others */
  async knownFollower(thread: string, base: number, known: number): Promise<LogMessage> {
    return (await this.follower(thread, base, known)) ?? failAsBehind();
  }

  /** The thread's first message from `seq` on. */
  next(thread: string, seq: number): Promise<LogMessage | undefined> {
    return this.stored({ seq, next_by_subj: this.threads + thread });
  }

  /** @returns undefined if there is none (any more) */
  at(seq: number): Promise<LogMessage | undefined> {
    return this.stored({ seq });
  }

  /** @param thread `*`: of all */
  lastOf(thread: string): Promise<LogMessage | undefined> {
    return this.stored({ last_by_subj: this.threads + thread });
  }

  /** @returns its seq; undefined where `after` is not the thread's last message, or one is on its way */
  async publish({ thread, body, after, id, part, isWhole }: NewMessage): Promise<number | undefined> {
    const headers = this.nats.core.headers();
    headers.set(PART_HEADER, encodePart(part));
    if (isWhole) headers.set(WHOLE_HEADER, "1");
    try {
      const { seq } = await this.js.publish(this.threads + thread, body, {
        headers,
        expect: { lastSubjectSequence: after },
        timeout: this.options.timeoutMs,
        ...(id !== undefined && { msgID: id }),
      });
      if (seq < 1) throw new Error("The server does not say where the entry is");
      return seq;
    } catch (error) {
      if (isBehind(error)) return undefined;
      throw error;
    }
  }

  /**
   * Removes the thread's messages before `below`. @returns false where it is not allowed, or would do more, see {@link PURGES}
   *
   * @param below its first message that stays; where it has none, all go
   */
  async purge(thread: string, below: number): Promise<boolean> {
    if (!isAtLeast(this.nc.info?.version, PURGES)) return false;
    // For some servers 1 means all, as 0 does.
    if (below <= 1) return true;
    const { streams } = await this.manager.get();
    try {
      await streams.purge(this.stream, { filter: this.threads + thread, ...(below < Infinity && { seq: below }) });
      return true;
    } catch (error) {
      if (isUnanswered(error)) throw error;
      return false;
    }
  }

  /**
   * The messages, as they are taken. Those `from` a seq go on until the consumer is lost; the others end with the last one
   * that is there. Errors: the consumer cannot be made; of the others: not all could be read, also where `signal` aborted
   */
  async *messages(which: Which, signal: AbortSignal): AsyncGenerator<LogMessage, void> {
    const { consumers } = await this.manager.get();
    const { nc, nats, signal: ended } = this;
    const { space, clock } = this.options;
    const stream = { nc, nats, consumers, name: this.stream, inboxPrefix: inboxPrefix(space), clock, signal: ended };
    const until = which.are === "from" ? "lost" : "now";
    const lastSeq = async () => (await this.lastOf(which.are === "of-thread" ? which.thread : "*"))?.seq;
    for await (const { seq, msg } of consume(stream, this.selection(which), until, lastSeq, signal)) {
      const message = this.messageOf(seq, msg.subject, msg.headers, () => msg.data);
      if (message !== undefined) yield message;
    }
  }

  /** The name of the server that leads the stream; undefined: none, as on a server of its own. */
  async leader(): Promise<string | undefined> {
    const { streams } = await this.manager.get();
    return (await streams.info(this.stream)).cluster?.leader || undefined;
  }

  /** Another server is to lead the stream. */
  async stepDown(): Promise<void> {
    const { timeoutMs: timeout } = this.options;
    await this.nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${this.stream}`, undefined, { timeout });
  }

  /** Tells whoever is online what fits into one message. */
  tell(body: Uint8Array): void {
    if (body.length <= this.maxPayload && !this.nc.isClosed()) this.nc.publish(this.live, body);
  }

  hear(listener: (body: Uint8Array) => void): void {
    this.nc.subscribe(this.live, {
      callback: (error: Error | null, msg: Msg) => {
        if (error === null && !this.signal.aborted && !isAboutMaking(msg)) listener(msg.data);
      },
    });
  }

  private selection(which: Which): Selection {
    const { DeliverPolicy } = this.nats.jetstream;
    switch (which.are) {
      case "from":
        return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: which.seq };
      case "lasts":
        return { deliver_policy: DeliverPolicy.LastPerSubject, filter_subject: `${this.threads}*` };
      case "of-thread":
        return {
          ...(which.after === 0
            ? { deliver_policy: DeliverPolicy.All }
            : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: which.after + 1 }),
          filter_subject: this.threads + which.thread,
        };
    }
  }

  private get live(): string {
    return `agui.${this.options.space}.live`;
  }

  private end(why: unknown): void {
    if (this.signal.aborted) return;
    this.why = why;
    this.ended.abort();
  }

  /** By the leader of the stream: a copy on another server may be behind. */
  private async stored(
    query: { seq: number } | { last_by_subj: string } | { seq: number; next_by_subj: string },
  ): Promise<LogMessage | undefined> {
    const { streams } = await this.manager.get();
    const found = await streams.getMessage(this.stream, query);
    return found === null ? undefined : this.messageOf(found.seq, found.subject, found.header, () => found.data);
  }

  private messageOf(
    seq: number,
    subject: string,
    headers: MsgHdrs | undefined,
    body: () => Uint8Array,
  ): LogMessage | undefined {
    if (!subject.startsWith(this.threads)) return undefined;
    const part = decodePart(headers?.get(PART_HEADER) ?? "");
    const before = headers?.get(EXPECTED_LAST) ?? "";
    return {
      seq,
      thread: subject.slice(this.threads.length),
      // A copy: what comes in is a part of a larger buffer, which would be stored and kept whole.
      body: new Uint8Array(body()),
      key: part?.key ?? (headers?.get(MESSAGE_ID) || undefined),
      part,
      isWhole: headers?.has(WHOLE_HEADER) === true,
      before: /^\d+$/.test(before) ? Number(before) : undefined,
    };
  }
}

/** @param version as servers say theirs, such as "2.10.4"; one that cannot be read is none of them */
function isAtLeast(version: string | undefined, [major, minor]: readonly [number, number]): boolean {
  const [, ofMajor, ofMinor] = /^(\d+)\.(\d+)/.exec(version ?? "") ?? [];
  return Number(ofMajor) > major || (Number(ofMajor) === major && Number(ofMinor) >= minor);
}
