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
import { Entries, entryOf, Missed, type MissedPlaces } from "./entries.js";
import { isUnanswered, isUnheard } from "./errors.js";
import { IdleLeader } from "./idle-leader.js";
import { checkOptions, isToken, type NatsSpaceOptions } from "./options.js";
import { Assembly, isUnfinished, type LogMessage } from "./parts.js";
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
  private readonly missed: MissedPlaces = new Map();

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
          const { id } = standing;
          let { last } = standing;
          if (place !== undefined && !(await isThere(place, standing, log))) {
            if (place.log === id) last = Math.min(last, place.seq - 1);
            place = undefined;
            entries = undefined;
            this.missed.clear();
          }
          place ??= { log: id, seq: 0 };
          entries ??= new Entries(place.seq, this.missed);
          yield { is: "begins", log: id, last };
          for await (const message of log.messages({ are: "from", seq: place.seq + 1 }, until.signal)) {
            if (message.seq <= place.seq) continue;
            const entry = await entries.take(message, log);
            const { seq, key: mark } = message;
            place = { log: id, seq, mark };
            yield entry ?? { is: "passed", seq, mark };
          }
        } catch (error) {
          // Whatever it is, it is tried again, and slower each time, as long as it does not work.
          if (error instanceof Missed && place !== undefined) place = { log: place.log, seq: error.after };
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
    yield* this.present({ are: "lasts" }, signal, async (message, log) => {
      const body = await assembly.take(message, log);
      return body === undefined ? entryBefore(message, log) : entryOf(message, body);
    });
  }

  async *entries(thread: string, signal: AbortSignal, after = 0): AsyncGenerator<SpaceEntry, void> {
    checkThread(thread);
    const entries = new Entries(after, this.missed);
    yield* this.present({ are: "of-thread", thread, after }, signal, (message, log) => entries.take(message, log));
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

/** A message that completes no entry no reader gets: the last one of its thread is that which it says it follows. */
async function entryBefore({ thread, seq: end, part }: LogMessage, log: SpaceLog): Promise<SpaceEntry> {
  const base = part === undefined || part.base === 0 ? undefined : await log.at(part.base);
  // Anybody may have written anything.
  const isIts = base?.thread === thread && base.seq < end && !isUnfinished(base);
  return { is: "entry", thread, seq: isIts ? base.seq : 0, end, body: NOTHING };
}

/** @throws TypeError */
function checkThread(thread: string): void {
  if (!isToken(thread)) throw new TypeError(`A thread of a space has no such name: ${thread}`);
}

/** Gives the connection up: readers hear of the next one by a `begins`, so whoever waits to repeat the call knows when. */
function offline(log: SpaceLog, error: unknown): SpaceOffline {
  log.drop(error);
  return new SpaceOffline(error instanceof Error ? error.message : String(error), { cause: error });
}

/** The log goes as far, and has the same there, as far as is known: what was removed nobody knows. */
async function isThere(place: SpacePlace, { id, lastSeq }: Standing, log: SpaceLog): Promise<boolean> {
  if (place.log !== id || place.seq > lastSeq) return false;
  const message = place.mark === undefined ? undefined : await log.at(place.seq);
  return message === undefined || message.key === place.mark;
}
