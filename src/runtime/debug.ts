import type { BaseEvent } from "@ag-ui/client";
import { checkNames, FLAG, FUNCTION, type Names } from "../run/options.js";

/** What the runtime logs of its requests, runs and events. */
export interface DebugOptions {
  /** Requests and runs. Default true. */
  readonly lifecycle?: boolean;
  /** The type of each event that leaves. Default true. */
  readonly events?: boolean;
  /** The whole event instead. Default false: what a person wrote stays out of the log. */
  readonly verbose?: boolean;
  /** Where it goes. Default `console.debug`. */
  readonly log?: (message: string, details: Readonly<Record<string, unknown>>) => void;
}

const NAMES: Names<DebugOptions> = { lifecycle: FLAG, events: FLAG, verbose: FLAG, log: FUNCTION };

/** Undefined members print nothing. */
export interface Debug {
  readonly lifecycle?: (message: string, details: Readonly<Record<string, unknown>>) => void;
  readonly event?: (event: BaseEvent, details: Readonly<Record<string, unknown>>) => void;
}

export function debugOf(option: boolean | DebugOptions | undefined): Debug {
  if (option === undefined || option === false) return {};
  if (option !== true) checkNames(option, NAMES, { of: "AgentRuntime", within: "debug" });
  const { lifecycle = true, events = true, verbose = false, log } = option === true ? {} : option;
  const write = log ?? ((message, details) => console.debug(`[ag-ui-local-runtime] ${message}`, details));
  const print: typeof write = (message, details) => {
    try {
      write(message, details);
    } catch {
      // A failing log must not fail the request.
    }
  };
  return {
    ...(lifecycle && { lifecycle: print }),
    ...(events && {
      event: (event, details) => print("event", { ...details, ...(verbose ? { event } : { type: event.type }) }),
    }),
  };
}
