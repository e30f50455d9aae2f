import { createElement, useMemo, useSyncExternalStore, type ReactNode } from "react";
import { combineLatest, map } from "rxjs";
import type { RunFailure as Failure } from "../client/index.js";
import { isLive, refusalOf } from "./live-agent.js";
import { useStyle } from "./style.js";

/** Of {@link RunFailure}. */
export interface RunFailureProps {
  /** The chat's agent, as CopilotKit's `useAgent()` gives it. One that is no agent of the worker shows nothing. */
  readonly agent: object;
  /** Shown as a button: see `regenerate`. */
  readonly onRetry?: () => void;
  /** What the button says. Default "Try again". */
  readonly retryLabel?: string;
}

interface FailureStore {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => Pick<Failure, "message"> | undefined;
}

const nothing = (): undefined => undefined;

/** Why the agent's thread did not go on, as long as that is the last that happened in it. */
function failureOf(agent: object): FailureStore {
  if (!isLive(agent)) return { subscribe: () => nothing, getSnapshot: nothing };
  let failure: Pick<Failure, "message"> | undefined;
  const failure$ = combineLatest([agent.run$, refusalOf(agent)]).pipe(
    map(([run, refusal]) => (run.is === "idle" ? (run.gone ?? run.last?.error ?? refusal) : undefined)),
  );
  const watch = (told: () => void): (() => void) => {
    const subscription = failure$.subscribe((latest) => {
      failure = latest;
      told();
    });
    return () => subscription.unsubscribe();
  };
  // It replays the latest value.
  watch(nothing)();
  return { subscribe: watch, getSnapshot: () => failure };
}

/**
 * Says in the chat why the last run failed, in whichever tab it was started, or why one was refused here; empty while all is
 * well.
 */
export function RunFailure({ agent, onRetry, retryLabel = "Try again" }: RunFailureProps): ReactNode {
  useStyle();
  const { subscribe, getSnapshot } = useMemo(() => failureOf(agent), [agent]);
  const failure = useSyncExternalStore(subscribe, getSnapshot, nothing);
  if (failure === undefined) return null;
  return createElement(
    "div",
    { role: "alert", className: "agui-failure" },
    createElement("span", null, failure.message),
    onRetry && createElement("button", { type: "button", onClick: onRetry }, retryLabel),
  );
}
