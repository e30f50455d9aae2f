import { abortWith, onAbort } from "../platform/abort.js";
import type { Clock } from "../platform/clock.js";
import { isRecord } from "../run/json.js";
import type { DeviceName } from "../storage/devices.js";
import type { OnlineDevice } from "../wire/shapes.js";
import { MOST_AGENTS } from "./options.js";
import type { Space } from "./space.js";

/** How often a device says that it is there, in ms. */
const BEAT_MS = 5_000;
/** How long others take to answer whoever has just connected, in ms. */
const ANSWER_MS = 1_000;
/** A device that was not heard of for so long is away, in ms. */
const AWAY_MS = 3 * BEAT_MS;

/** What a device says of itself. */
export interface SaidDevice extends DeviceName {
  /** Ids of the agents that it executes for others. */
  readonly agents?: readonly string[];
}

/** Asks the device that executes a run to stop it. */
export interface StopCall {
  readonly threadId: string;
  readonly runId: string;
}

type Told =
  | { readonly type: "here"; readonly device: SaidDevice; readonly asks?: true; readonly host?: string }
  | { readonly type: "gone"; readonly device: DeviceName }
  | ({ readonly type: "stop"; readonly to: string } & StopCall);

const isText = (value: unknown): value is string => typeof value === "string" && value.length <= 10_000;
const isDevice = (value: unknown): value is DeviceName =>
  isRecord(value) && isText(value["id"]) && isText(value["name"]);
const areAgents = (agents: unknown): boolean =>
  agents === undefined || (Array.isArray(agents) && agents.length <= MOST_AGENTS && agents.every(isText));

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function decode(body: Uint8Array): Told | undefined {
  let told: unknown;
  try {
    told = JSON.parse(decoder.decode(body));
  } catch {
    return undefined;
  }
  if (!isRecord(told)) return undefined;
  const { type, device } = told;
  const isPresence =
    (type === "here" || type === "gone") &&
    isDevice(device) &&
    areAgents((device as SaidDevice).agents) &&
    (told["host"] === undefined || isText(told["host"]));
  // Ids have any length.
  const isStop = type === "stop" && ["to", "threadId", "runId"].every((field) => typeof told[field] === "string");
  return isPresence || isStop ? (told as unknown as Told) : undefined; // its fields were checked
}

interface Heard {
  readonly device: SaidDevice;
  readonly at: number;
  readonly hasLeft: boolean;
}

/** Which devices are online, and what one tells another at once. Nothing here is kept, and nothing relies on it alone. */
export class Devices {
  /** All others that were ever heard of, and when last. `hasLeft`: they have said so. */
  private readonly heard = new Map<string, Heard>();
  /** When the connection was made: before, nobody could be heard. */
  private since: number | undefined;
  private readonly ended: AbortController;
  private readonly here: Extract<Told, { type: "here" }>;

  /**
   * @param host id of this host. @param changed called when others are online than before, and now and then. @param isTwin
   *   another device has the same id, as where a profile was copied, and this one is to take another one: called as often as
   *   that is heard. @param stop another device asks for the end of a run of this one
   */
  constructor(
    private readonly space: Space,
    private readonly self: SaidDevice,
    private readonly host: string,
    private readonly clock: Clock,
    private readonly changed: () => void,
    private readonly isTwin: () => void,
    private readonly stop: (call: StopCall) => void,
    signal: AbortSignal,
  ) {
    this.here = { type: "here", device: self, host };
    const hearing = space.told$.subscribe((body) => this.hear(decode(body)));
    const online = space.state$.subscribe(({ is }) => {
      const isOnline = is === "online";
      if (isOnline === (this.since !== undefined)) return;
      this.since = isOnline ? clock.elapsed() : undefined;
      if (isOnline) this.tell({ ...this.here, asks: true });
    });
    this.ended = abortWith(signal);
    const { signal: ended } = this.ended;
    onAbort(ended, () => {
      hearing.unsubscribe();
      online.unsubscribe();
    });
    void this.beat(ended);
  }

  /** Those that are online, this one first. */
  get online(): readonly OnlineDevice[] {
    if (this.since === undefined) return [];
    const now = this.clock.elapsed();
    const others = [...this.heard.values()].filter(({ at, hasLeft }) => !hasLeft && now - at < AWAY_MS);
    return [{ ...this.self, isThis: true }, ...others.map(({ device }) => device)];
  }

  /** Nothing was heard of it for long, though it would have been. */
  isAway(id: string): boolean {
    if (this.since === undefined || id === this.self.id) return false;
    const { hasLeft = false, at = -Infinity } = this.heard.get(id) ?? {};
    return hasLeft || this.clock.elapsed() - Math.max(this.since, at) >= AWAY_MS;
  }

  /** All that are online have had the time to say so, since the connection was made. */
  get areHeard(): boolean {
    return this.since !== undefined && this.clock.elapsed() - this.since >= ANSWER_MS;
  }

  /** It was heard of once. */
  wasHere(id: string): boolean {
    return this.heard.has(id);
  }

  /** It was heard of lately. */
  isOnline(id: string): boolean {
    return this.online.some((device) => device.id === id);
  }

  askToStop(id: string, call: StopCall): void {
    this.tell({ type: "stop", to: id, ...call });
  }

  /** Others need not wait until they miss it. From now on it says nothing, and hears of nobody. */
  leave(): void {
    this.ended.abort();
    this.tell({ type: "gone", device: this.self });
  }

  private tell(told: Told): void {
    this.space.tell(encoder.encode(JSON.stringify(told)));
  }

  private hear(told: Told | undefined): void {
    if (told?.type === "stop" && told.to === this.self.id) this.stop(told);
    if (told === undefined || told.type === "stop") return;
    const { id } = told.device;
    if (id === this.self.id) {
      // Of a host of this device before this one, the last words are heard by then.
      const isLate = this.since !== undefined && this.clock.elapsed() - this.since >= BEAT_MS;
      if (told.type === "here" && isLate && told.host !== undefined && told.host < this.host) this.isTwin();
      return;
    }
    const wasHere = this.isOnline(id);
    const hasLeft = told.type === "gone";
    if (!hasLeft || this.heard.has(id)) this.heard.set(id, { device: told.device, at: this.clock.elapsed(), hasLeft });
    if (told.type === "here" && told.asks === true) this.tell(this.here);
    if (wasHere !== this.isOnline(id)) this.changed();
  }

  private async beat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.clock.after(BEAT_MS, signal);
      if (signal.aborted) return;
      if (this.since !== undefined) this.tell(this.here);
      // One that just falls silent is noticed by nothing else.
      this.changed();
    }
  }
}
