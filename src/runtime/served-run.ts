import type { BaseEvent } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { Frame, LiveRun } from "../wire/shapes.js";
import type { RequestEnd } from "./request.js";

/** A run as its requester gets it. */
export type ServedRun = {
  /** Resolves when the run is settled, with or without readers; for the after-middleware. Never rejects. */
  readonly ended: Promise<RequestEnd>;
  /** Must be called when the reader has everything or left. */
  readonly left: () => void;
} & (
  | {
      /** Of a runner of this library. */
      readonly is: "local";
      /** Whether it is in its thread's log; if not, its cursors are useless. */
      readonly isRecorded: boolean;
      readonly run: LiveRun;
      /** Its frames from the first event to the settled end; to be opened once. */
      readonly frames: (signal: AbortSignal) => AsyncGenerator<Frame, void>;
    }
  /** Of a third-party runner: the first subscription starts it, at the latest; later ones miss what came before. */
  | { readonly is: "foreign"; readonly events$: Observable<BaseEvent> }
);
