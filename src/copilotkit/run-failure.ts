import { createElement, useMemo, type ReactNode } from "react";
import { combineLatest, map, type Observable } from "rxjs";
import type { LocalAgent, RunFailure as Failure } from "../client/index.js";
import { shownOf, useSnapshot } from "../react/provider.js";
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

/** Why the agent's thread did not go on, as long as that is the last that happened in it. */
const failureOf = (agent: LocalAgent): Observable<Pick<Failure, "message"> | undefined> =>
  combineLatest([agent.run$, refusalOf(agent)]).pipe(
    map(([run, refusal]) => (run.is === "idle" ? (run.gone ?? run.last?.error ?? refusal) : undefined)),
  );

/**
 * Says in the chat why the last run failed, in whichever tab it was started, or why one was refused here; empty while all is
 * well.
 */
export function RunFailure({ agent, onRetry, retryLabel = "Try again" }: RunFailureProps): ReactNode {
  useStyle();
  const shown = useMemo(() => (isLive(agent) ? shownOf(failureOf(agent)) : undefined), [agent]);
  const failure = useSnapshot(shown, undefined);
  if (failure === undefined) return null;
  return createElement(
    "div",
    { role: "alert", className: "agui-failure" },
    createElement("span", null, failure.message),
    onRetry && createElement("button", { type: "button", onClick: onRetry }, retryLabel),
  );
}
