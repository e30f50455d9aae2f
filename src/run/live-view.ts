import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { OpenConstructTracker } from "./open-constructs.js";

/** What a prelude repeats of a live run beside its messages and state. Must see every event of the run. */
export class LiveView {
  readonly open: OpenConstructTracker;
  #runStarted: BaseEvent | undefined;
  #customs: BaseEvent[] = [];
  #subagents: BaseEvent[] = [];
  #terminal: BaseEvent | undefined;

  /** @param frontEndTools names of the tools in `input.tools` */
  constructor(frontEndTools: ReadonlySet<string> = new Set()) {
    this.open = new OpenConstructTracker(frontEndTools);
  }

  note(event: BaseEvent): void {
    this.open.note(event);
    switch (event.type) {
      case EventType.RUN_STARTED:
        this.#runStarted = event;
        this.#customs = [];
        this.#subagents = [];
        this.#terminal = undefined;
        return;
      case EventType.CUSTOM:
      case EventType.RAW:
        this.#customs.push(event);
        return;
      case EventType.SUBAGENT_STARTED:
      case EventType.SUBAGENT_FINISHED:
      case EventType.SUBAGENT_ERROR:
        this.#subagents.push(event);
        return;
      case EventType.RUN_FINISHED:
      case EventType.RUN_ERROR:
        this.#terminal = event;
        return;
      default:
        return;
    }
  }

  get runStarted(): BaseEvent | undefined {
    return this.#runStarted;
  }

  /** CUSTOM and RAW events so far. */
  get customs(): readonly BaseEvent[] {
    return this.#customs;
  }

  /** Starts and ends of subagents so far: a later one may name an ended one as its parent. */
  get subagents(): readonly BaseEvent[] {
    return this.#subagents;
  }

  /** The terminal event, once the run has one. */
  get terminal(): BaseEvent | undefined {
    return this.#terminal;
  }
}
