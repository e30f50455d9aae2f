import type { BaseEvent } from "@ag-ui/client";
import { map, type Observable } from "rxjs";
import type { AgentRunnerConnectRequest, AgentRunnerRunRequest } from "../run/contract.js";
import { eventMapper, type Lost } from "../wire/protocol-versions.js";

/*
 * CopilotKit's runtime 1.75 passes a runner's events unchanged to clients before AG-UI 1.0, and names no version. It is
 * detected by two habits: its agents come with their thread and headers set, and `connect` gets headers.
 */

export const runsForOlder = ({ threadId, agent, input }: AgentRunnerRunRequest): boolean =>
  input.protocolVersion === undefined && agent.threadId === threadId && "headers" in agent;

export const connectsForOlder = ({ headers }: AgentRunnerConnectRequest): boolean => headers !== undefined;

/** Maps an event to the form that clients before 1.0 read. */
export function forOlder(lost: Lost): (event: BaseEvent) => BaseEvent {
  const toOlder = eventMapper(undefined, lost);
  return (event) => toOlder?.(event) ?? event;
}

export const streamFor = (isOlder: boolean, events$: Observable<BaseEvent>, lost: Lost): Observable<BaseEvent> =>
  isOlder ? events$.pipe(map(forOlder(lost))) : events$;
