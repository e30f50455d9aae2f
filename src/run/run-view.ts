import type { BaseEvent } from "@ag-ui/client";
import { Fold, type FoldBase } from "./fold.js";
import { LiveView } from "./live-view.js";
import { livePrelude, shownOf, type Shown } from "./prelude.js";
import type { Chunk, OpenConstructs } from "./types.js";

/** Everything that the events of one run so far have led to. Must see every event of the run, in order. */
export class RunView {
  readonly fold: Fold;
  readonly live: LiveView;

  /** @param frontEndTools names of the tools in `input.tools` */
  constructor(base: FoldBase, frontEndTools?: ReadonlySet<string>) {
    this.fold = new Fold(base);
    this.live = new LiveView(frontEndTools);
  }

  apply(event: BaseEvent): void {
    this.fold.apply(event);
    this.live.note(event);
  }

  applyChunk(chunk: Chunk): void {
    for (const { event } of chunk.entries) this.apply(event);
  }

  /** What is open now; `undefined` when nothing is. */
  open(): OpenConstructs | undefined {
    return this.live.open.snapshot();
  }

  /** See {@link livePrelude}. */
  prelude(shown: Shown = {}): BaseEvent[] {
    return livePrelude(this.fold, this.live, shown);
  }

  /** There are messages before those that a prelude with this limit shows. */
  hasEarlier(limit: number | undefined): boolean {
    return shownOf(this.fold, this.live, limit).earlier;
  }
}
