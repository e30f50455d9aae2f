// An agent of an AG-UI server elsewhere, run by the worker: its answers are in this browser's log, in every tab, and go on when a
// tab is closed. The worker file is `serveRuntime({ dbName: "my-app", ...remote("support", "https://agents.example.com/support") })`.
// The page gives what its server wants to know with each call, and has a message wait where there is no network:
//
//   const runtime = connectRuntime({ hosts, headers: async () => ({ authorization: `Bearer ${await token()}` }) });
//   await runtime.agent("support", { threadId }).runAgent({ onBusy: "queue", whenOffline: "wait" });
//
// Its limits: the server must allow the page's origin (CORS), with the headers that are sent, and expose `Retry-After`. A run that
// goes on is asked again, with the messages up to the last result, and answers anew. So where the server does what must not happen
// twice, it has to know its work by the ids of messages and tool calls, or `recovery` is "ask".
import { EventType, HttpAgent, type HttpAgentFetchFn } from "@ag-ui/client";
import type { AgentPolicy, ForwardHeadersOptions } from "ag-ui-local-runtime/runtime";

/** Options of `serveRuntime` for one such agent. */
export const remote = (agentId: string, url: string) => ({
  agents: { [agentId]: new HttpAgent({ url, fetch: asked }) },
  // All others stay here; without this list, `x-*` is sent on.
  forwardHeaders: { allow: ["authorization"] } satisfies ForwardHeadersOptions,
  agentPolicies: { [agentId]: { needsNetwork: true, recovery: { maxAttempts: 5 } } satisfies AgentPolicy },
});

/** `fetch`, whose failures that may pass are told by the codes that recovery knows; else a run fails as AGENT_FAILED, for good. */
const asked: HttpAgentFetchFn = async (url, init) => {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    // Browsers tell no script why.
    return failed("PROVIDER_UNAVAILABLE", `The agent's server could not be reached: ${String(error)}`);
  }
  const { status, headers } = response;
  if (status !== 429 && status < 500) return response;
  await response.body?.cancel();
  const after = headers.get("retry-after") ?? "";
  const retryAfterMs = /^\d+$/.test(after) ? Number(after) * 1_000 : Math.max(Date.parse(after) - Date.now(), 0);
  const code = status === 429 ? "RATE_LIMITED" : "PROVIDER_UNAVAILABLE";
  return failed(code, `The agent's server answered with ${status}`, retryAfterMs || undefined);
};

/** An answer that is nothing but RUN_ERROR. */
function failed(code: string, message: string, retryAfterMs?: number): Response {
  const metadata = retryAfterMs === undefined ? {} : { metadata: { retryAfterMs } };
  const event = { type: EventType.RUN_ERROR, code, message, ...metadata };
  return new Response(`data: ${JSON.stringify(event)}\n\n`, { headers: { "content-type": "text/event-stream" } });
}
