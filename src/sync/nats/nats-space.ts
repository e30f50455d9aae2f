import { Subject, type Observable } from "rxjs";
import { abortWith, sharedController } from "../../platform/abort.js";
import { systemClock, type Clock } from "../../platform/clock.js";
import { browserNetwork } from "../../platform/network.js";
import {
  SpaceOffline,
  type NewPlace,
  type Space,
  type SpaceEntry,
  type SpaceFrame,
  type SpacePlace,
  type SpaceState,
} from "../space.js";
import { addEntry } from "./add-entry.js";
import { Connection } from "./connection.js";
import { isUnanswered, isUnheard } from "./errors.js";
import { IdleLeader } from "./idle-leader.js";
import { checkOptions, isToken, type NatsSpaceOptions } from "./options.js";
import { Assembly, type LogMessage } from "./parts.js";
import { removeBefore } from "./remove-entries.js";
import type { SpaceLog, Standing, Which } from "./space-log.js";

export type { NatsCredentials, NatsSpaceOptions } from "./options.js";

/** How long an answer of the server may take, in ms. */
const TIMEOUT_MS = 5_000;
/** Before a lost consumer is made again, and before an unlikely answer is asked for again, in ms. */
const AGAIN_MS = 250;

/**
 * A space in a stream of NATS JetStream: `AGUI_<space>`, with a subject for each thread, `agui.<space>.t.<thread>`. What is
 * told goes over `agui.<space>.live`. It connects at once, and again for ever.
 *
 * @throws RunnerError `invalid-input`
 */
export function natsSpace(options: NatsSpaceOptions): Space {
  return natsSpaceOf(options, { isServer: false });
}

/** As {@link natsSpace}. `isServer`: a refusal is not final, since no page is reloaded that would try again. */
export function natsSpaceOf(options: NatsSpaceOptions, { isServer }: { readonly isServer: boolean }): Space {
  checkOptions(options);
  return new NatsSpace(options, isServer);
}

class NatsSpace implements Space {
  private readonly closed = sharedController();
  private readonly told = new Subject<Uint8Array>();
  private readonly clock: Clock;
  private readonly timeoutMs: number;
  private readonly connection: Connection;
  private readonly idleLeader: IdleLeader;

  constructor(options: NatsSpaceOptions, isServer: boolean) {
    const { space, replicas = 1, timeoutMs = TIMEOUT_MS, clock = systemClock } = options;
    this.clock = clock;
    this.timeoutMs = timeoutMs;
    this.idleLeader = new IdleLeader(clock);
    const heard = (log: SpaceLog): void => log.hear((body) => this.told.next(body));
    const logOptions = { space, replicas, timeoutMs, clock };
    this.connection = new Connection(options, logOptions, heard, browserNetwork, isServer);
  }

  get state$(): Observable<SpaceState> {
    return this.connection.state$;
  }

  get told$(): Observable<Uint8Array> {
    return this.told.asObservable();
  }

  async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    const until = abortWith(signal, this.closed.signal);
    // Parts of one entry may come before and after a reconnection.
    let entries: Entries | undefined;
    let place = after;
    try {
      for (;;) {
        const log = await this.connection.online(until.signal);
        if (log === undefined) return;
        try {
          const standing = await this.standing(log, place);
          const { id, last } = standing;
          if (place !== undefined && !isWithin(place, standing)) {
            place = undefined;
            entries = undefined;
          }
          place ??= { log: id, seq: 0 };
          entries ??= new Entries(place.seq);
          yield { is: "begins", log: id, last };
          for await (const message of log.messages({ are: "from", seq: place.seq + 1 }, until.signal)) {
            if (message.seq <= place.seq) continue;
            const entry = await entries.take(message, log);
            place = { log: id, seq: message.seq };
            yield entry ?? { is: "passed", seq: message.seq };
          }
        } catch (error) {
          // Whatever it is, it is tried again, and slower each time, as long as it does not work.
          log.drop(error);
        }
        if (!log.signal.aborted) await this.clock.after(AGAIN_MS, until.signal);
      }
    } finally {
      until.abort();
    }
  }

  async *lasts(signal: AbortSignal): AsyncGenerator<SpaceEntry, void> {
    const assembly = new Assembly();
    yield* this.present({ are: "lasts" }, signal, async (message, log) =>
      entryOf(message, (await assembly.take(message, log)) ?? NOTHING),
    );
  }

  async *entries(thread: string, signal: AbortSignal): AsyncGenerator<SpaceEntry, void> {
    checkThread(thread);
    const entries = new Entries(0);
    yield* this.present({ are: "of-thread", thread }, signal, (message, log) => entries.take(message, log));
  }

  async add(thread: string, body: Uint8Array, { last, id, isWhole = false }: NewPlace): Promise<number | undefined> {
    checkThread(thread);
    const log = this.online();
    try {
      const entry = { thread, body, last, id, isWhole };
      const seq = await addEntry(log, entry, { clock: this.clock, staleMs: 2 * this.timeoutMs });
      this.idleLeader.taken();
      return seq;
    } catch (error) {
      if (log.isReplicated && isUnheard(error)) await this.idleLeader.notTaken(log).catch(() => undefined);
      throw isUnanswered(error) || log.signal.aborted ? offline(log, error) : error;
    }
  }

  async remove(thread: string, below: number): Promise<boolean> {
    checkThread(thread);
    const log = this.online();
    try {
      return await removeBefore(log, thread, below);
    } catch (error) {
      throw isUnanswered(error) || log.signal.aborted ? offline(log, error) : error;
    }
  }

  tell(body: Uint8Array): void {
    this.connection.current?.tell(body);
  }

  async close(): Promise<void> {
    this.closed.abort();
    await this.connection.close();
    this.told.complete();
  }

  /** What is there now, of what `take` makes of the messages. Errors: SpaceOffline */
  private async *present(
    which: Which,
    signal: AbortSignal,
    take: (message: LogMessage, log: SpaceLog) => Promise<SpaceEntry | undefined>,
  ): AsyncGenerator<SpaceEntry, void> {
    if (signal.aborted) return;
    const log = this.online();
    try {
      for await (const message of log.messages(which, signal)) {
        const entry = await take(message, log);
        if (entry !== undefined) yield entry;
      }
    } catch (error) {
      if (!signal.aborted) throw offline(log, error);
    }
  }

  private online(): SpaceLog {
    const { current } = this.connection;
    if (current === undefined) throw new SpaceOffline("There is no connection");
    return current;
  }

  /** A server that has just begun to lead may not yet say all that was told before: it is asked again for a while. */
  private async standing(log: SpaceLog, place: SpacePlace | undefined): Promise<Standing> {
    const since = this.clock.elapsed();
    for (;;) {
      const standing = await log.standing();
      const isUnlikely = place?.log === standing.id && place.seq > standing.lastSeq;
      if (!isUnlikely || this.clock.elapsed() - since > this.timeoutMs) return standing;
      await this.clock.after(AGAIN_MS, log.signal);
    }
  }
}

/** What an entry that is not whole says. */
const NOTHING = new Uint8Array();

const entryOf = ({ thread, seq }: LogMessage, body: Uint8Array): SpaceEntry => ({ is: "entry", thread, seq, body });

/** @throws TypeError */
function checkThread(thread: string): void {
  if (!isToken(thread)) throw new TypeError(`A thread of a space has no such name: ${thread}`);
}

/** Gives the connection up: readers hear of the next one by a `begins`, so whoever waits to repeat the call knows when. */
function offline(log: SpaceLog, error: unknown): SpaceOffline {
  log.drop(error);
  return new SpaceOffline(error instanceof Error ? error.message : String(error), { cause: error });
}

/** Makes entries of messages that are read in order: parts are put together, and void entries left out. */
class Entries {
  private readonly assembly = new Assembly();
  private readonly chain: Chain;

  /** @param from the place after which they are read */
  constructor(from: number) {
    this.chain = new Chain(from);
  }

  /** @returns the entry that this message completes, if it does. Errors: those of `log` */
  async take(message: LogMessage, log: SpaceLog): Promise<SpaceEntry | undefined> {
    const body = await this.assembly.take(message, log);
    const isNext = body !== undefined && (!log.isReplicated || (await this.chain.take(message, log)));
    return isNext ? entryOf(message, body) : undefined;
  }
}

/** Which entries of a replicated log are void, see {@link SpaceLog.isReplicated}. */
class Chain {
  /** The last entries of threads. */
  private readonly lasts = new Map<string, number>();

  /** @param from the place after which it is read */
  constructor(private readonly from: number) {}

  /** @returns whether the entry whose last message this is follows its thread's last one */
  async take(message: LogMessage, log: SpaceLog): Promise<boolean> {
    if (!(await this.isNext(message, log))) return false;
    this.lasts.set(message.thread, message.seq);
    return true;
  }

  private async isNext({ thread, seq, part, isWhole }: LogMessage, log: SpaceLog): Promise<boolean> {
    if (part === undefined) return true;
    const { base } = part;
    const last = this.lasts.get(thread) ?? (this.from === 0 && !isWhole ? 0 : undefined);
    if (last === base) return true;
    // Of what came before the place, or was removed meanwhile, only the log knows.
    if (last !== undefined && !(isWhole && base > last)) return false;
    return (await log.knownFollower(thread, base)).seq === seq;
  }
}

const isWithin = ({ log, seq }: SpacePlace, { id, lastSeq }: Standing): boolean => log === id && seq <= lastSeq;
