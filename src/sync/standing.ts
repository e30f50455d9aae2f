import { BehaviorSubject } from "rxjs";
import { equalJson } from "../run/json.js";
import type { OnlineDevice, SyncState } from "../wire/shapes.js";
import type { SpaceState } from "./space.js";

interface StandingParts {
  /** The seq up to which the space was read. */
  readonly read: () => number;
  /** See AbsentThreads. */
  readonly toCome: () => number | undefined;
  /** See Devices. */
  readonly online: () => readonly OnlineDevice[];
}

/** How a device stands to its space, and what is told of that. */
export class Standing {
  readonly status = new BehaviorSubject<SyncState>({ is: "connecting", isCurrent: false, devices: [] });
  state: SpaceState = { is: "connecting" };
  /** The last entry when the connection was made. */
  target: number | undefined;
  /** What the space says is not understood here: nothing is read or sent any more. The message says what to do. */
  refused: string | undefined;
  /** Why nothing can be sent. */
  private failure: string | undefined;

  constructor(private readonly of: StandingParts) {}

  /** Everything was read, and the connection is there. */
  get isCurrent(): boolean {
    return this.state.is === "online" && this.target !== undefined && this.of.read() >= this.target;
  }

  /** The connection has changed. */
  changed(state: SpaceState): void {
    if (state.is !== "online") this.target = undefined;
    if (this.refused === undefined) this.state = state;
  }

  /** This host leaves the space. */
  refuse(message: string): void {
    this.refused = message;
    this.target = undefined;
    this.state = { is: "refused", message };
  }

  failed(why: string | undefined): void {
    if (why === this.failure) return;
    this.failure = why;
    this.tell();
  }

  /** Tells it, if it has changed. */
  tell(): void {
    const { state, isCurrent, failure } = this;
    const told = state.is === "online" && failure !== undefined ? { ...state, message: failure } : state;
    const toCome = this.of.toCome();
    const devices = this.of.online();
    const next: SyncState = { ...told, isCurrent, ...(toCome !== undefined && { toCome }), devices };
    if (!equalJson(next, this.status.value)) this.status.next(next);
  }
}
