import type { BaseEvent } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { Frame, LiveRun } from "../wire/shapes.js";
import type { RequestEnd } from "./request.js";

/** A run for who asked for it. */
export type ServedRun = {
  /** When the run is settled, whoever reads it; for the middleware that is told. Never rejects. */
  readonly ended: Promise<RequestEnd>;
  /** To be called when its reader has all of it, or left. */
  readonly left: () => void;
} & (
  | {
      /** Of a runner of this library. */
      readonly is: "local";
      /** It stands in the log of its thread. Else its cursors are of no use to anybody. */
      readonly isRecorded: boolean;
      readonly run: LiveRun;
      /** Its frames from the first event to the settled end; to be opened once. */
      readonly frames: (signal: AbortSignal) => AsyncGenerator<Frame, void>;
    }
  /** Of a runner of another make: each subscriber gets the run from its first event. */
  | { readonly is: "foreign"; readonly events$: Observable<BaseEvent> }
);
