import type { BaseEvent } from "@ag-ui/client";
import { defer, map, mergeMap, type Observable } from "rxjs";
import type { AgentRunnerConnectRequest, AgentRunnerRunRequest } from "../run/contract.js";
import { loaded } from "../run/loaded.js";
import type { Lost } from "../wire/lost.js";

/*
 * CopilotKit's runtime 1.75 passes a runner's events unchanged to clients before AG-UI 1.0, and names no version. It is
 * detected by two habits: its agents come with their thread and headers set, and `connect` gets headers.
 */

export const runsForOlder = ({ threadId, agent, input }: AgentRunnerRunRequest): boolean =>
  input.protocolVersion === undefined && agent.threadId === threadId && "headers" in agent;

export const connectsForOlder = ({ headers }: AgentRunnerConnectRequest): boolean => headers !== undefined;

export const streamFor = (isOlder: boolean, events$: Observable<BaseEvent>, lost: Lost): Observable<BaseEvent> =>
  isOlder
    ? defer(() => loaded(import("../wire/protocol-versions.js"))).pipe(
        mergeMap(({ forOlder }) => events$.pipe(map(forOlder(lost)))),
      )
    : events$;
