import type { BaseEvent } from "@ag-ui/client";
import { map, type Observable } from "rxjs";
import type { AgentRunnerConnectRequest, AgentRunnerRunRequest } from "../run/contract.js";
import { eventMapper } from "../wire/protocol-versions.js";

/*
 * CopilotKit's runtime 1.75 hands a runner's events on to clients before AG-UI 1.0 as they are, and names no version. It is
 * known by what else it does: its agents are handed over with their thread and headers set, and `connect` is told headers.
 */

export const runsForOlder = ({ threadId, agent, input }: AgentRunnerRunRequest): boolean =>
  input.protocolVersion === undefined && agent.threadId === threadId && "headers" in agent;

export const connectsForOlder = ({ headers }: AgentRunnerConnectRequest): boolean => headers !== undefined;

/** An event as clients before 1.0 read it. */
export const forOlder = (event: BaseEvent): BaseEvent => toOlder?.(event) ?? event;
const toOlder = eventMapper(undefined);

export const streamFor = (isOlder: boolean, events$: Observable<BaseEvent>): Observable<BaseEvent> =>
  isOlder ? events$.pipe(map(forOlder)) : events$;
