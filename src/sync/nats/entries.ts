import { consoleLogger } from "../../platform/log.js";
import type { SpaceEntry } from "../space.js";
import { failAsBehind } from "./errors.js";
import { Assembly, type LogMessage } from "./parts.js";
import type { SpaceLog } from "./space-log.js";

/** How often what was missed is read again, slower each time, before it counts as lost. */
const TRIES = 5;

/** A server has left out what the log has, or had. Whoever reads begins again after `after`. */
export class Missed extends Error {
  constructor(readonly after: number) {
    super("A server has left out entries");
  }
}

/** How often something was missed, by thread and place. */
export type MissedPlaces = Map<string, number>;

export function entryOf({ thread, seq, key: mark }: LogMessage, body: Uint8Array): SpaceEntry {
  return { is: "entry", thread, seq, body, mark };
}

/** Makes entries of messages that are read in order: parts are put together, and void entries left out. */
export class Entries {
  private readonly assembly = new Assembly();
  private readonly chain: Chain;

  /** @param from the place after which they are read */
  constructor(from: number, missed: MissedPlaces) {
    this.chain = new Chain(from, missed);
  }

  /** @returns the entry that this message completes, if it does and is not known. Errors: Missed, those of `log` */
  async take(message: LogMessage, log: SpaceLog): Promise<SpaceEntry | undefined> {
    if (this.chain.has(message)) return undefined;
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
  constructor(
    private readonly from: number,
    private readonly missed: MissedPlaces,
  ) {}

  /** It was read before: what was missed is read again with what came behind it. */
  has({ thread, seq }: LogMessage): boolean {
    return seq <= (this.lasts.get(thread) ?? 0);
  }

  /** @returns whether the entry whose last message this is follows its thread's last one */
  async take(message: LogMessage, log: SpaceLog): Promise<boolean> {
    if (!(await this.isNext(message, log))) return false;
    this.lasts.set(message.thread, message.seq);
    return true;
  }

  private async isNext(message: LogMessage, log: SpaceLog): Promise<boolean> {
    const { thread, seq, part, isWhole } = message;
    if (part === undefined) return true;
    const { base } = part;
    const last = this.lasts.get(thread) ?? (this.from === 0 && !isWhole ? 0 : undefined);
    if (last === base) return true;
    const isBefore = base <= (last ?? this.from);
    if (!isWhole && !isBefore && (await this.isMissing(message, base, last, log))) return this.goesOn(thread, last);
    // Of what came before the place, or was removed meanwhile, only the log knows.
    if (last !== undefined && (isBefore || !isWhole)) return false;
    return (await log.knownFollower(thread, base, seq)).seq === seq;
  }

  /** Whether something that was not read stands before it, or is lost: else it is void, as what it follows is. */
  private async isMissing(
    { thread, seq }: LogMessage,
    base: number,
    last: number | undefined,
    log: SpaceLog,
  ): Promise<boolean> {
    const after = last ?? this.from;
    // First of all: a server that has this one has what stands before it.
    if ((await log.at(seq)) === undefined) failAsBehind();
    const first = last === undefined ? await log.next(thread, after + 1) : undefined;
    const next = await log.follower(thread, last ?? first?.part?.base ?? 0);
    if (next !== undefined) return next.seq > after && next.seq < seq;
    return base < seq && (await log.at(base)) === undefined;
  }

  /** @returns true: it is not there, and what is there counts. @throws Missed */
  private goesOn(thread: string, last = this.from): boolean {
    const place = `${thread} ${last}`;
    const tries = (this.missed.get(place) ?? 0) + 1;
    this.missed.set(place, tries);
    if (tries <= TRIES) throw new Missed(last);
    if (tries === TRIES + 1) consoleLogger.warn(`The servers lack entries of a thread of the space after ${last}`);
    return true;
  }
}
