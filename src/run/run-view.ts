import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { Fold, type FoldBase } from "./fold.js";
import { OpenConstructTracker } from "./open-constructs.js";

/** Everything that the events of one run so far have led to. Must see every event of the run, in order. */
export class RunView {
  readonly fold: Fold;
  readonly open = new OpenConstructTracker();
  runStarted: BaseEvent | undefined;
  /** CUSTOM and RAW events so far. */
  customs: BaseEvent[] = [];
  /** Starts and ends of subagents so far: a later one may name an ended one as its parent. */
  subagents: BaseEvent[] = [];
  terminal: BaseEvent | undefined;

  constructor(base: FoldBase) {
    this.fold = new Fold(base);
  }

  apply(event: BaseEvent): void {
    this.fold.apply(event);
    this.open.note(event);
    switch (event.type) {
      case EventType.RUN_STARTED:
        this.runStarted = event;
        this.customs = [];
        this.subagents = [];
        this.terminal = undefined;
        return;
      case EventType.CUSTOM:
      case EventType.RAW:
        this.customs.push(event);
        return;
      case EventType.SUBAGENT_STARTED:
      case EventType.SUBAGENT_FINISHED:
      case EventType.SUBAGENT_ERROR:
        this.subagents.push(event);
        return;
      case EventType.RUN_FINISHED:
      case EventType.RUN_ERROR:
        this.terminal = event;
        return;
      default:
        return;
    }
  }
}
